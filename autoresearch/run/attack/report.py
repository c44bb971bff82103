"""What a red team came to, as a record that others can repeat. Pure but for its file."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import msgspec

from autoresearch.beneath import read_beneath
from autoresearch.log.standing.answers import Answer, ParticipantView
from autoresearch.run.attack.target import HOLE_SENTENCES, MENDS, Hole
from autoresearch.task.folder_state import replace_file

REPORT = "attack.json"
"""The report's file beside ``task.toml``; no part of the task."""
MOST_BYTES = 4 << 20


class AttackRow(msgspec.Struct, frozen=True, kw_only=True):
    """One attack: what it does, and what came of it ("through", "held" or "not tried"), with the reason.

    ``by`` is what refused it, empty where its value was no better. ``note`` says which variant came furthest.
    """

    name: str
    does: str
    result: str
    why: str
    by: str = ""
    hole: str = ""
    note: str = ""
    value: float | None = None
    gain: float | None = None
    folder: str = ""


class HoleView(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with the task: the attacks that used it, what the first of them gained, and the mend.

    ``folder`` is a task folder with a program that did it, ``diff`` what it changes in the baseline.
    """

    hole: str
    sentence: str
    mend: str
    attacks: list[str]
    gain: float | None = None
    value: float | None = None
    folder: str = ""
    diff: str = ""


class ComparedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A published report, by its ``id``, beside an own one: attacks that both tried, and those that ended otherwise.

    ``why`` says why it could not be read; empty where it could.
    """

    id: str
    participant: ParticipantView
    both: int = 0
    differing: list[str] = []
    why: str = ""


class MendView(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed files in which no cheat gets through any more, by ``proposer``: a folder with the task so, and a diff.

    ``baseline`` is what the baseline gets there.
    """

    title: str
    why: str
    proposer: str
    folder: str
    diff: str
    held: int
    baseline: float


class AttackReport(Answer, frozen=True, kw_only=True):
    """What came of the attacks on a task. ``version`` is that of the program, ``attacks`` that of the list of attacks.

    ``share`` is the part of the budget that the baseline had. A gain of less than ``margin`` counts as noise.
    ``others`` are the published reports of the same task, where they were compared. ``mended`` is a mend, if wanted.
    """

    schema: str = "autoresearch.attack/1"
    task: str
    digest: str
    version: str
    attacks: int
    quick: bool
    metric: str
    direction: str
    source: str
    baseline: float
    noise: float
    margin: float
    share: float
    tried: int
    through: int
    seconds: float
    holes: list[HoleView]
    rows: list[AttackRow]
    others: list[ComparedReport] = msgspec.field(default_factory=list)
    mended: MendView | None = None

    @property
    def held(self) -> int:
        """How many attacks came to nothing."""
        return self.tried - self.through

    @property
    def sentence(self) -> str:
        """The whole in a few words, as pages show it: ``attacked: 43 of 43 held``."""
        return f"attacked: {self.held} of {self.tried} held{' (quick half)' if self.quick else ''}"

    @property
    def counts(self) -> dict[str, int]:
        """What its record states as numbers, counted by its rows: the list of attacks, and attacks by their hole."""
        tried = [row for row in self.rows if row.result != "not tried"]
        holes = Counter(row.hole for row in tried if row.result == "through")
        numbers = {"attacks": self.attacks, "quick": int(self.quick), "tried": len(tried)}
        return {**numbers, "held": len(tried) - holes.total(), **holes}

    @property
    def published(self) -> bytes:
        """The same for others to read and to repeat, without places on this machine and without ready programs."""
        rows = [msgspec.structs.replace(row, folder="") for row in self.rows]
        holes = [msgspec.structs.replace(hole, folder="", diff="") for hole in self.holes]
        return msgspec.json.encode(msgspec.structs.replace(self, rows=rows, holes=holes, others=[], mended=None))


def holes_of(rows: list[AttackRow], diffs: dict[str, str]) -> list[HoleView]:
    """The holes that attacks got through, those with most attacks first, each once."""
    by_hole: dict[str, list[AttackRow]] = {}
    for row in rows:
        if row.result == "through":
            by_hole.setdefault(row.hole, []).append(row)
    views = []
    for name, through in sorted(by_hole.items(), key=lambda item: -len(item[1])):
        best = next((row for row in through if row.folder), through[0])
        views.append(
            HoleView(
                hole=name,
                sentence=HOLE_SENTENCES[Hole(name)],
                mend=MENDS[Hole(name)],
                attacks=[row.name for row in through],
                gain=best.gain,
                value=best.value,
                folder=best.folder,
                diff=diffs.get(best.name, ""),
            )
        )
    return views


def write_report(folder: Path, report: AttackReport) -> None:
    """Write a report beside its task. Raises UsageError where it can't be written."""
    replace_file(folder, REPORT, msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def read_report(folder: Path, digest: str) -> AttackReport | None:
    """The report beside a task with this digest in hex; None where there is none, or it is another task's."""
    try:
        report = msgspec.json.decode(read_beneath(folder, REPORT, MOST_BYTES), type=AttackReport)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return report if report.digest == digest else None


def attacked(folder: Path, digest: str) -> str:
    """What came of the attacks on a task in words, by the report beside it, or how to try."""
    report = read_report(folder, digest)
    if report is None:
        return f"not yet: autoresearch task attack {shlex.quote(str(folder))}"
    return "; ".join([report.sentence.removeprefix("attacked: "), *(hole.sentence for hole in report.holes)])
