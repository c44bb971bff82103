"""What a contest makes of its submissions: places, and a reason for each that takes none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from autoresearch.ask.challenges import board as contest_board
from autoresearch.ask.challenges.answers import ChallengeAnswer, SubmissionView
from autoresearch.ask.challenges.board import challenge_answer
from autoresearch.errors import NotFound
from autoresearch.log.blobs import BlobStore
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Contest
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, ROOTS, STRANGER, TRUST, Village, settled
from tests.record.making import DEFINITION

FAR_MS = 10**9


@pytest.fixture
def village(tmp_path: Path) -> Iterator[Village]:
    """The author's participant founded the network."""
    made = Village.at(tmp_path, replace(TRUST, founders=frozenset({ROOTS[0].public})))
    yield made
    made.log.close()


def hold(village: Village, *, ends_in: int = FAR_MS, by: KeyPair = AUTHOR, runs: int = 0, title: str = "") -> Record:
    """The contest begins now."""
    body = Contest(
        task=village.task, title=title, begins=village.now_ms + 1, ends=village.now_ms + 1 + ends_in, runs=runs
    )
    return village.append(by, "challenge", body)


def answer_of(village: Village, *, now_ms: int | None = None, me: KeyPair = AUTHOR) -> ChallengeAnswer:
    with BlobStore(village.log.path.with_name("blobs")) as blobs:
        return challenge_answer(settled(village.log), blobs, now_ms=now_ms or village.now_ms, me=me.public, every=True)


def submission(answer: ChallengeAnswer, run: Record) -> SubmissionView:
    return next(each for each in answer.submissions if each.id == format_id(run.id))


def test_without_a_challenge_there_is_no_contest(village: Village) -> None:
    with pytest.raises(NotFound, match="holds no contest"):
        answer_of(village)


def test_only_founders_hold_a_contest_and_their_last_word_counts(village: Village) -> None:
    first = hold(village, title="tea")
    for other in (ANN, STRANGER):
        hold(village, by=other, ends_in=1, title="mine")
    assert (answer_of(village).title, answer_of(village).id) == ("tea", format_id(first.id))
    with village.earlier(3_000):  # a clock that was put right: what links the one before is the later word
        body = Contest(task=village.task, title="tea", begins=first.time, ends=first.time + 5000)
        later = village.append(AUTHOR, "challenge", body, [first.id])
    assert answer_of(village).id == format_id(later.id)
    assert answer_of(village).ended == (village.now_ms >= first.time + 5000)


def test_who_asks_is_told_whether_it_may_set_the_end(village: Village) -> None:
    hold(village)
    assert [answer_of(village, me=who).founder for who in (AUTHOR, ANN, STRANGER)] == [True, False, False]


@pytest.mark.slow
def test_every_submission_has_a_reason(village: Village) -> None:
    early = village.run(1.9, "early")
    hold(village, ends_in=200_000)
    confirmed, refuted = village.run(1.5, "deeper", by=ANN), village.run(1.2, "lucky", by=BEN)
    waiting = village.run(1.7, "unseen", by=CEM)
    failed = village.run(None, "crash", by=DOT, status="crashed", reason="ValueError: X")
    repeated = village.run(1.52, "deeper", by=ANN, replicate=1)
    village.confirm(confirmed, 2.0, 1.5)
    village.refute(refuted, 1.9)
    village.now_ms += 400_000
    late = village.run(1.0, "too late", by=EVE)
    answer = answer_of(village)
    expected = {
        early.id: ("early", "before the contest"),
        confirmed.id: ("confirmed", "better than its parent"),
        refuted.id: ("refuted", "measured another value"),
        waiting.id: ("reported", "verifiers have not decided"),
        failed.id: ("crashed", "the program stopped with an error: ValueError: X"),
        repeated.id: ("repetition", "a further run of the program of"),
        late.id: ("late", "after the end"),
    }
    for run, (outcome, reason) in expected.items():
        view = next(each for each in answer.submissions if each.id == format_id(run))
        assert view.outcome == outcome, view
        assert reason in view.reason, view
    assert len(answer.submissions) == len(expected) + 1, "the first run of the village is one too"
    assert [submission(answer, run).position for run in (confirmed, waiting, late)] == [1, 0, 0]
    assert format_id(late.id) not in {program.id for program in answer.programs}
    assert answer.ended
    assert answer.waiting == 1


def test_what_comes_after_the_end_takes_no_place_from_others(village: Village) -> None:
    hold(village, ends_in=300_000)
    first = village.run(1.5, "first", by=ANN)
    village.confirm(first, 2.0, 1.5)
    village.now_ms += 400_000
    better = village.run(1.2, "better, and late", by=BEN)
    village.confirm(better, 2.0, 1.2)
    answer = answer_of(village)
    assert [program.id for program in answer.programs if program.position == 1] == [format_id(first.id)]
    assert submission(answer, better).outcome == "late"
    assert answer.contestants[0].best == submission(answer, first)


def test_a_time_that_is_dated_back_does_not_help(village: Village) -> None:
    hold(village, ends_in=100_000)
    village.now_ms += 200_000
    village.run(1.6, "late", by=ANN)
    with village.earlier(150_000):
        dated = village.run(1.5, "dated back", by=ANN)
    assert submission(answer_of(village), dated).outcome == "late"


def test_beyond_the_quota_runs_of_a_participant_do_not_count(village: Village) -> None:
    hold(village, runs=2)
    runs = [village.run(1.9 - number / 10, f"run {number}", by=ANN) for number in range(4)]
    stopped = village.run(None, "stopped", by=BEN, status="cancelled")
    others = [village.run(1.4 - number / 10, f"other {number}", by=BEN) for number in range(2)]
    answer = answer_of(village)
    assert [submission(answer, run).outcome == "over quota" for run in runs] == [False, False, True, True]
    assert "run 3, of 2 runs that count" in submission(answer, runs[2]).reason
    assert all(submission(answer, run).counts for run in others), "a run that somebody stopped says nothing"
    assert submission(answer, stopped).outcome == "cancelled"
    by_key = {each.participant.key: each for each in answer.contestants}
    ann, ben = by_key[ROOTS[1].public.hex()], by_key[ROOTS[2].public.hex()]
    assert (ann.runs, ann.counted, ben.runs, ben.counted) == (4, 2, 3, 3)
    assert ann.best == submission(answer, runs[1])


def test_a_copy_takes_the_place_of_nobody(village: Village) -> None:
    hold(village)
    original = village.run(1.5, "mine", by=ANN)
    village.confirm(original, 2.0, 1.5)
    copied = village.run(1.5, "mine", by=BEN)
    answer = answer_of(village)
    assert submission(answer, original).position == 1
    assert submission(answer, copied).position == 0
    assert submission(answer, copied).outcome in ("copy", "repetition")


@pytest.mark.slow
def test_first_places_are_compared_by_what_verifiers_measured(village: Village) -> None:
    hold(village)
    for number, (who, value) in enumerate(((ANN, 1.2), (BEN, 1.5), (CEM, 1.51))):
        run = village.run(value, f"program {number}", by=who)
        village.confirm(run, 2.0, value)
    answer = answer_of(village)
    assert len(answer.comparisons) == 3
    assert "beyond the noise" in answer.comparisons[0].sentence
    assert "within the noise" in answer.comparisons[2].sentence
    bests = [each.best for each in answer.contestants if each.best and each.best.position]
    assert [best.position for best in bests] == [1, 2, 2]


def test_strangers_take_no_place_and_hide_nobody(village: Village, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest_board, "_STRANGERS_MOST", 3)
    hold(village)
    flood = [village.run(1.0 - number / 100, f"flood {number}", by=STRANGER) for number in range(6)]
    fair = village.run(1.5, "fair", by=ANN)
    answer = answer_of(village)
    assert submission(answer, fair).outcome == "reported"
    assert submission(answer, flood[0]).outcome == "unattested"
    assert not submission(answer, flood[0]).counts
    assert sum(each.outcome == "unattested" for each in answer.submissions) == 3
    assert format_id(flood[5].id) not in {program.id for program in answer.programs if program.position}


def test_a_refuted_run_is_not_the_best_of_its_participant(village: Village) -> None:
    hold(village)
    fair, lucky = village.run(1.7, "fair", by=ANN), village.run(1.0, "lucky", by=ANN)
    village.refute(lucky, 1.9)
    answer = answer_of(village)
    assert next(each.best for each in answer.contestants if each.runs) == submission(answer, fair)


def test_a_run_on_other_hardware_is_told_so_where_time_is_measured(tmp_path: Path) -> None:
    clock = DEFINITION | {"budget": {"unit": "seconds", "amount": 60.0}}
    village = Village.at(tmp_path, replace(TRUST, founders=frozenset({ROOTS[0].public})), clock)
    hold(village)
    fair = [village.run(1.8 - number / 10, f"here {number}", by=ANN, device="a big card") for number in range(3)]
    elsewhere = village.run(1.2, "elsewhere", by=BEN, device="a small card")
    answer = answer_of(village)
    assert "the board compares runs on a big card" in submission(answer, elsewhere).reason
    assert "the board compares" not in submission(answer, fair[0]).reason
    village.log.close()
