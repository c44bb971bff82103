"""Who verifies by hand what is nothing to verify, or what nobody would count, is told why and what to do instead."""

from __future__ import annotations

import pytest

from autoresearch.ask.people.own_verification import check_asked, check_new, will_count
from autoresearch.ask.people.voters import too_few
from autoresearch.ask.show import show_answer
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.judging.states import EVALUATE
from autoresearch.log.standing.jobs import make_job
from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Attestation, Verification, Withdrawal
from autoresearch.record.record import DAY_MS
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, BEN, CEM, DOT, ROOTS, STRANGER, Village
from tests.record.making import commitment, key


def refused(village, run, who, *, error=Refused):
    """The sentence and the hint with which a wish is refused."""
    with pytest.raises(error) as caught:
        check_asked(village.log, run, who.public, village.now_ms)
    assert caught.value.hint
    return str(caught.value), caught.value.hint


def test_a_run_of_somebody_else_is_verified_by_who_counts(village):
    run = village.run(1.2, "good", by=BEN)
    assert check_asked(village.log, run.id, ANN.public, village.now_ms) == run.body
    check_new(village.log, run.id, ANN.public, village.now_ms)
    job = make_job(run.id, EVALUATE, 0, bytes(ANN.key))
    assert will_count(village.log, run.id, job, ANN.public, village.now_ms) == ""


def test_nobody_verifies_his_own_run(village):
    message, hint = refused(village, village.run(1.2, "good", by=BEN).id, BEN)
    assert "own run" in message
    assert "autoresearch top" in hint


def test_whom_nobody_attested_is_told_how_to_count(village):
    run = village.run(1.2, "good", by=BEN)
    message, hint = refused(village, run.id, STRANGER)
    assert "is unattested" in message
    assert hint.endswith(f"autoresearch network trust {STRANGER.public.hex()} --participant")


def test_where_nobody_is_named_everybody_may_measure_for_himself(tmp_path):
    village = Village.at(tmp_path, Trust())
    run = village.run(1.2, "good", by=BEN)
    assert check_asked(village.log, run.id, STRANGER.public, village.now_ms)
    job = make_job(run.id, EVALUATE, 0, bytes(STRANGER.key))
    assert "does not count" in will_count(village.log, run.id, job, STRANGER.public, village.now_ms)
    village.log.close()


def test_a_run_without_a_value_is_nothing_to_verify(village):
    crashed = village.run(None, "broken", by=BEN, status="crashed")
    message, hint = refused(village, crashed.id, ANN)
    assert "the program stopped with an error" in message
    assert short_id(crashed.id) in hint
    unknown = village.run(None, "odd", by=BEN, status="exploded")
    assert "has no value" in refused(village, unknown.id, ANN)[0]


def test_a_run_that_was_taken_back_is_nothing_to_verify(village):
    run = village.run(1.2, "good", by=BEN)
    village.append(CEM, "withdrawal", Withdrawal(reason="not mine"), [run.id])
    assert check_asked(village.log, run.id, ANN.public, village.now_ms)
    village.append(BEN, "withdrawal", Withdrawal(reason="a mistake"), [run.id])
    assert "withdrawn by its author" in refused(village, run.id, ANN)[0]


def test_proven_fraud_needs_no_verification_and_the_cheater_verifies_nothing(village):
    fraud = village.run(1.2, "chosen seed", by=BEN, seed=7)
    after = village.run(1.1, "afterwards", by=BEN)
    honest = village.run(1.3, "honest", by=CEM)
    assert "is fraud: its own records prove" in refused(village, fraud.id, ANN)[0]
    message, hint = refused(village, after.id, ANN)
    assert "is banned" in message
    assert hint == f"autoresearch network credit {ROOTS[2].public.hex()[:8]}"
    message, hint = refused(village, honest.id, BEN)
    assert "does not count until" in message
    assert hint == "autoresearch network credit me"


def test_other_records_and_unknown_ids_are_no_runs(village):
    check = village.evaluate(village.run(1.2, "good", by=BEN), 1.2, ANN)[0]
    assert "is a verification, not a run" in refused(village, check.id, CEM, error=UsageError)[0]
    profile = village.log.records.newest(kind="identity", limit=1)[0]
    assert "is an identity, not a run" in refused(village, profile.id, CEM, error=UsageError)[0]
    with pytest.raises(NotFound):
        check_asked(village.log, b"\x00" * 32, ANN.public, village.now_ms)


def test_a_second_measurement_is_refused_before_and_after_it_is_told(village):
    run = village.run(1.2, "good", by=BEN)
    [evaluation] = village.evaluate(run, 1.2, ANN)
    with pytest.raises(Refused, match=f"already, in {short_id(evaluation.id)}"):
        check_new(village.log, run.id, ANN.public, village.now_ms)
    proof = make_job(run.id, EVALUATE, 0, bytes(CEM.key)).proof
    untold = Verification(run=run.id, stage=EVALUATE, verdict="pass", value=1.2, proof=proof)
    village.append(CEM, "commitment", commitment(CEM, untold), [run.id])
    with pytest.raises(Refused, match="the result is revealed once others have too"):
        check_new(village.log, run.id, CEM.public, village.now_ms)
    check_new(village.log, run.id, DOT.public, village.now_ms)


def test_too_few_says_how_many_are_missing_and_which_command_helps(tmp_path):
    some = [root.public for root in ROOTS]
    for number, message in ((1, "3 more participants and runs can"), (3, "1 more participant and runs can"), (4, "")):
        village = Village.at(tmp_path / str(number), Trust(participants=frozenset(some[:number])))
        answer = too_few(village.log)
        assert message in answer
        assert answer.endswith("autoresearch network trust KEY --participant") == bool(message)
        village.log.close()
    village = Village.at(tmp_path / "mail", Trust(attestors=frozenset(some[:2])))
    assert too_few(village.log).endswith("→ there: autoresearch node id attest you@example.org")
    village.log.close()


def test_who_was_attested_by_mail_a_moment_ago_is_told_to_wait(tmp_path):
    attestors = [key(70), key(71)]
    village = Village.at(tmp_path, Trust(attestors=frozenset(attestor.public for attestor in attestors)))
    before = village.run(1.3, "before", by=BEN)
    for number, root in enumerate(ROOTS[:4]):
        for attestor in attestors:
            until_ms = village.now_ms + 90 * DAY_MS
            tag = bytes([number]) * 32
            body = Attestation(
                subject=root.public, tag=tag, method="code", domain="big", issued=village.now_ms, expires=until_ms
            )
            village.append(attestor, "attestation", body)
    assert "4 are, not all for 1 d: wait until they are, then publish" in too_few(village.log)
    run = village.run(1.2, "good", by=BEN)
    message, hint = refused(village, run.id, ANN)
    assert "was not attested 24 hours before" in message
    assert "autoresearch top" in hint
    village.now_ms += 2 * DAY_MS
    village.run(1.1, "later", by=BEN)
    assert too_few(village.log) == ""
    reason = show_answer(village.log, before.id).verification.reason
    assert "(there were none when it was published): what is built upon it now can be" in reason
    village.log.close()
