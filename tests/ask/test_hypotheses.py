"""What became of hypotheses, and what happened on a task from a time on."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.notes import notes_answer
from autoresearch.ask.runs.since import since_answer
from autoresearch.record.encoding import format_id
from tests.ask.notebook import BASELINE, Notebook
from tests.log.standing.village import settled

DAY_MS = 24 * 3600 * 1000


def program(lr: float) -> str:
    return BASELINE.replace("0.1", str(lr))


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([], "open"),
        ([1.25], "refuted"),
        ([None], "refuted"),
        ([1.1], "held"),
        ([1.1, 1.3], "tried"),
        ([1.1, 1.3, None], "refuted"),
        ([1.1, 1.2, None], "held"),
    ],
)
def test_a_hypothesis_is_settled_by_the_runs_that_cite_it(
    tmp_path: Path, values: list[float | None], state: str
) -> None:
    with Notebook.at(tmp_path) as book:
        task = book.task()
        baseline = book.run(task, 1.25)
        insight = book.note("LR matters", task=task)
        idea = book.note("a higher LR helps", task=task, topic="hypothesis")
        runs = [
            book.run(
                task,
                value,
                status="crashed" if value is None else "ok",
                source=program(0.2 + number / 10),
                parent=baseline,
                title=f"number {number}",
                cites=(idea,),
            )
            for number, value in enumerate(values)
        ]
        settled(book.log)
        grammar = find_task(book.log, "grammar")
        all_notes = notes_answer(book.log, grammar, me=book.mine.public).notes
        (note,) = notes_answer(book.log, grammar, topic="hypothesis", me=book.mine.public).notes
        (searched,) = notes_answer(book.log, grammar, query="LR", topic="hypothesis", me=book.mine.public).notes
    assert (note.id, note.state) == (format_id(idea), state)
    assert searched == note
    assert [(each.id, each.title, each.better) for each in note.cited_by] == [
        (format_id(run), f"number {number}", value is not None and value < 1.25)
        for number, (run, value) in reversed([*enumerate(zip(runs, values, strict=True))])
    ]
    assert {each.id: each.state for each in all_notes} == {format_id(insight): "", format_id(idea): state}


def test_a_sentence_says_what_happened_since(tmp_path: Path) -> None:
    with Notebook.at(tmp_path) as book:
        task = book.task()
        grammar = find_task(book.log, "grammar")

        def summary(since_ms: int = 0) -> str:
            settled(book.log)
            now_ms = book.now_ms + 1
            return since_answer(book.log, grammar, since_ms=since_ms, now_ms=now_ms, me=book.mine.public).sentence

        assert summary() == "since yesterday: no run"
        baseline = book.run(task, 1.25)
        assert summary() == "since yesterday: 1 run by 1 participant; best 1.2500 reported"
        ideas = [book.note(text, task=task, topic="hypothesis") for text in ("raise LR", "lower LR", "divide")]
        book.now_ms += 2 * DAY_MS
        assert summary() == "since yesterday: no run"
        book.run(task, 1.0, source=program(0.2), parent=baseline, cites=ideas[:1])
        book.run(task, 1.5, source=program(0.05), parent=baseline, cites=ideas[1:2], by=book.other)
        book.run(task, None, status="cancelled", source="2", parent=baseline)  # no failure of the program
        book.run(task, None, status="crashed", source="1 / 0", parent=baseline, cites=ideas[2:])
        assert summary() == (
            "since yesterday: 4 runs by 2 participants, 1 failed; best 1.2500 → 1.0000 reported; "
            "1 hypothesis held, 2 did not"
        )
        later_ms = book.now_ms
        assert summary(later_ms + 1) == "in the last 0 s: no run"
        assert summary(later_ms).startswith("in the last 1 ms: 1 run by 1 participant, 1 failed")
