"""Completion in the shell from the local log; it needs no daemon and never fails."""

from __future__ import annotations

RECENT = 200
REFERENCES = [("@", "the best run"), ("@mine", "your best run"), ("@~1", "the best run's parent")]


def complete_reference(incomplete: str) -> list[tuple[str, str]]:
    """References that begin so: the best run, or recent records with what they are."""
    if not incomplete or incomplete.startswith("@"):
        return [(name, about) for name, about in REFERENCES if name.startswith(incomplete)]
    try:
        return _recent(incomplete)
    except Exception:  # noqa: BLE001 - a completion that prints an error would garble the line being typed
        return []


def _recent(incomplete: str) -> list[tuple[str, str]]:
    from autoresearch.answers import log_answer
    from autoresearch_cli.reading import open_notebook
    from autoresearch_cli.rendering.figures import one_line
    from autoresearch_cli.rendering.ids import short

    with open_notebook() as notebook:
        found = log_answer(notebook.log, limit=RECENT).records
    return [(short(r.id), one_line(r.summary)) for r in found if short(r.id).startswith(incomplete)]
