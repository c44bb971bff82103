"""Which runs wait for verifiers, and what a node has to do with each of them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.standing.jobs import VerificationNeed, next_job, verification_needs
from autoresearch.record.kinds import Verification
from autoresearch.trust.keys import KeyPair
from autoresearch.words import VerifierPart
from tests.log.standing.stories import ACTS
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, PEOPLE, STRANGER, Village
from tests.record.making import commitment


def needs(village: Village, who: KeyPair, *, blind: bool = False) -> dict[bytes, VerificationNeed]:
    seed = None if blind else bytes(who.key)
    result = verification_needs(village.log, village.task, who.public, seed, village.now_ms)
    return {need.run: need for need in result}


def test_a_reported_run_waits_for_its_evaluation(village: Village) -> None:
    run = village.run(1.9, "new", by=ANN)
    need = needs(village, BEN)[run.id]
    assert (need.stage, need.round, need.measured, need.committed, need.needed) == (EVALUATE, 0, 0, 0, 3)
    assert need.part in {VerifierPart.DRAWN, VerifierPart.NOT_DRAWN}
    assert needs(village, ANN)[run.id].part is VerifierPart.OWN
    assert needs(village, STRANGER)[run.id].part is VerifierPart.UNCOUNTED
    assert needs(village, BEN, blind=True)[run.id].part is None


def test_who_measured_is_counted_and_told_so(village: Village) -> None:
    run = village.run(1.9, "new", by=ANN)
    village.evaluate(run, 1.9, BEN)
    need = needs(village, BEN)[run.id]
    assert (need.measured, need.part) == (1, VerifierPart.MEASURED)
    village.evaluate(run, 1.9, CEM, DOT)
    assert needs(village, BEN)[run.id].stage == REPLICATE


def test_who_committed_has_not_revealed(village: Village) -> None:
    run = village.run(1.9, "new", by=ANN)
    proof = ecvrf.prove(bytes(CEM.key), question(run.id, EVALUATE, 0))
    body = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.9, proof=proof, duration_ms=1)
    village.append(CEM, "commitment", commitment(CEM, body), [run.id])
    need = needs(village, CEM)[run.id]
    assert (need.measured, need.committed, need.part) == (0, 1, VerifierPart.COMMITTED)


def test_a_confirmed_and_a_refuted_run_wait_for_nobody(village: Village) -> None:
    confirmed, refuted = village.run(1.5, "good", by=ANN), village.run(0.1, "too good", by=BEN)
    village.confirm(confirmed, 2.0, 1.5)
    village.refute(refuted, 1.9)
    assert not {confirmed.id, refuted.id} & set(needs(village, DOT))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTS, max_size=8), st.sampled_from(PEOPLE))
def test_what_a_node_does_next_is_among_what_it_is_drawn_for(
    tmp_path_factory: pytest.TempPathFactory, acts, who
) -> None:
    village = Village.at(tmp_path_factory.mktemp("village"))
    runs = [village.baseline, village.run(1.8, "first", by=AUTHOR)]
    for act in acts:
        act.act(village, runs)
    job = next_job(village.log, village.task, who.public, bytes(who.key), village.now_ms)
    result = verification_needs(village.log, village.task, who.public, bytes(who.key), village.now_ms)
    if job is not None:
        drawn = {(need.run, need.stage, need.round) for need in result if need.part is VerifierPart.DRAWN}
        assert (job.run, job.stage, job.round) in drawn
    village.log.close()
