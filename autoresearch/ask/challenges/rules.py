"""The rules of a contest as one page of plain words, with the significance test in numbers of its task. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import msgspec

from autoresearch.judging.committee import network_rules
from autoresearch.judging.statistics import LOOKS, MOST_VOTERS, PAIRS
from autoresearch.record.kinds import Contest
from autoresearch.record.record import Network
from autoresearch.task.model import USUAL, Budget, Metric, Recipe
from autoresearch.text import MAXIMIZE, brief, counted, moment, one_line
from autoresearch.words import BUDGET_UNITS, MEASURED_BY

# A gain of so many standard deviations over seeds is found by so many verifiers in 90 of 100 contests: simulated with
# `judge_pairs` where the noise is known, rounded up. tests/ask/challenges/test_rules.py computes them again.
SEEN_NOISES = {2: 5.1, 3: 3.4, 4: 2.7, MOST_VOTERS: 2.1}
SEEN_SHARE = 90
_NUMBERS = {2: "Two", 3: "Three", 4: "Four", MOST_VOTERS: "Six"}
HTML = "index.html"


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page: a heading, sentences as a list, lines to type, and a table whose first row is its head."""

    heading: str
    sentences: Sequence[str]
    commands: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()


def rules_of(
    name: str,
    summary: str,
    definition: Mapping[str, object],
    challenge: Contest,
    network: Network,
    *,
    attacked: str = "",
) -> list[PageSection]:
    """The page of rules, section by section, without how to join. ``definition`` is that of the published task.

    ``attacked`` is what participants found when they attacked it, where any did.

    Raises:
        msgspec.ValidationError: it is the definition of no task.
    """
    metric, budget = (
        msgspec.convert(definition.get("metric"), Metric),
        msgspec.convert(definition.get("budget"), Budget),
    )
    recipe = msgspec.convert(definition["program"], Recipe) if "program" in definition else USUAL
    evaluation = definition.get("evaluation")
    can_measure = isinstance(evaluation, Mapping) and evaluation.get("tolerance") is not None
    pairs_only = budget.unit == "seconds" and not can_measure
    harness = definition.get("harness")
    fixed = sorted(str(file) for file in harness) if isinstance(harness, Mapping) else []
    better = "larger is better" if metric.direction == MAXIMIZE else "smaller is better"
    sections = [
        PageSection(
            "What is measured",
            [
                *([one_line(summary)] if summary else []),
                f"The number is {metric.name}; {better}. It is measured by {MEASURED_BY[metric.source]}.",
                f"A run may spend {brief(budget.amount)} {BUDGET_UNITS[budget.unit]}. A run that spends more fails.",
                *(
                    ["The number is self-reported: an edit of the program could print any. A jump is not believed."]
                    if metric.source == "stdout"
                    else []
                ),
                f"The task was {attacked or 'not attacked by an attested participant'}. "
                f"As it is now: autoresearch task reports {shlex.quote(one_line(name))}",
                *([f"No honest {metric.name} passes {brief(metric.floor)}."] if metric.floor is not None else []),
            ],
        ),
        PageSection(
            "What may be changed",
            [
                f"These files: {', '.join(recipe.edit)}.",
                *([f"These files are fixed: {', '.join(fixed)}."] if fixed else []),
            ],
        ),
        PageSection(
            "When it ends",
            [
                f"It begins {moment(challenge.begins)} and ends {moment(challenge.ends)}. The times are UTC.",
                "A run with a later time takes no place. Verifiers may still measure earlier runs after the end.",
                f"Of each participant the first {counted(challenge.runs, 'run')} count, failed ones too."
                if challenge.runs
                else "Each participant may submit as many runs as it likes.",
            ],
        ),
        PageSection("When a result counts", _significance(metric, network, pairs_only=pairs_only)),
    ]
    title = f"{challenge.title or name}: rules"
    return [PageSection(title, [f"A contest on the task {name}, in the network {network.name}."]), *sections]


def _significance(metric: Metric, network: Network, *, pairs_only: bool) -> list[str]:
    """The test of significance in sentences, with the numbers of a task.

    ``pairs_only``: the budget is time and nothing that a run leaves can be measured, so values of other machines say
    nothing of it.
    """
    rules = network_rules(network)
    again = f"Other participants run it again: {rules.quorum} of them must measure the reported value. "
    clocked = "Its budget is time, so values are compared on one kind of hardware: verifiers with the author's count. "
    sentences = [
        f"{clocked if pairs_only else again}The network needs {rules.least} participants that count.",
        f"Each verifier runs {PAIRS} pairs: the program and its parent run, with one seed on one machine.",
        "The verifier who saw the greatest gain is left out. The mean gain of the others must be above zero by a "
        "one-sided t-test at 1 %.",
    ]
    noise = metric.noise
    if noise is None:
        return [
            *sentences,
            "How far the seed moves the number is not measured yet, so nobody can say which gain is seen. "
            f"The test then needs {LOOKS[1]} verifiers, {LOOKS[1] * PAIRS} pairs.",
            "To measure it, run the baseline with several seeds: autoresearch run DIR --seeds 5. Write the standard "
            "deviation as metric.noise into task.toml before the contest begins.",
        ]
    if noise == 0:
        return [
            *sentences,
            f"The number does not depend on the seed: two verifiers, {2 * PAIRS} pairs, see any gain that they agree "
            "on.",
        ]
    guess = f", a rough guess from {metric.noise_runs} runs" if metric.noise_runs else ""
    return [
        *sentences,
        f"The seed alone moves {metric.name} by {brief(noise, 2)} (standard deviation{guess}).",
        *(
            f"{_NUMBERS[verifiers]} verifiers, {verifiers * PAIRS} pairs: a gain of {brief(times * noise, 2)} is seen "
            f"with {SEEN_SHARE} %."
            for verifiers, times in SEEN_NOISES.items()
        ),
        "A smaller gain is seen less often. A program without any gain is confirmed less than once in a hundred times.",
    ]


def joining(line: str, *, admits: bool) -> PageSection:
    """How to join, with the line to type."""
    counting = (
        "Who joins so counts as a verifier once the founder's node has seen it."
        if admits
        else "To have your results counted, prove a mailbox: autoresearch node id attest you@example.org."
    )
    return PageSection(
        "How to join",
        [
            "Install autoresearch, then type this line.",
            counting,
            "The board: autoresearch challenge show.",
        ],
        [line],
    )


def as_markdown(sections: Sequence[PageSection]) -> str:
    """The page as Markdown. The first section is its title."""
    parts = []
    for number, section in enumerate(sections):
        parts.append(f"{'##' if number else '#'} {_markdown(section.heading)}\n")
        bullet = "- " if number else ""
        if section.sentences:
            parts.append("\n".join(f"{bullet}{_markdown(sentence)}" for sentence in section.sentences) + "\n")
        if section.table:
            head, *rows = (f"| {' | '.join(map(_markdown, row))} |" for row in section.table)
            parts.append("\n".join([head, "|" + " --- |" * len(section.table[0]), *rows, ""]))
        if section.commands:
            parts.append("\n".join(["```console", *(f"$ {line}" for line in section.commands), "```", ""]))
    return "\n".join(parts)


# Of light and dark screens, and of narrow ones, where each cell of a table is a line with its heading.
_STYLE = """
:root { color-scheme: light dark; --text: #1b1e21; --muted: #5c646c; --bg: #fcfcfb; --raise: #f0f1f3; --line: #d5d8dc }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7ea; --muted: #9aa3ab; --bg: #101214; --raise: #1d2125; --line: #343a40 }
}
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 1.5rem auto; padding: 0 1rem; color: var(--text);
  background: var(--bg); overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25 }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem }
ul { padding-left: 1.2rem }
pre { white-space: pre-wrap; background: var(--raise); padding: .7rem; border-radius: .3rem; font-size: .875rem }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line) }
td + td { min-width: 5rem }
th { color: var(--muted); font-weight: 500; white-space: nowrap }
@media (max-width: 40rem) {
  thead { display: none } tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line) }
  td { display: flex; gap: .6rem; padding: .1rem 0; border: 0 } td:empty { display: none }
  td::before { content: attr(data-head); flex: 0 0 4rem; color: var(--muted) }
}
"""


def as_html(sections: Sequence[PageSection]) -> str:
    """The page as one HTML file that needs nothing else."""
    title = escape(one_line(sections[0].heading))
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title>",
        f"<style>{_STYLE}</style>",
    ]
    for number, section in enumerate(sections):
        level = "h2" if number else "h1"
        parts.append(f"<{level}>{escape(one_line(section.heading))}</{level}>")
        if number and section.sentences:
            items = "".join(f"<li>{escape(one_line(sentence))}</li>" for sentence in section.sentences)
            parts.append(f"<ul>{items}</ul>")
        else:
            parts += [f"<p>{escape(one_line(sentence))}</p>" for sentence in section.sentences]
        if section.table:
            parts.append(_html_table(section.table))
        if section.commands:
            parts.append(f"<pre>{escape(chr(10).join(section.commands))}</pre>")
    return "\n".join([*parts, "</html>", ""])


def _html_table(table: Sequence[Sequence[str]]) -> str:
    head, *rows = ([escape(one_line(cell)) for cell in row] for row in table)
    lines = [
        "".join(f'<td data-head="{name}">{cell}</td>' for name, cell in zip(head, row, strict=True)) for row in rows
    ]
    first = "".join(f"<th>{name}</th>" for name in head)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table>\n<thead><tr>{first}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _markdown(text: str) -> str:
    """A sentence in which nothing of a name or a summary is markup."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>#|" else character for character in one_line(text))
