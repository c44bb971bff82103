"""The word for a run from real records: who is trusted, whose proof holds, what numbers say, who verifies next."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE, in_time
from autoresearch.log.log import Log
from autoresearch.log.standing.jobs import job_for, next_job
from autoresearch.log.standing.verification import counted_reports, judge_now, judgement
from autoresearch.record.kinds import Attestation, Commitment, Identity, Verification
from autoresearch.record.record import Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState
from tests.record.making import DEFINITION, NETWORK, NOW_MS, commitment, digest_of, key, opened, run_body, task_body

AUTHOR, *OTHERS = (key(number) for number in range(1, 8))
ROOTS = {pair.public: key(100 + number) for number, pair in enumerate([AUTHOR, *OTHERS])}
STRANGER = key(50)
TRUST = Trust(participants=frozenset(root.public for root in ROOTS.values()))


class Story:
    """A log in which everybody has an identity, and a parent and a child of one author."""

    def __init__(self, log: Log) -> None:
        self.log, self.now_ms = log, NOW_MS
        for device, root in zip([AUTHOR, *OTHERS], ROOTS.values(), strict=True):
            self.append(root, "identity", Identity(action="delegate", root=root.public, device=device.public))
            self.append(device, "identity", Identity(action="profile", root=root.public))
        self.append(AUTHOR, "task", task_body())
        self.parent = self.append(AUTHOR, "run", run_body(1.5, source=b"parent"))
        self.run = self.append(AUTHOR, "run", run_body(1.2, source=b"child", parent=self.parent.id))

    def append(self, author: KeyPair, kind: str, body: object, links=()) -> Record:
        self.now_ms += 1000
        return self.log.writer.append(author, kind, body, now_ms=self.now_ms, links=links)

    def evaluate(self, who: KeyPair, value: float | None, *, number: int = 0, proof: bytes | None = None) -> Record:
        proof = ecvrf.prove(bytes(who.key), question(self.run.id, EVALUATE, number)) if proof is None else proof
        body = Verification(run=self.run.id, stage=EVALUATE, round=number, verdict="pass", value=value, proof=proof)
        return self.reveal(who, body, self.commit(who, body))

    def replicate(
        self,
        who: KeyPair,
        parents: list[float],
        children: list[float],
        *,
        own_seeds: bool = False,
        number: int = 0,
    ) -> Record:
        proof = ecvrf.prove(bytes(who.key), question(self.run.id, REPLICATE, number))
        drawn = list(range(len(children))) if own_seeds else seeds(ecvrf.output(proof), len(children))
        body = Verification(
            run=self.run.id,
            stage=REPLICATE,
            round=number,
            verdict="pass",
            proof=proof,
            seeds=drawn,
            values=children,
            parent_values=parents,
        )
        return self.reveal(who, body, self.commit(who, body))

    def commit(self, who: KeyPair, body: Verification) -> Record:
        return self.append(who, "commitment", commitment(who, body))

    def reveal(self, who: KeyPair, body: Verification, *commitments: Record) -> Record:
        links = [body.run, *(record.id for record in commitments)]
        return self.append(who, "verification", opened(body), links=links)

    def evaluation(self, who: KeyPair, value: float, *, number: int = 0) -> Verification:
        proof = ecvrf.prove(bytes(who.key), question(self.run.id, EVALUATE, number))
        return Verification(run=self.run.id, stage=EVALUATE, round=number, verdict="pass", value=value, proof=proof)

    @property
    def state(self) -> RunState:
        return judgement(self.log, self.run.id).state


@pytest.fixture
def story(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        yield Story(log)


def test_what_others_measure_and_replicate_is_confirmed(story: Story) -> None:
    assert story.state is RunState.REPORTED
    for who in OTHERS[:3]:
        story.evaluate(who, 1.21)
    assert story.state is RunState.PROVISIONAL
    story.replicate(OTHERS[0], [1.5, 1.52], [1.2, 1.21])
    assert story.state is RunState.PROVISIONAL
    story.replicate(OTHERS[1], [1.49, 1.5], [1.19, 1.22])
    result = judgement(story.log, story.run.id)
    assert result.state is RunState.CONFIRMED
    assert result.value == pytest.approx(1.205)
    assert (result.runs, result.voters) == (4, 3)


def test_a_parent_that_is_good_at_home_only_is_disputed_and_confirms_no_child(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    assert judgement(story.log, story.parent.id).state is RunState.REPORTED
    story.replicate(OTHERS[0], [1.9, 1.92], [1.2, 1.21])
    assert judgement(story.log, story.parent.id).state is RunState.REPORTED
    story.replicate(OTHERS[1], [1.89, 1.9], [1.19, 1.22])
    assert story.state is RunState.PROVISIONAL
    assert judgement(story.log, story.parent.id).state is RunState.DISPUTED


def test_errors_of_a_quorum_are_a_dispute(story: Story) -> None:
    for who in OTHERS[:3]:
        assert story.state is RunState.REPORTED
        body = replace_verdict(story.evaluation(who, 1.2), "error")
        story.reveal(who, body, story.commit(who, body))
    assert story.state is RunState.DISPUTED


def replace_verdict(body: Verification, verdict: str) -> Verification:
    return msgspec.structs.replace(body, verdict=verdict, value=None)


def test_a_claim_that_nobody_comes_to_is_disputed_and_then_refuted(story: Story) -> None:
    story.evaluate(OTHERS[0], 1.4)
    assert story.state is RunState.DISPUTED
    for who in OTHERS[1:4]:
        story.evaluate(who, 1.41, number=1)
    assert story.state is RunState.REFUTED


def test_whose_word_does_not_count(story: Story) -> None:
    for who in (AUTHOR, STRANGER):
        story.evaluate(who, 1.2)
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2, proof=ecvrf.prove(bytes(who.key), b"another question"))
    assert story.state is RunState.REPORTED
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    assert story.state is RunState.PROVISIONAL
    with Log.open(story.log.path, NETWORK) as trusting_nobody:
        assert judge_now(trusting_nobody, story.run).state is RunState.REPORTED


def test_seeds_that_do_not_follow_from_the_proof_count_for_nothing(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for who in OTHERS[:2]:
        story.replicate(who, [1.5, 1.5], [1.2, 1.2], own_seeds=True)
    assert story.state is RunState.PROVISIONAL


def test_a_seed_that_somebody_chose_is_fraud(story: Story) -> None:
    body = run_body(0.9, source=b"lucky", seed=12345)
    assert judgement(story.log, story.append(AUTHOR, "run", body).id).state is RunState.FRAUD


def test_duties_lead_a_run_from_reported_to_confirmed_and_then_there_are_none(story: Story) -> None:
    done = []
    for _ in range(40):
        for who in OTHERS:
            job = job_for(story.log, story.run.id, who.public, bytes(who.key), story.now_ms)
            if job is None:
                continue
            done.append(job.stage)
            if job.stage == EVALUATE:
                story.evaluate(who, 1.2, number=job.round)
            else:
                story.replicate(who, [1.5] * len(job.seeds), [1.2] * len(job.seeds))
    assert story.state is RunState.CONFIRMED
    assert done == [EVALUATE] * 3 + [REPLICATE] * 2


def test_nobody_verifies_his_own_run_and_strangers_verify_nothing(story: Story) -> None:
    task = story.run.body.task
    for who in (AUTHOR, STRANGER):
        assert next_job(story.log, task, who.public, bytes(who.key), story.now_ms) is None
    job = next_job(story.log, task, OTHERS[0].public, bytes(OTHERS[0].key), story.now_ms)
    assert job is not None
    assert job.run == story.run.id
    skipped = {(job.run, job.stage, job.round)}
    other = next_job(story.log, task, OTHERS[0].public, bytes(OTHERS[0].key), story.now_ms, skip=skipped)
    assert other is not None
    assert other.run == story.parent.id


def test_a_participant_who_was_attested_too_late_verifies_nothing(tmp_path) -> None:
    attestors, rules = [key(201), key(202)], NETWORK
    trust = Trust(attestors=frozenset(pair.public for pair in attestors), participants=TRUST.participants)
    with Log.open(tmp_path / "log.sqlite", rules, trust=trust) as log:
        story = Story(log)
        late, early = key(60), key(61)
        for who, age_ms in ((late, rules.verify_age_ms - 60_000), (early, rules.verify_age_ms + 60_000)):
            for attestor in attestors:
                issued = story.run.time - age_ms
                tag = hashlib.sha256(who.public).digest()
                body = Attestation(subject=who.public, tag=tag, method="code", issued=issued, expires=issued + 2**40)
                story.append(attestor, "attestation", body)
        story.evaluate(late, 1.2)
        assert judgement(log, story.run.id).voters == 0
        story.evaluate(early, 1.2)
        assert judgement(log, story.run.id).voters == 1


@pytest.mark.parametrize("hours", [0, 8])
def test_who_was_not_drawn_is_not_heard_until_waiting_has_everybody_drawn(tmp_path, hours: int) -> None:
    network = replace(NETWORK, verify_everybody=2, verify_committee=2)
    with Log.open(tmp_path / "log.sqlite", network, trust=TRUST) as log:
        story = Story(log)
        story.now_ms += hours * 3_600_000
        lots = {who: ecvrf.output(story.evaluation(who, 1.2).proof) for who in OTHERS}
        drawn = [who for who in OTHERS if int.from_bytes(lots[who], "big") * len(ROOTS) < 2 << 512]
        assert 0 < len(drawn) < len(OTHERS)
        for who in OTHERS:
            job = job_for(log, story.run.id, who.public, bytes(who.key), story.now_ms)
            assert (job is not None) == (hours > 0 or who in drawn)
        for who in OTHERS:
            story.evaluate(who, 1.2)
        assert judgement(log, story.run.id).voters == (len(OTHERS) if hours else len(drawn))


def test_what_was_not_committed_to_does_not_count(story: Story) -> None:
    first, second, third = OTHERS[:3]
    bare = story.evaluation(first, 1.2)
    story.reveal(first, bare)  # no commitment
    story.reveal(second, story.evaluation(second, 1.21), story.commit(second, story.evaluation(second, 1.3)))  # another
    body = story.evaluation(third, 1.2)
    story.commit(third, body)
    story.reveal(third, body)  # not linked
    assert judgement(story.log, story.run.id).voters == 0


def test_nobody_commits_twice_and_reveals_what_suits(story: Story) -> None:
    who, high, low = OTHERS[0], story.evaluation(OTHERS[0], 1.5), story.evaluation(OTHERS[0], 1.2)
    story.commit(who, high)
    story.reveal(who, low, story.commit(who, low))
    assert judgement(story.log, story.run.id).voters == 0


def test_another_ones_commitment_is_nobody_elses(story: Story) -> None:
    body = story.evaluation(OTHERS[0], 1.2)
    taken = story.commit(OTHERS[0], body)
    copied = Commitment(
        run=story.run.id,
        stage=EVALUATE,
        proof=story.evaluation(OTHERS[1], 1.2).proof,
        digest=taken.body.digest,
    )
    mine = story.append(OTHERS[1], "commitment", copied)
    story.reveal(OTHERS[1], story.evaluation(OTHERS[1], 1.2), mine, taken)
    assert judgement(story.log, story.run.id).voters == 0


def test_who_repeats_what_a_quorum_revealed_is_not_in_time(story: Story) -> None:
    bodies = [story.evaluation(who, 1.2) for who in OTHERS[:4]]
    committed = [story.commit(who, body) for who, body in zip(OTHERS[:3], bodies, strict=False)]
    for number, who in enumerate(OTHERS[:3]):
        story.reveal(who, bodies[number], committed[number], *committed)
    story.reveal(OTHERS[3], bodies[3], story.commit(OTHERS[3], bodies[3]), *committed)
    reports = [report for _, report in counted_reports(story.log, story.run)]
    timely = in_time(reports, quorum=3)
    assert [report in timely for report in reports] == [True, True, True, False]


def test_a_verifier_who_committed_and_waits_is_not_asked_again_and_enough_of_them_ask_nobody(story: Story) -> None:
    def is_drawn(who: KeyPair, *, later_ms: int = 0) -> bool:
        return job_for(story.log, story.run.id, who.public, bytes(who.key), story.now_ms + later_ms) is not None

    story.commit(OTHERS[0], story.evaluation(OTHERS[0], 1.2))
    assert [is_drawn(who) for who in OTHERS[:2]] == [False, True]
    for who in OTHERS[1:3]:
        story.commit(who, story.evaluation(who, 1.2))
    assert not is_drawn(OTHERS[3])
    assert is_drawn(OTHERS[3], later_ms=NETWORK.verify_patience_ms)


def test_a_first_verifier_confirms_nothing_alone_however_much_it_says(story):
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [9.0, 9.0], [1.2, 1.2])
    for who in OTHERS[1:4]:
        story.replicate(who, [1.2, 1.2], [1.5, 1.5])

    assert story.state is RunState.NOT_REPLICATED


def test_one_verifier_has_one_word_on_pairs_and_no_more_in_rounds_that_nobody_asks_for(story):
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    for number in range(4):
        story.replicate(OTHERS[0], [1.5, 1.5], [1.2, 1.2], number=number)
    story.replicate(OTHERS[1], [1.5, 1.5], [1.5, 1.5])
    result = judgement(story.log, story.run.id)
    assert (result.state, result.runs) == (RunState.PROVISIONAL, 4), "one voter is no more than a voter"


def test_a_dispute_that_its_committee_leaves_open_is_decided_by_nobody_who_was_not_asked(story):
    story.evaluate(OTHERS[0], 1.5)
    for who, value in zip(OTHERS[:4], [1.2, 1.2, 1.5, 1.5], strict=True):
        story.evaluate(who, value, number=1)
    assert story.state is RunState.DISPUTED
    for who in OTHERS[:4]:
        story.evaluate(who, 1.2, number=2)
    assert story.state is RunState.DISPUTED


def test_whoever_runs_more_pairs_or_fewer_than_a_verifier_does_is_not_heard(story):
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [1.5] * 8, [1.2] * 8)
    story.replicate(OTHERS[1], [1.5], [1.2])

    assert judgement(story.log, story.run.id).runs == 0


def test_numbers_beyond_all_metrics_break_nothing(story):
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [1e100, 1e100], [-1e100, 1e100])
    story.replicate(OTHERS[1], [-1e100, 0.0], [1e100, 1e100])

    assert story.state is RunState.PROVISIONAL


def is_wanted(story: Story, who: KeyPair, now_ms: int) -> bool:
    return job_for(story.log, story.run.id, who.public, bytes(who.key), now_ms) is not None


def test_who_says_the_same_again_keeps_nobody_from_replicating(story):
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    message = story.replicate(OTHERS[0], [1.5, 1.5], [1.2, 1.2])
    for _ in range(3):
        story.append(OTHERS[0], "verification", message.body, links=message.links)

    assert is_wanted(story, OTHERS[1], story.now_ms)


def test_who_commits_again_and_again_and_never_tells_is_waited_for_once(story):
    patience_ms = NETWORK.verify_patience_ms
    for value in (1.0, 1.1):
        for who in OTHERS[:3]:
            story.commit(who, story.evaluation(who, value))
        story.now_ms += patience_ms // 2

    assert not is_wanted(story, OTHERS[3], story.now_ms - patience_ms // 2)
    assert is_wanted(story, OTHERS[3], story.now_ms + patience_ms // 4)


def test_one_verifier_alone_is_no_number_of_the_networks(story: Story) -> None:
    for who in OTHERS[:3]:
        story.evaluate(who, 1.2)
    story.replicate(OTHERS[0], [1.5, 1.5], [0.1, 0.1])
    result = judgement(story.log, story.run.id)
    assert (result.state, result.value, result.improvement) == (RunState.PROVISIONAL, None, None)


def test_one_verifier_of_two_lifts_no_number_whichever_way_is_better(story: Story) -> None:
    definition = DEFINITION | {"metric": {"name": "accuracy", "direction": "maximize", "noise": 0.02}}
    for task, better in ((DEFINITION, -1.0), (definition, 1.0)):
        task_id = digest_of(task)
        if task is definition:
            story.append(AUTHOR, "task", task_body(definition))
        parent = story.append(AUTHOR, "run", run_body(1.5, source=b"p", task=task_id))
        value = 1.5 + better * 0.3
        story.run = story.append(AUTHOR, "run", run_body(value, source=b"c", task=task_id, parent=parent.id))
        for who in OTHERS[:3]:
            story.evaluate(who, value)
        story.replicate(OTHERS[0], [1.5, 1.5], [value, value])
        story.replicate(OTHERS[1], [better * 50 - better * 0.3] * 2, [better * 50] * 2)
        result = judgement(story.log, story.run.id)
        assert (result.state, result.value) == (RunState.PROVISIONAL, pytest.approx(value))
        story.replicate(OTHERS[2], [1.5, 1.5], [value, value])
        result = judgement(story.log, story.run.id)
        assert (result.state, result.value) == (RunState.CONFIRMED, pytest.approx(value))
