"""Searching the log: any text may be asked for, and what is found does not depend on how records came."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.record.kinds import Note
from tests.log.test_set_functions import fill, fresh
from tests.log.universe import AMPLE, SMALL, records
from tests.record.making import NETWORK, NOW_MS, digest_of, key

KINDS = ("note", "worked", "failed")


def everything(log):
    requests = [(kind, words) for kind in KINDS for words in ("x", "y", "x y", "the")]
    return [log.texts.search(digest_of(), kind, words, limit=100, every=False) for kind, words in requests]


@pytest.mark.parametrize("network", [AMPLE, SMALL])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_what_is_found_is_a_function_of_the_records(network, data):
    made = data.draw(records(network))
    with fresh(network) as first, fresh(network) as other:
        fill(first, made)
        fill(other, made, data.draw(st.randoms(use_true_random=False)), data.draw(st.integers(1, 8)))
        expected = everything(first)
        assert everything(other) == expected
        other.writer.rebuild()
        assert everything(other) == expected
        assert all(first.records.find(each.id) for several in expected for each in several)


@given(st.text(max_size=80), st.booleans())
@settings(max_examples=60, deadline=None)
def test_no_text_is_a_wrong_question(words, every):
    with fresh(NETWORK) as log:
        log.writer.append(key(1), "note", Note(topic="insight", text="a plain note", task=digest_of()), now_ms=NOW_MS)
        assert isinstance(log.texts.search(digest_of(), "note", words, limit=5, every=every), list)


def test_a_note_is_found_by_every_word_that_it_has():
    text = "LR 0.0083 -> 0.006: in the best 10 % of 212 runs; weight_decay über Größe 学習率 x"
    with fresh(NETWORK) as log:
        note = log.writer.append(key(1), "note", Note(topic="insight", text=text, task=digest_of()), now_ms=NOW_MS)
        for word in [*text.split(), "weight decay", "uber", "GROSSE"[:3], "runs"]:
            hits = log.texts.search(digest_of(), "note", word, limit=5)
            assert [hit.id for hit in hits] == ([note.id] if any(map(str.isalnum, word)) else []), word
        assert not log.texts.search(b"other" * 6 + b"ab", "note", "LR", limit=5)
        assert not log.texts.search(digest_of(), "worked", "LR", limit=5)


def test_the_index_is_whole_after_withdrawals_and_quotas(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK) as log:
        notes = [
            log.writer.append(
                key(1), "note", Note(topic="insight", text=f"note {number}", task=digest_of()), now_ms=NOW_MS
            )
            for number in range(20)
        ]
        log.writer.append(key(1), "withdrawal", {"reason": ""}, links=[note.id for note in notes[:10]], now_ms=NOW_MS)
        assert len(log.texts.search(digest_of(), "note", "note", limit=50)) == 10
    with sqlite3.connect(tmp_path / "log.sqlite") as connection:
        connection.execute("INSERT INTO text_index(text_index) VALUES('integrity-check')")
