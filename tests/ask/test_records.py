"""Records in a list, and one whole."""

import inspect
import re

import msgspec
import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.records import LogAnswer, ShowAnswer
from autoresearch.ask.show import SUMMARY_CHARACTERS, log_answer, show_answer, summary
from autoresearch.errors import NotFound
from autoresearch.face.columns.runs import budget_words
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import KINDS, Claim, Identity, Merge, Run, Verification, Withdrawal
from autoresearch.text import one_line


def ids(answer):
    return [parse_id(record.id) for record in answer.records]


@pytest.mark.parametrize(
    ("stated", "mode", "unit", "words"),
    [
        ("seconds", "experiment", "seconds", "5 min"),
        ("work", "experiment", "work", "300 work units"),
        ("seconds", "train", "episodes", "300 training episodes"),
    ],
)
def test_a_budget_has_the_unit_of_its_task(story, stated, mode, unit, words):
    notebook = story.notebook
    run = notebook.run(notebook.task("timed", unit=stated), 1.0, mode=mode)
    assert show_answer(notebook.log, run).budget_unit == unit
    assert budget_words(300, unit) == words


def test_the_newest_come_first_and_filters_narrow(story):
    log, notebook = story.notebook.log, story.notebook
    assert ids(log_answer(log))[:3] == [story.note, story.crashed, story.faster]
    assert len(ids(log_answer(log, limit=2))) == 2
    assert ids(log_answer(log, author=notebook.other.public)) == [story.faster]
    assert ids(log_answer(log, kind="note")) == [story.note]
    assert ids(log_answer(log, kind="release")) == []
    other = notebook.task("other")
    run = notebook.run(other, 1.0)
    assert ids(log_answer(log, task=find_task(log, "other"), kind="run")) == [run]


def test_claims_can_be_left_out_unless_they_are_what_is_asked_for(story):
    log = story.notebook.log
    before = ids(log_answer(log, limit=1000))
    body = Claim(task=bytes(32), source_digest=bytes(32), until=story.notebook.now_ms)
    claim = story.notebook.append("claim", body)
    assert ids(log_answer(log, limit=1000)) == [claim, *before]
    assert ids(log_answer(log, limit=1000, claims=False)) == before
    assert ids(log_answer(log, kind="claim", claims=False)) == [claim]


def test_pages_give_every_record_once(notebook):
    written = [notebook.note(f"note {number}") for number in range(45)]
    seen, before = [], None
    while page := ids(log_answer(notebook.log, limit=4, before=before)):
        assert len(page) <= 4
        seen += page
        before = page[-1]
    assert seen == written[::-1]


def test_records_of_one_moment_are_not_lost_between_pages(notebook):
    written = set()
    for number in range(10):
        notebook.now_ms -= 1000
        written.add(notebook.note(f"note {number}"))
    seen, before = [], None
    while page := ids(log_answer(notebook.log, limit=3, before=before)):
        seen += page
        before = page[-1]
    assert set(seen) == written
    assert len(seen) == 10


def test_a_page_after_an_unknown_record_is_not_found(notebook):
    with pytest.raises(NotFound):
        log_answer(notebook.log, before=b"\1" * 32)


def test_a_run_is_shown_whole_and_survives_json(story):
    answer = show_answer(story.notebook.log, story.crashed)
    assert (answer.record.kind, answer.run.run.status, answer.run.run.reason) == ("run", "crashed", "division by zero")
    assert (answer.run.run.parent, answer.body) == (format_id(story.faster), {})
    assert answer.links == [format_id(story.faster)]
    assert not answer.forked
    assert msgspec.json.decode(msgspec.json.encode(answer), type=ShowAnswer) == answer


def test_what_is_no_run_and_what_is_of_an_unknown_kind_is_shown_too(story):
    assert show_answer(story.notebook.log, story.note).run is None
    body = {"deep": [{"bytes": b"\xff"}, None, True, 1.5], "é": "x"}
    unknown = story.notebook.append("poem", body)
    reply = show_answer(story.notebook.log, unknown)
    assert reply.body == {"deep": [{"bytes": "ff"}, None, True, 1.5], "é": "x"}
    assert reply.record.summary == ""
    answer = log_answer(story.notebook.log)
    assert msgspec.json.decode(msgspec.json.encode(answer), type=LogAnswer) == answer


def test_a_forked_authors_record_says_so(notebook):
    notebook.run(notebook.task(), 1.0)
    from autoresearch.record.kinds import Note
    from autoresearch.record.record import DEFAULT_NETWORK, seal

    head = notebook.log.devices.head(notebook.mine.public)
    twin = seal(
        notebook.mine,
        DEFAULT_NETWORK,
        "note",
        Note(topic="insight", text="twin"),
        seq=head.seq,
        prev=notebook.log.records.get(head.id).prev,
        time_ms=notebook.now_ms,
    )
    notebook.log.writer.ingest([(twin.raw, twin.signature)], now_ms=notebook.now_ms)
    assert show_answer(notebook.log, twin.id).forked


KEY = b"\xab" * 32
RUN = {"task": KEY, "source": {"sha256": KEY, "size": 1}, "source_digest": KEY, "seed": 1, "budget": 1.0}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (msgspec.convert(RUN | {"status": "ok", "value": 1.25, "title": "deeper"}, Run), "deeper: 1.25"),
        (msgspec.convert(RUN | {"status": "crashed"}, Run), "run: crashed"),
        (Claim(task=KEY, source_digest=KEY, until=1, title="wider"), "trying: wider"),
        (Verification(run=KEY, stage="L1", verdict="pass", value=1.5), "pass, measured 1.5"),
        (Identity(action="delegate", root=KEY, device=KEY, name="ada"), "delegate abababab ada"),
        (Withdrawal(reason="wrong data"), "wrong data"),
        (Merge(device=KEY, heads=[KEY]), "ends the fork of abababab"),
    ],
)
def test_each_kind_has_its_line(body, expected):
    assert summary(body).endswith(expected)


def test_every_known_kind_has_a_line():
    from autoresearch.ask import show

    source = inspect.getsource(show)
    assert [kind for kind in KINDS.values() if not re.search(rf"\bkinds\.{kind.__name__}\b", source)] == []


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2J\x1b]0;owned\x07",
        "a\r\nb\x00c",
        "\u202egnp.exe",
        "\x9b31m",
        "line\u2028sep",
        "\U000e0041tag",
        "x" * 5000,
    ],
)
def test_a_line_cannot_move_the_cursor_or_hide_anything(hostile):
    line = one_line(hostile, 40)
    assert len(line) <= 40
    assert line.isprintable()


def test_a_long_title_leaves_the_value_whole():
    line = summary(msgspec.convert(RUN | {"status": "ok", "value": 1.23456, "title": "t" * 120}, Run))
    assert len(line) == SUMMARY_CHARACTERS
    assert line.endswith("…: 1.23456")
