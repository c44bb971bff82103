"""What the log says to a question, for a terminal or a pipe."""

from __future__ import annotations

from autoresearch.api import AskAnswer, RunFound, TriedParameter, TriedValue
from autoresearch.figures import figure, value
from autoresearch.sanitise import one_line, sanitised
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.notes import TEXT_CHARACTERS
from autoresearch_cli.rendering.output import is_rich, print_line, print_rows, print_table


def print_found(answer: AskAnswer) -> None:
    """The model's sentences first, then what they rest on; a line a record for a program."""
    if not is_rich():
        print_rows(_rows(answer))
        return
    if answer.text:
        print_line(sanitised(answer.text, lines=True))
        print_line("")
    for parameter in answer.parameters:
        _print_parameter(parameter)
    texts = [(short(note.id), note.topic, one_line(note.text, TEXT_CHARACTERS)) for note in answer.notes]
    texts += [(short(run.id), value(run.value), _words(run)) for run in answer.runs]
    texts += [(short(run.id), run.status, _words(run)) for run in answer.failures]
    if texts:
        print_table(("id", "what", "text"), texts)


def _print_parameter(parameter: TriedParameter) -> None:
    more = f", the best {len(parameter.values)}" if parameter.tried > len(parameter.values) else ""
    print_line(f"{one_line(parameter.name, 64)}: {parameter.tried} values tried{more}")
    rows = [
        (_shown(one), str(one.runs), str(one.failed or ""), value(one.mean), value(one.best), short(one.id))
        for one in parameter.values
    ]
    print_table(("value", "runs", "failed", "mean", "best", "id"), rows)
    print_line("")


def _shown(one: TriedValue) -> str:
    return figure(one.value) if isinstance(one.value, float) else one_line(str(one.value), 64)


def _words(run: RunFound) -> str:
    parts = (run.title, run.hypothesis if run.value is not None else run.reason)
    return one_line("; ".join(dict.fromkeys(part for part in parts if part)), TEXT_CHARACTERS)


def _rows(answer: AskAnswer) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("answer", " ".join(answer.cited), answer.text)] if answer.text else []
    rows += [
        (each.name, one.id, one.value, one.runs, one.failed, figure(one.mean), figure(one.best))
        for each in answer.parameters
        for one in each.values
    ]
    rows += [("note", note.id, note.topic, note.text) for note in answer.notes]
    rows += [("run", run.id, figure(run.value), run.title, run.hypothesis) for run in answer.runs]
    rows += [("failure", run.id, run.status, run.title, run.reason) for run in answer.failures]
    return rows
