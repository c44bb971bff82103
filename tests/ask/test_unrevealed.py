"""What was measured and not told yet is seen, with what it waits for."""

import pytest

from autoresearch.ask.people.own_verification import Untold, untold, waiting
from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import EVALUATE
from autoresearch.log.standing.jobs import make_job
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Verification
from tests.log.standing.village import ANN, BEN, CEM, ROOTS, STRANGER
from tests.record.making import commitment, opened


def measured(run, who):
    """What somebody measured of a run."""
    proof = make_job(run.id, EVALUATE, 0, bytes(who.key)).proof
    return Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.2, proof=proof)


@pytest.fixture
def run(village):
    return village.run(1.2, "good", by=BEN)


def commits(village, run, who):
    return village.append(who, "commitment", commitment(who, measured(run, who)), [run.id])


def test_a_commitment_waits_for_others_and_no_longer_than_the_network_s_patience(village, run):
    assert untold(village.log, ANN.public, village.now_ms) == []
    fixed = commits(village, run, ANN)
    [first] = untold(village.log, ANN.public, village.now_ms)
    [waits] = waiting(village.log, ANN.public, [first])
    assert (waits.run, waits.title, waits.stage, waits.missing) == (format_id(run.id), "good", EVALUATE, 2)
    assert waits.participant.key == ROOTS[2].public.hex()
    assert waits.tells_ms == fixed.time + network_rules(village.log.network).patience_ms
    commits(village, run, CEM)
    assert waiting(village.log, ANN.public, [first])[0].missing == 1


def test_what_is_told_waits_no_more(village, run):
    fixed = commits(village, run, ANN)
    village.append(ANN, "verification", opened(measured(run, ANN)), [run.id, fixed.id])
    assert untold(village.log, ANN.public, village.now_ms) == []


def test_who_counts_nothing_waits_for_nobody(village, run):
    commits(village, run, STRANGER)
    [waits] = waiting(village.log, STRANGER.public, untold(village.log, STRANGER.public, village.now_ms))
    assert waits.missing == 0
    assert waits.tells_ms == waits.measured_ms


def test_the_node_that_measured_knows_what_came_out(village, run):
    commits(village, run, ANN)
    facts = Untold(run.id, EVALUATE, 0, measured(run, ANN))
    [waits] = waiting(village.log, ANN.public, [facts])
    assert (waits.verdict, waits.value) == ("pass", 1.2)
