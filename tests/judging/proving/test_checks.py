"""A proof holds for what somebody signed, and for nothing that was changed, mixed up or made up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question, seeds
from autoresearch.judging.proof import (
    ProofResult,
    StoredRecord,
    check_fork,
    check_lineage,
    check_run_seed,
    check_statement,
    check_verifier_seeds,
    compared,
)
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.record.kinds import Merge, Verification
from autoresearch.record.record import Record
from autoresearch.task.program import source_digest
from autoresearch.trust.keys import KeyPair
from tests.record.making import DEFINITION, NETWORK, commitment, digest_of, key, opened, run_body, sealed, task_body

AUTHOR, VERIFIER, ROOT = key(1), key(2), key(100)
RUN = sealed(AUTHOR, run_body(1.2))


def lying(record: Record, *, raw: bytes | None = None, signature: bytes | None = None) -> StoredRecord:
    """A record as it lies in a log, or with something changed."""
    return StoredRecord(
        record.id, record.raw if raw is None else raw, record.signature if signature is None else signature
    )


def changed(outcome: ProofResult) -> list[str]:
    """What differs from what the records state."""
    return [step.what for step in outcome.steps if step.agrees is False]


def verification(who: KeyPair = VERIFIER, *, stage: str = EVALUATE, **fields: object) -> Verification:
    proof = ecvrf.prove(bytes(who.key), question(RUN.id, stage, 0))
    usual = {"verdict": "pass", "value": 1.2, "seeds": seeds(ecvrf.output(proof), 1), "proof": proof} | fields
    return opened(Verification(run=RUN.id, stage=stage, **usual))


def test_a_fork_is_two_records_of_one_device_with_one_number() -> None:
    other = sealed(AUTHOR, run_body(1.3, source=b"other"))
    check = check_fork(lying(RUN), lying(other), NETWORK)
    assert (check.holds, changed(check)) == (True, ["ids"])
    for innocent in (RUN, sealed(VERIFIER, run_body(1.3)), sealed(AUTHOR, run_body(1.3), seq=2)):
        assert check_fork(lying(RUN), lying(innocent), NETWORK).holds is False


def test_a_merge_of_that_device_ends_a_fork_and_no_other_record_does() -> None:
    other = sealed(AUTHOR, run_body(1.3, source=b"other"))
    merge = sealed(ROOT, Merge(device=AUTHOR.public, heads=[RUN.id, other.id]), kind="merge")
    check = check_fork(lying(RUN), lying(other), NETWORK, merge=lying(merge))
    assert check.holds
    assert "merged the branches, so nothing follows" in check.sentence
    another = sealed(ROOT, Merge(device=VERIFIER.public, heads=[RUN.id]), kind="merge")
    for wrong in (lying(another), lying(RUN), lying(merge, raw=another.raw)):
        assert "is no merge of it" in check_fork(lying(RUN), lying(other), NETWORK, merge=wrong).sentence


def test_a_chosen_seed_is_shown_beside_the_one_that_follows() -> None:
    check = check_run_seed(lying(sealed(AUTHOR, run_body(0.5, seed=7))), NETWORK)
    assert (check.holds, changed(check)) == (True, ["seed"])
    assert (check.steps[-1].stated, check.steps[-1].computed) == ("7", str(run_body(0.5).seed))
    assert check_run_seed(lying(RUN), NETWORK).holds is False


def test_a_source_that_is_another_program_is_told_but_is_no_chosen_seed() -> None:
    run = sealed(AUTHOR, run_body(1.0, source_digest=source_digest("x = 1")))
    assert changed(check_run_seed(lying(run), NETWORK, source=b"x = 1  # the same")) == []
    for source in (b"x = 2", b"\xff(", b"("):
        check = check_run_seed(lying(run), NETWORK, source=source)
        assert (check.holds, changed(check)) == (False, ["program"])
        assert "its source is another program" in check.sentence


def test_seeds_of_a_verifier_follow_from_its_proof_or_it_chose_them() -> None:
    honest = sealed(VERIFIER, verification(), kind="verification")
    assert check_verifier_seeds(lying(honest), NETWORK).holds is False
    chosen = sealed(VERIFIER, verification(seeds=[7]), kind="verification")
    assert check_verifier_seeds(lying(chosen), NETWORK).holds is True
    borrowed = sealed(AUTHOR, verification(VERIFIER, seeds=[7]), kind="verification")
    check = check_verifier_seeds(lying(borrowed), NETWORK)
    assert (check.holds, changed(check)) == (False, ["proof"]), "what another's proof says is no fraud of this device"
    assert check_verifier_seeds(lying(RUN), NETWORK).holds is False


def test_a_parent_on_another_task_is_a_made_up_lineage() -> None:
    elsewhere = sealed(AUTHOR, run_body(1.0, task=digest_of(DEFINITION | {"name": "another"})))
    child = sealed(VERIFIER, run_body(1.1, parent=elsewhere.id))
    check = check_lineage(lying(child), lying(elsewhere), NETWORK)
    assert (check.holds, changed(check)) == (True, ["task"])
    assert check_lineage(lying(child), lying(RUN), NETWORK).holds is False, "not the parent that it names"
    honest = sealed(VERIFIER, run_body(1.1, parent=RUN.id))
    assert check_lineage(lying(honest), lying(RUN), NETWORK).holds is False
    on_task = sealed(VERIFIER, run_body(1.1, parent=sealed(AUTHOR, task_body(), kind="task").id))
    assert check_lineage(lying(on_task), lying(sealed(AUTHOR, task_body(), kind="task")), NETWORK).holds is False


def test_what_was_changed_or_signed_by_nobody_proves_nothing() -> None:
    cheat, other = sealed(AUTHOR, run_body(0.5, seed=7)), sealed(AUTHOR, run_body(1.3, source=b"other"))
    forged = sealed(VERIFIER, run_body(0.5, seed=7))
    for given_ in (
        lying(cheat, raw=other.raw, signature=other.signature),
        lying(cheat, raw=cheat.raw[:-1]),
        lying(cheat, raw=b"\xff" * 40),
        lying(cheat, signature=forged.signature),
        lying(cheat, signature=b""),
    ):
        assert check_run_seed(given_, NETWORK).holds is False
        assert check_fork(given_, lying(other), NETWORK).holds is False
        assert check_lineage(given_, lying(RUN), NETWORK).holds is False
        assert check_statement(given_, lying(RUN), NETWORK).holds is False


@given(st.binary(max_size=200), st.binary(max_size=80), st.binary(min_size=32, max_size=32))
def test_no_bytes_break_a_check(raw: bytes, signature: bytes, name: bytes) -> None:
    junk = StoredRecord(name, raw, signature)
    outcomes = [
        check_fork(junk, lying(RUN), NETWORK, merge=junk),
        check_fork(lying(RUN), junk, NETWORK),
        check_run_seed(junk, NETWORK, source=raw),
        check_verifier_seeds(junk, NETWORK),
        check_lineage(lying(RUN), junk, NETWORK),
        check_statement(lying(RUN), junk, NETWORK, commitment=junk),
    ]
    assert [outcome.holds for outcome in outcomes] == [False] * len(outcomes)


@given(st.binary(max_size=128), st.lists(st.integers(0, 2**63 - 1), max_size=4), st.text("abc", min_size=1, max_size=8))
def test_whatever_a_verifier_writes_is_judged_and_raises_nothing(proof: bytes, numbers: list[int], stage: str) -> None:
    body = Verification(run=RUN.id, stage=stage, verdict="fail", proof=proof, seeds=numbers, round=16)
    record = sealed(VERIFIER, body, kind="verification")
    assert check_verifier_seeds(lying(record), NETWORK).holds is False
    assert check_statement(lying(record), lying(RUN), NETWORK).holds is False


def test_a_statement_in_order_is_left_to_be_measured() -> None:
    body = verification()
    fixed = sealed(VERIFIER, commitment(VERIFIER, body), kind="commitment")
    record = sealed(VERIFIER, body, kind="verification", links=[RUN.id, fixed.id])
    check = check_statement(lying(record), lying(RUN), NETWORK, commitment=lying(fixed))
    assert (check.holds, changed(check)) == (None, [])
    late = sealed(VERIFIER, verification(value=1.9), kind="verification", links=[RUN.id, fixed.id])
    assert changed(check_statement(lying(late), lying(RUN), NETWORK, commitment=lying(fixed))) == ["committed to"]


@pytest.mark.parametrize(
    ("why", "body"),
    [
        ("could choose what is measured", verification(KeyPair.generate())),
        ("chose what is measured", verification(seeds=[7])),
        ("states nothing of the run", verification(verdict="error")),
        ("not the 2 pairs", verification(stage=REPLICATE)),
        ("none that this version knows", verification(stage="taste")),
    ],
)
def test_a_statement_that_states_nothing_is_not_measured(why: str, body: Verification) -> None:
    check = check_statement(lying(sealed(VERIFIER, body, kind="verification")), lying(RUN), NETWORK)
    assert check.holds is False
    assert why in check.sentence


def test_a_statement_about_another_run_or_one_without_a_value_is_none() -> None:
    record = sealed(VERIFIER, verification(), kind="verification")
    assert check_statement(lying(record), lying(sealed(AUTHOR, run_body(1.3))), NETWORK).holds is False
    crashed = sealed(AUTHOR, run_body(None, status="crashed"))
    proof = ecvrf.prove(bytes(VERIFIER.key), question(crashed.id, EVALUATE, 0))
    of_it = sealed(
        VERIFIER, Verification(run=crashed.id, stage=EVALUATE, verdict="fail", proof=proof), kind="verification"
    )
    assert "no value to measure" in check_statement(lying(of_it), lying(crashed), NETWORK).sentence


@pytest.mark.parametrize(
    ("stated", "measured", "holds"),
    [
        ((1.2, True), (1.2, True), True),
        ((1.9, False), (1.9, False), True),
        ((None, False), (None, False), True),
        ((1.9, False), (1.2, True), False),
        ((1.2, True), (1.9, False), False),
        ((1.2, True), (None, False), False),
        ((1e100, False), (-1e100, False), True),
    ],
)
def test_an_evaluation_holds_when_the_same_measurement_says_the_same(
    stated: tuple[float | None, bool], measured: tuple[float | None, bool], holds: bool
) -> None:
    metrics = {"challenges": 512, "mismatches": 0, "mean_difference": 0.0, "gap": -0.2}
    outcome = compared(
        verification(value=stated[0], metrics=metrics, reason="theirs"),
        verification(value=measured[0], metrics=metrics if measured[0] else {}, reason="ours"),
        claim=1.2,
        within=0.001,
        stated_passes=stated[1],
        measured_passes=measured[1],
    )
    assert outcome.holds is holds
    assert {"claim", "value", "challenges", "mismatches", "mean difference", "gap"} <= {s.what for s in outcome.steps}
    same = stated[0] == measured[0]
    assert (next(step for step in outcome.steps if step.what == "value").agrees) is same


def test_pairs_hold_when_every_run_of_them_comes_to_its_number() -> None:
    pairs = verification(stage=REPLICATE, seeds=[1, 2], values=[1.2, 1.21], parent_values=[1.5, 1.52])
    for values, holds in (([1.2, 1.205], True), ([1.2, 1.3], False), ([1.2], False)):
        repeated = verification(stage=REPLICATE, seeds=[1, 2], values=values, parent_values=[1.5, 1.52])
        outcome = compared(pairs, repeated, claim=1.2, within=0.02, stated_passes=False, measured_passes=False)
        assert outcome.holds is holds
        assert [step.what for step in outcome.steps][1:3] == ["pair 1, its parent", "pair 1, the run"]
