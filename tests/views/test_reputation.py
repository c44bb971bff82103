"""What the log shows of a participant: right in a row, marks with their evidence, the same for everybody."""

from __future__ import annotations

import pytest

from autoresearch.log import Log
from autoresearch.views import track_record, track_records
from autoresearch.words import MARK_SENTENCES, Mark
from tests.records.making import NETWORK
from tests.views.test_standing import AUTHOR, OTHERS, ROOTS, TRUST, Story


def voice(device):
    return ROOTS[device.public].public


@pytest.fixture
def story(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        yield Story(log)


def test_who_was_right_counts_up_and_nobody_is_marked(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for who in OTHERS[:2]:
        story.replicate(who, [1.5, 1.5], [1.2, 1.2])
    author = track_record(story.log, voice(AUTHOR))
    assert (author.consecutive_valid, author.confirmed, author.refuted) == (1, 1, 0)
    assert [track_record(story.log, voice(who)).consecutive_valid for who in OTHERS[:4]] == [2, 2, 1, 0]
    assert not any(found.marks for found in track_records(story.log).values())


def test_a_refuted_run_marks_its_author_and_who_passed_it(story: Story) -> None:
    stamp = story.evaluate(OTHERS[0], 1.2)
    against = [story.evaluate(OTHERS[1], 1.5)]
    against += [story.evaluate(who, 1.5, number=1) for who in OTHERS[2:5]]
    author = track_record(story.log, voice(AUTHOR))
    assert [(found.mark, found.record) for found in author.marks] == [(Mark.FABRICATOR, story.run.id)]
    assert set(author.marks[0].evidence) == {record.id for record in against}
    passed = track_record(story.log, voice(OTHERS[0]))
    assert [(found.mark, found.record) for found in passed.marks] == [(Mark.RUBBER_STAMP, stamp.id)]
    assert (passed.consecutive_valid, passed.overruled) == (0, 1)
    assert all(track_record(story.log, voice(who)).upheld == 1 for who in OTHERS[1:5])


def test_every_mark_has_a_sentence() -> None:
    assert set(MARK_SENTENCES) == set(Mark)
