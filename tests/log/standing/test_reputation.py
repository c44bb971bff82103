"""What the log shows of a participant: right in a row, marks with their evidence, the same for everybody."""

from __future__ import annotations

import msgspec
import pytest

from autoresearch.log.log import Log
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.participants import track_record, track_records
from autoresearch.log.standing.precedence import is_banned
from autoresearch.log.standing.queries import board, leaderboard
from autoresearch.log.standing.verification import counted_reports, judgement
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Claim, Identity, Withdrawal
from autoresearch.words import MARK_SENTENCES, Mark, RunState
from tests.log.standing.copying import pairs_in_rows
from tests.log.standing.test_verification_state import AUTHOR, OTHERS, ROOTS, TRUST, Story
from tests.log.standing.village import settled
from tests.record.making import DEFINITION, NETWORK, NOW_MS, key, run_body, sealed, task_body


def voter(device):
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
    author = track_record(settled(story.log), voter(AUTHOR))
    assert (author.consecutive_valid, author.confirmed, author.refuted) == (1, 1, 0)
    assert [track_record(settled(story.log), voter(who)).consecutive_valid for who in OTHERS[:4]] == [2, 2, 1, 0]
    assert not any(record.marks for record in track_records(settled(story.log)).values())


def test_who_came_to_the_number_of_a_run_that_is_no_better_was_right_and_its_author_not_wrong(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for who in OTHERS[:4]:
        story.replicate(who, [1.5, 1.51], [1.5, 1.51])
    assert story.state is RunState.NOT_REPLICATED
    assert [track_record(settled(story.log), voter(who)).consecutive_valid for who in OTHERS[:4]] == [2, 2, 2, 1]
    author = track_record(settled(story.log), voter(AUTHOR))
    assert (author.consecutive_valid, author.refuted, author.marks) == (0, 0, ())


def test_a_refuted_run_marks_its_author_and_who_passed_it(story: Story) -> None:
    stamp = story.evaluate(OTHERS[0], 1.2)
    against = [story.evaluate(OTHERS[1], 1.5)]
    against += [story.evaluate(who, 1.5, number=1) for who in OTHERS[2:5]]
    author = track_record(settled(story.log), voter(AUTHOR))
    assert [(mark.mark, mark.record) for mark in author.marks] == [(Mark.FABRICATOR, story.run.id)]
    assert set(author.marks[0].evidence) == {record.id for record in against}
    passed = track_record(settled(story.log), voter(OTHERS[0]))
    assert [(mark.mark, mark.record) for mark in passed.marks] == [(Mark.RUBBER_STAMP, stamp.id)]
    story.append(OTHERS[0], "withdrawal", Withdrawal(), links=[stamp.id])
    assert track_record(settled(story.log), voter(OTHERS[0])) == passed, "what one verified can't be made unsaid"
    assert (passed.consecutive_valid, passed.overruled) == (0, 1)
    assert all(track_record(settled(story.log), voter(who)).upheld == 1 for who in OTHERS[1:5])


def test_a_chosen_seed_bans_its_author_from_then_on_and_takes_nothing_back(story: Story) -> None:
    before = story.append(OTHERS[0], "run", run_body(1.4, source=b"before"))
    early = story.evaluate(OTHERS[0], 1.2)
    cheat = story.append(OTHERS[0], "run", run_body(0.5, source=b"lucky", seed=7))
    after = story.append(OTHERS[0], "run", run_body(1.3, source=b"after"))
    story.now_ms -= 60_000  # what it signs later comes later, whatever time it names
    backdated = story.append(OTHERS[0], "run", run_body(1.3, source=b"backdated"))
    story.now_ms += 60_000
    states = [judgement(story.log, record.id).state for record in (before, cheat, after, backdated)]
    assert states == [RunState.REPORTED, RunState.FRAUD, RunState.BANNED, RunState.BANNED]
    for who in OTHERS[1:3]:
        story.evaluate(who, 1.2)
    assert early.id in [record.id for record, report in counted_reports(story.log, story.run) if report.attested]
    assert judgement(story.log, story.run.id).state is RunState.PROVISIONAL
    late = story.replicate(OTHERS[0], [1.5, 1.5], [1.2, 1.2])
    assert late.id not in [record.id for record, report in counted_reports(story.log, story.run) if report.attested]
    track = track_record(settled(story.log), voter(OTHERS[0]))
    assert [(mark.mark, mark.record) for mark in track.marks] == [(Mark.FRAUD, cheat.id)]
    assert track.banned_until_ms == cheat.time + NETWORK.verify_ban_ms
    story.now_ms = track.banned_until_ms
    assert judgement(story.log, story.append(OTHERS[0], "run", run_body(1.3, source=b"a year on")).id).state is (
        RunState.REPORTED
    )


def test_a_withdrawn_fraud_stays_a_fraud(story: Story) -> None:
    cheat = story.append(OTHERS[0], "run", run_body(0.5, source=b"lucky", seed=7))
    story.append(OTHERS[0], "withdrawal", Withdrawal(), links=[cheat.id])
    assert [mark.mark for mark in track_record(settled(story.log), voter(OTHERS[0])).marks] == [Mark.FRAUD]


def test_a_lineage_that_is_made_up_is_fraud_whichever_record_comes_first(story: Story) -> None:
    other = task_body(DEFINITION | {"name": "another"})
    elsewhere = sealed(OTHERS[1], run_body(1.0, task=other.digest), seq=100, prev=bytes(32), time_ms=NOW_MS)
    run = story.append(OTHERS[0], "run", run_body(1.1, source=b"orphan", parent=elsewhere.id))
    assert judgement(story.log, run.id).state is RunState.REPORTED
    story.log.writer.ingest([(elsewhere.raw, elsewhere.signature)], now_ms=NOW_MS)
    assert judgement(story.log, run.id).state is RunState.FRAUD


def test_a_verifier_that_chose_its_seeds_is_a_fraud(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [1.5, 1.5], [1.2, 1.2], own_seeds=True)
    assert [mark.mark for mark in track_record(settled(story.log), voter(OTHERS[0])).marks] == [Mark.FRAUD]


def test_who_publishes_anothers_run_as_a_discovery_is_a_copier(story: Story) -> None:
    copy = story.append(OTHERS[0], "run", run_body(1.2, source=b"child", parent=story.parent.id, title="all mine"))
    track = track_record(settled(story.log), voter(OTHERS[0]))
    assert [(mark.mark, mark.record, mark.evidence) for mark in track.marks] == [
        (Mark.COPIER, copy.id, (story.run.id,))
    ]
    assert track_record(settled(story.log), voter(AUTHOR)).marks == ()


def test_repeating_a_run_or_having_the_same_idea_is_no_copy(story: Story) -> None:
    story.append(OTHERS[0], "run", run_body(1.2, source=b"child", parent=story.parent.id, replicate=1))
    story.append(OTHERS[1], "run", run_body(1.2, source=b"child"))  # as it stands, without a claim to have changed it
    digest = run_body(1.0, source=b"idea").source_digest
    claim = Claim(task=story.run.body.task, source_digest=digest, until=story.now_ms + 10**6)
    story.append(OTHERS[2], "claim", claim)
    story.append(AUTHOR, "run", run_body(1.1, source=b"idea", parent=story.run.id))
    story.append(OTHERS[2], "run", run_body(1.1, source=b"idea", parent=story.run.id))
    assert not any(record.marks for record in track_records(settled(story.log)).values())


def test_anothers_checkpoint_under_another_program_is_a_copy_and_ranks_nowhere(story: Story) -> None:
    model = BlobRef(sha256=b"m" * 32, size=5)
    first = story.append(AUTHOR, "run", run_body(1.0, source=b"first", parent=story.run.id, checkpoint=model))
    copy = story.append(OTHERS[0], "run", run_body(0.9, source=b"copy", parent=story.run.id, checkpoint=model))
    own = story.append(AUTHOR, "run", run_body(1.05, source=b"own", parent=story.run.id, checkpoint=model))
    board = [program.id for program in leaderboard(story.log, story.run.body.task)]
    assert board[0] == format_id(first.id)
    assert format_id(copy.id) not in board
    assert format_id(own.id) in board
    assert [mark.mark for mark in track_record(settled(story.log), voter(OTHERS[0])).marks] == [Mark.COPIER]


def test_an_earlier_date_takes_nothing_from_what_others_had_measured(story: Story) -> None:
    model = BlobRef(sha256=b"m" * 32, size=5)
    thief, body = OTHERS[4], run_body(1.2, source=b"great", parent=story.parent.id, checkpoint=model)
    honest = story.run = story.append(AUTHOR, "run", body)
    then_ms = story.now_ms

    def steal(source: bytes) -> None:
        now_ms, story.now_ms = story.now_ms, then_ms - 5000
        story.append(thief, "run", run_body(1.2, source=source, parent=story.parent.id, checkpoint=model))
        story.now_ms = now_ms

    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for who in OTHERS[:2]:
        story.replicate(who, [1.5, 1.5], [1.2, 1.2])
    steal(b"great")
    steal(b"the same, rewritten")
    assert judgement(story.log, honest.id).state is RunState.CONFIRMED
    assert not track_record(settled(story.log), voter(AUTHOR)).marks
    assert board(story.log, body.task, trust_context(story.log), limit=9)[0].id == format_id(honest.id)


def test_who_was_measured_first_by_two_others_was_there_first(story: Story) -> None:
    copy = story.append(OTHERS[0], "run", run_body(1.2, source=b"child", parent=story.parent.id))
    original, story.run = story.run, copy
    story.evaluate(OTHERS[1], 1.2)
    assert [mark.mark for mark in track_record(settled(story.log), voter(OTHERS[0])).marks] == [Mark.COPIER]
    story.run = original
    for who in OTHERS[1:3]:
        story.evaluate(who, 1.2)
    story.run = copy
    story.evaluate(OTHERS[2], 1.2)
    assert [mark.mark for mark in track_record(settled(story.log), voter(OTHERS[0])).marks] == [Mark.COPIER]


def marked(story: Story, who) -> list[Mark]:
    with Log.open(settled(story.log).path, NETWORK, trust=TRUST, read_only=True) as fresh:
        assert track_records(fresh) == track_records(story.log), "what is remembered is what a new look finds"
    return [mark.mark for mark in track_record(settled(story.log), voter(who)).marks]


def measured(story: Story, run, *people) -> None:
    """These people measure a run."""
    before, story.run = story.run, run
    for who in people:
        story.evaluate(who, 1.2)
    story.run = before


def test_a_copy_that_two_others_measured_stays_one_when_it_is_withdrawn(story: Story) -> None:
    copier, copy = OTHERS[0], run_body(1.2, source=b"child", parent=story.parent.id)
    measured(story, story.run, *OTHERS[1:3])
    quick = story.append(copier, "run", copy)
    assert marked(story, copier) == [Mark.COPIER]
    story.append(copier, "withdrawal", Withdrawal(), links=[quick.id])
    assert marked(story, copier) == [], "nobody had measured it: who finds that another had it takes it back"

    slow = story.append(copier, "run", copy)
    measured(story, slow, OTHERS[1], AUTHOR)
    story.append(copier, "withdrawal", Withdrawal(), links=[slow.id])
    assert marked(story, copier) == [], "who published it first and one other are not two others"
    measured(story, slow, OTHERS[2])
    assert marked(story, copier) == [Mark.COPIER]
    assert track_record(settled(story.log), voter(copier)).marks[0].evidence == (story.run.id,)
    assert story.log.evidence.originals([slow.id])[slow.id] == story.run.id
    story.append(AUTHOR, "withdrawal", Withdrawal(), links=[story.run.id])
    assert marked(story, copier) == [], "nobody stands by the first any more"


def test_a_withdrawn_run_makes_nobody_else_a_copier(story: Story) -> None:
    withdrawn = story.append(AUTHOR, "run", run_body(1.2, source=b"idea", parent=story.parent.id))
    measured(story, withdrawn, *OTHERS[1:4])
    story.append(AUTHOR, "withdrawal", Withdrawal(), links=[withdrawn.id])
    story.append(OTHERS[0], "run", run_body(1.2, source=b"idea", parent=story.parent.id))
    assert not any(record.marks for record in track_records(settled(story.log)).values())


def test_what_a_withdrawn_run_may_be_a_copy_of_is_what_a_run_may(story: Story) -> None:
    model = BlobRef(sha256=b"m" * 32, size=5)
    first = story.append(AUTHOR, "run", run_body(1.0, source=b"first", parent=story.run.id, checkpoint=model))
    measured(story, first, *OTHERS[3:5])
    bodies = {
        OTHERS[0]: run_body(0.9, source=b"copy", parent=story.run.id, checkpoint=model),
        OTHERS[1]: run_body(1.0, source=b"first", parent=story.run.id, checkpoint=model, replicate=1),
        OTHERS[2]: run_body(1.0, source=b"first", checkpoint=model),
    }
    for who, body in bodies.items():
        run = story.append(who, "run", body)
        measured(story, run, *OTHERS[3:5])
        story.append(who, "withdrawal", Withdrawal(), links=[run.id])
    assert [marked(story, who) for who in bodies] == [[Mark.COPIER], [], []], "two only repeated it"


def test_who_repeats_what_a_quorum_said_earns_nothing(story: Story) -> None:
    bodies = [story.evaluation(who, 1.2) for who in OTHERS[:4]]
    fixed = [story.commit(who, body) for who, body in zip(OTHERS[:3], bodies, strict=False)]
    for number, who in enumerate(OTHERS[:3]):
        story.reveal(who, bodies[number], fixed[number], *fixed)
    story.reveal(OTHERS[3], bodies[3], story.commit(OTHERS[3], bodies[3]), *fixed)
    assert [track_record(settled(story.log), voter(who)).upheld for who in OTHERS[:4]] == [1, 1, 1, 0]


def test_who_says_the_same_again_was_right_once(story: Story) -> None:
    bodies = [story.evaluation(who, 1.2) for who in OTHERS[:3]]
    committed = [story.commit(who, body) for who, body in zip(OTHERS, bodies, strict=False)]
    for who, body in zip(OTHERS, bodies, strict=False):
        for _ in range(3):
            story.reveal(who, body, *committed)
    story.evaluate(OTHERS[0], 1.2, number=1)  # nobody asks: nobody doubts the run
    assert story.state is RunState.PROVISIONAL
    assert [track_record(settled(story.log), voter(who)).consecutive_valid for who in OTHERS[:3]] == [1, 1, 1]


def test_whoever_ran_pairs_of_a_run_that_was_refuted_was_not_wrong(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for who in OTHERS[3:5]:
        story.replicate(who, [1.5, 1.5], [1.2, 1.2])
    story.evaluate(OTHERS[5], 1.5)
    for who in OTHERS[3:6]:
        story.evaluate(who, 1.5, number=1)
    assert story.state is RunState.REFUTED
    results = [track_record(settled(story.log), voter(who)) for who in OTHERS[3:5]]
    assert [(record.upheld, record.overruled) for record in results] == [(1, 0), (1, 0)]


@pytest.mark.parametrize("lie", [-9.0, 9.0])
def test_whoever_finds_another_improvement_than_most_was_neither_right_nor_wrong(story: Story, lie: float) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [1.2 + lie, 1.2 + lie], [1.2, 1.2])
    for who in OTHERS[1:6]:
        story.replicate(who, [1.5, 1.5], [1.2, 1.21])
    assert story.state is RunState.CONFIRMED
    results = [track_record(settled(story.log), voter(who)) for who in OTHERS[:6]]
    assert [record.consecutive_valid for record in results] == [1, 2, 2, 1, 1, 1]  # the first for its evaluation alone
    assert not any(record.overruled for record in results)


def test_what_is_remembered_is_what_a_new_look_finds(story: Story, tmp_path) -> None:
    steps = [
        lambda: story.evaluate(OTHERS[0], 1.2),
        lambda: story.append(OTHERS[1], "run", run_body(1.2, source=b"child", parent=story.parent.id)),
        lambda: story.evaluate(OTHERS[1], 1.5),
        lambda: story.append(OTHERS[5], "run", run_body(0.5, source=b"lucky", seed=7)),
        lambda: story.evaluate(OTHERS[2], 1.5, number=1),
        lambda: story.append(
            OTHERS[1], "withdrawal", Withdrawal(), links=[story.log.verifications.of(story.run.id)[1].id]
        ),
        lambda: [story.evaluate(who, 1.5, number=1) for who in OTHERS[3:6]],
        lambda: story.append(ROOTS[OTHERS[2].public], "identity", revocation(OTHERS[2])),
    ]
    for step in steps:
        step()
        settled(story.log)
        with Log.open(story.log.path, NETWORK, trust=TRUST, read_only=True) as fresh:
            for look in (track_records, bans_of, words):
                assert look(story.log) == look(fresh)


def second(story: Story) -> bytes:
    return story.log.verifications.of(story.run.id)[1].id


def revocation(device):
    return Identity(action="revoke", root=ROOTS[device.public].public, device=device.public)


def bans_of(log: Log):
    return {device.public: is_banned(log, voter(device), 2**50) for device in OTHERS}


def words(log: Log):
    return {record.id: judgement(log, record.id) for record in log.records.newest(kind="run")}


def test_every_mark_has_a_sentence() -> None:
    assert set(MARK_SENTENCES) == set(Mark)


def test_a_flood_of_one_checkpoint_and_one_program_accuses_nobody_and_each_later_copy_is_one_row(story: Story) -> None:
    model, spammer, runs = BlobRef(sha256=b"m" * 32, size=5), key(77), 60
    first = run_body(1.0, source=b"first", parent=story.run.id, checkpoint=model)
    bodies = [first, *(msgspec.structs.replace(first, title=str(number)) for number in range(1, runs))]
    flood = [sealed(spammer, body, seq=seq, time_ms=NOW_MS) for seq, body in enumerate(bodies, start=1)]
    story.log.writer.ingest([(record.raw, record.signature) for record in flood], now_ms=story.now_ms)
    first_here = story.append(AUTHOR, "run", first)
    assert not any(each.marks for each in track_records(settled(story.log)).values())
    assert pairs_in_rows(story.log) == set()
    later = [sealed(spammer, body, seq=seq + runs, time_ms=story.now_ms + 1000) for seq, body in enumerate(bodies, 1)]
    story.log.writer.ingest([(record.raw, record.signature) for record in later], now_ms=story.now_ms)
    rows = pairs_in_rows(settled(story.log))
    assert len(rows) == 2 * runs
    assert {pair.original for pair in rows} == {first_here.id}
