"""Texts as programs print them, and names of metrics: what is right, and what the reader makes of each.

They lie in ``tests/programs``, in two halves: the reader is made with ``seen``, and judged by ``unseen``.

    python -m benchmarks.corpus             right, unsure and wrong by family, as Markdown tables
    python -m benchmarks.corpus --seen      each entry of ``seen`` that is not right as well
"""

from __future__ import annotations

import argparse
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from autoresearch.task.metric_names import direction_of
from autoresearch.task.printed import guess_metric, read_metric
from autoresearch.text import MAXIMIZE, MINIMIZE

CORPUS = Path(__file__).parent.parent / "tests" / "programs"
PARTS = ("seen", "unseen")
ASK = "ask"
DIRECTIONS = (MAXIMIZE, MINIMIZE, ASK)


class Verdict(StrEnum):
    """``UNSURE``: it took nothing, or said that it is not sure; ``WRONG``: it took a wrong thing without a doubt."""

    RIGHT = "right"
    UNSURE = "unsure"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether an entry of the corpus was understood, and how it was not."""

    part: str
    family: str
    title: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """A metric that is right; with several names, values or directions each of them is."""

    names: Sequence[str]
    values: Sequence[float]
    """Empty: the run has diverged."""
    directions: Sequence[str] = ()

    def has_name(self, name: str) -> bool:
        """Whether a name is one of this metric's; blanks, signs and capitals do not count."""
        return _letters(name) in {_letters(each) for each in self.names}

    def fits(self, value: float | None, *, diverged: bool) -> bool:
        """Whether a value is this metric's."""
        if diverged or value is None:
            return diverged and not self.values
        return any(math.isclose(value, each, rel_tol=1e-5) for each in self.values)


@dataclass(frozen=True, slots=True)
class PrintedText:
    """A text that a program printed, and what is right."""

    part: str
    family: str
    title: str
    text: str
    results: Sequence[Result]
    """Each is a right choice. Empty: there is no result, or with ``is_unsure`` nothing says which it is."""
    named: Sequence[Result]
    """What stands under other names, where a person gives one."""
    numbers: Mapping[str, float]
    """Numbers that the reader must list."""
    is_unsure: bool

    def __str__(self) -> str:
        return f"{self.family}: {self.title}"


def printed_texts(part: str) -> list[PrintedText]:
    """The texts of a half."""
    return [
        PrintedText(
            part,
            path.stem,
            entry["title"],
            entry["text"],
            results_of(entry),
            [_result(each) for each in entry.get("named", ())],
            entry.get("numbers", {}),
            entry.get("unsure", False),
        )
        for path in sorted((CORPUS / "printed" / part).glob("*.toml"))
        for entry in tomllib.loads(path.read_text())["text"]
    ]


def results_of(entry: Mapping[str, Any]) -> list[Result]:
    """The metrics of an entry of the corpus that are right: its own, and those under ``also``."""
    return [_result(each) for each in [entry, *entry.get("also", ())] if "metric" in each]


def metric_directions(part: str) -> dict[str, tuple[str, ...]]:
    """The directions that are right for each name of a half; ``ask`` is a question."""
    groups = tomllib.loads((CORPUS / "directions" / f"{part}.toml").read_text())
    return {name: tuple(group.split("_or_")) for group, names in groups.items() for name in names}


def judge_text(text: PrintedText) -> Judgement:
    """What the reader makes of a text without an option."""
    verdict, reason = _taken(text)
    return Judgement(text.part, text.family, text.title, verdict, reason)


def judge_named(text: PrintedText) -> list[Judgement]:
    """What the reader finds under each name that a person may give."""
    judgements = []
    for result in text.named:
        reading = read_metric(text.text, result.names[0])
        fits = result.fits(reading.value, diverged=reading.diverged)
        nothing = reading.value is None and not reading.diverged
        verdict = Verdict.RIGHT if fits else Verdict.UNSURE if nothing else Verdict.WRONG
        reason = "" if fits else f"{result.names[0]} is read as {reading.value}"
        judgements.append(Judgement(text.part, text.family, text.title, verdict, reason))
    return judgements


def judge_direction(part: str, name: str, directions: Sequence[str]) -> Judgement:
    """What the reader makes of a metric's name."""
    direction = direction_of(name) or ASK
    fits = direction in directions
    verdict = Verdict.RIGHT if fits else Verdict.UNSURE if direction == ASK else Verdict.WRONG
    reason = "" if fits else f"{name} is {' or '.join(directions)}, not {direction}"
    return Judgement(part, directions[0], name, verdict, reason)


def judge_texts() -> dict[str, list[Judgement]]:
    """All texts and names, by what was judged."""
    texts = [text for part in PARTS for text in printed_texts(part)]
    names = [(part, *entry) for part in PARTS for entry in metric_directions(part).items()]
    return {
        "texts": [judge_text(text) for text in texts],
        "named": [judgement for text in texts for judgement in judge_named(text)],
        "directions": [judge_direction(*name) for name in names],
    }


def shares(kind: str, judgements: Iterable[Judgement]) -> dict[str, float]:
    """The share of each verdict in each half, between 0 and 1."""
    judgements = list(judgements)
    figures = {}
    for part in PARTS:
        verdicts = [each.verdict for each in judgements if each.part == part]
        for verdict in Verdict if verdicts else ():
            figures[f"{kind} {part}: {verdict}"] = verdicts.count(verdict) / len(verdicts)
    return figures


def family_table(judgements: Iterable[Judgement]) -> str:
    """Markdown: a row for each family and half. It shows no entry, so nobody tunes the reader to ``unseen``."""
    rows = ["| half | family | entries | right | unsure | wrong |", "| --- | --- | --- | --- | --- | --- |"]
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for each in judgements:
        groups.setdefault((each.part, each.family), []).append(each.verdict)
        groups.setdefault((each.part, "all"), []).append(each.verdict)
    for (part, family), verdicts in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] == "all", item[0])):
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in Verdict)
        rows.append(f"| {part} | {family} | {len(verdicts)} | {counts} |")
    return "\n".join(rows)


def _taken(text: PrintedText) -> tuple[Verdict, str]:
    guess = guess_metric(text.text)
    if guess is None:
        return (Verdict.UNSURE, "nothing was taken") if text.results else (Verdict.RIGHT, "")
    taken = f"{guess.name} = {'diverged' if guess.diverged else guess.value}"
    choices = [result for result in text.results if result.has_name(guess.name)]
    if not choices:
        if guess.is_sure:
            return Verdict.WRONG, f"{taken} was taken"
        is_right = text.is_unsure and not text.results
        return (Verdict.RIGHT, "") if is_right else (Verdict.UNSURE, f"{taken} was offered")
    fitting = [result for result in choices if result.fits(guess.value, diverged=guess.diverged)]
    if not fitting:
        return Verdict.WRONG, f"{taken} was read"
    reading = read_metric(text.text, guess.name)
    if not fitting[0].fits(reading.value, diverged=reading.diverged):
        return Verdict.WRONG, f"{taken} was taken, and {reading.value} read"
    direction = direction_of(guess.name) or ASK
    if direction not in fitting[0].directions:
        return (Verdict.UNSURE if direction == ASK else Verdict.WRONG), f"the direction of {guess.name} is {direction}"
    return (Verdict.RIGHT, "") if guess.is_sure or text.is_unsure else (Verdict.UNSURE, f"{taken} was offered")


def _result(entry: Mapping[str, Any]) -> Result:
    names, values, directions = (_several(entry.get(key, ())) for key in ("metric", "value", "direction"))
    return Result(names, values, directions)


def _several(value: Any) -> Sequence[Any]:  # noqa: ANN401
    return value if isinstance(value, list | tuple) else [value]


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seen", action="store_true", help="the entries of the half `seen` that are not right")
    options = parser.parse_args()
    for kind, judgements in judge_texts().items():
        print(f"{kind}\n\n{family_table(judgements)}\n")
        for each in judgements if options.seen else ():
            if each.part == "seen" and each.verdict is not Verdict.RIGHT:
                print(f"{each.verdict}: {each.family}: {each.title}: {each.reason}")


if __name__ == "__main__":
    main()
