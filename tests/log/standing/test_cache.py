"""What is answered is what a new look finds, whatever comes and whoever is trusted; snapshots hold still."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.ask.lookup import find_task
from autoresearch.ask.requests import ProgressOf, RunsOf
from autoresearch.ask.runs.boards import top_answer
from autoresearch.ask.runs.progress import progress_answer
from autoresearch.ask.runs.rows import runs_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import checked, contenders, preferred, vouched
from autoresearch.log.standing.cache import ANSWERS_KEPT, cached, cached_answer, roster_of
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.participants import track_record, track_records
from autoresearch.log.standing.queries import board, leaderboard, statistics
from autoresearch.log.standing.verification import judgement
from autoresearch.log.tables.runs import KINDS
from autoresearch.propose.search.effects import Comparisons
from autoresearch.record.kinds import Note, Run, Withdrawal
from autoresearch.trust.roster import Trust
from tests.log.standing.copying import copies, models
from tests.log.standing.village import ANN, AUTHOR, BEN, Village, settled
from tests.log.universe import DEVICES, ROOT, SMALL, WITNESSES, records
from tests.record.making import NETWORK, NOW_MS, digest_of, key, pairs, run_body

PEOPLE = (ROOT, *DEVICES, *WITNESSES, key(7))
TRUST = Trust(participants=frozenset(person.public for person in PEOPLE))
TRUSTS = [TRUST, Trust(), *(Trust(participants=frozenset({root.public})) for root in (ROOT, DEVICES[0]))]


def seen(log: Log):
    """Everything that is computed from who is attested, verifications, frauds and copies."""
    runs = [record for record in log.records.newest(limit=1000) if isinstance(record.body, Run)]
    words = {record.id: judgement(log, record.id) for record in runs}
    voters = {record.id: roster_of(log).voter(record.author, record.time) for record in runs}
    context = trust_context(log, DEVICES[1].public)
    order = [program.id for program in leaderboard(log, digest_of())]
    counted = list(vouched(log, digest_of(), context, own=True))
    ranked = order, counted, board(log, digest_of(), context, limit=9), preferred(log, digest_of(), context)
    numbers = statistics(log, digest_of())
    verified = [list(checked(log, digest_of(), context, {*kinds.values()})) for kinds in KINDS]
    verified.append(contenders(log, digest_of(), context, limit=5, each=2))
    tracks = track_records(log)
    assert all(track_record(log, voter) == track for voter, track in tracks.items())
    compared = Comparisons(log, digest_of(), DEVICES[1].public).effects
    return words, numbers, voters, ranked, verified, tracks, models(log), copies(log), compared


@pytest.mark.slow
@given(records(), st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_what_is_remembered_is_what_a_new_look_finds(made, seed: int) -> None:
    dice = random.Random(seed)
    mixed = dice.sample(made, len(made))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.sqlite"
        with Log.open(path, SMALL, trust=TRUST) as log:
            seen(settled(log))
            for record in mixed:
                log.writer.ingest(pairs([record]), now_ms=NOW_MS + 10)
                if dice.random() < 0.1:  # another trust list makes all results anew
                    log.trust = dice.choice(TRUSTS)
                if dice.random() < 0.5:
                    settle(log, seconds=10)
                with Log.open(path, SMALL, trust=log.trust, read_only=True) as fresh:
                    assert seen(log) == seen(fresh)
            log.trust = TRUST
            log.writer.ingest(pairs(made), now_ms=NOW_MS + 10)  # peers offer again what another list left no room for
            settle(log, seconds=10)
            last = seen(log)
        with Log.open(Path(folder) / "other.sqlite", SMALL, trust=TRUST) as other:
            other.writer.ingest(pairs(made), now_ms=NOW_MS + 10)
            settle(other, seconds=10)
            assert seen(other) == last


def test_a_run_that_is_taken_back_is_no_longer_counted(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", SMALL, trust=TRUST) as log:
        run = log.writer.append(DEVICES[0], "run", run_body(1.0), now_ms=NOW_MS)
        assert statistics(log, digest_of()).runs == 1
        log.writer.append(DEVICES[0], "withdrawal", Withdrawal(), now_ms=NOW_MS, links=[run.id])
        assert statistics(log, digest_of()).runs == 0


def test_a_question_does_not_see_what_comes_meanwhile(tmp_path) -> None:
    path = tmp_path / "log.sqlite"
    with Log.open(path, SMALL, trust=TRUST) as log, Log.open(path, SMALL) as other:

        def slow() -> tuple[int, int]:
            before = len(log.records.newest())
            if not before:  # meanwhile another process writes
                other.writer.append(key(7), "note", Note(topic="insight", text="x"), now_ms=NOW_MS)
                assert roster_of(other)
            return before, len(log.records.newest())

        assert cached(log, "records", slow) == (0, 0)
        assert cached(log, "records", slow) == (1, 1)


def test_the_last_answers_to_a_question_are_kept_until_the_log_changes(tmp_path) -> None:
    computed: list[int] = []

    def ask(number: int) -> int:
        def compute() -> int:
            computed.append(number)
            return log.records.count()

        return cached_answer(log, "records", number, compute)

    with Log.open(tmp_path / "log.sqlite", SMALL, trust=TRUST) as log:
        assert [ask(number) for number in [*range(ANSWERS_KEPT)] * 2] == [0] * 2 * ANSWERS_KEPT
        assert computed == list(range(ANSWERS_KEPT))
        # However many ways there are to ask, no more answers are kept.
        ask(ANSWERS_KEPT)
        ask(0)
        assert computed == [*range(ANSWERS_KEPT), ANSWERS_KEPT, 0]
        log.writer.append(key(7), "note", Note(topic="insight", text="x"), now_ms=NOW_MS)
        assert ask(0) == 1


def test_lists_charts_and_boards_that_were_asked_for_before_are_those_of_a_new_look(tmp_path) -> None:
    village = Village.at(tmp_path)
    log, blobs = village.log, BlobStore(tmp_path / "blobs")

    def answers(log: Log) -> list[object]:
        task = find_task(log)
        requests = [RunsOf(), RunsOf(where="value<1.5"), RunsOf(state="leading"), RunsOf(sort="value"), RunsOf(size=1)]
        charts = [ProgressOf(), ProgressOf(where="value<1.5"), ProgressOf(x="time", since=village.now_ms - 2500)]
        return [
            *(runs_answer(log, blobs, task, request) for request in requests),
            *(progress_answer(log, blobs, task, request) for request in charts),
            *(top_answer(log, task, limit=limit, author=who.public) for limit in (1, 50) for who in (ANN, BEN)),
        ]

    before: list[object] = []
    for number in range(5):
        assert before != (before := answers(settled(log)))
        assert before == answers(log)
        with Log.open(tmp_path / "log.sqlite", NETWORK, trust=log.trust, read_only=True) as fresh:
            assert before == answers(fresh)
        if number < 3:
            run = village.run(1.5 - number / 10, f"program {number}")
        elif number == 3:
            village.append(AUTHOR, "withdrawal", Withdrawal(), [run.id])
    log.close()
    blobs.close()


def test_nothing_is_written_in_a_snapshot(tmp_path) -> None:
    with Log.open(tmp_path / "log.sqlite", SMALL, trust=TRUST) as log:
        with log.reader.snapshot(), pytest.raises(AssertionError):
            log.writer.append(key(7), "note", Note(topic="insight", text="x"), now_ms=NOW_MS)
        log.writer.append(key(7), "note", Note(topic="insight", text="x"), now_ms=NOW_MS)
        assert log.records.count() == 1
