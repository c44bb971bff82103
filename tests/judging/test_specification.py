"""What `docs/protocol.md` says of verification is what the code does: computed here from its words."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import challenge_draw, question, seeds, text_seeds
from autoresearch.judging.states import EVALUATE, commitment_digest
from autoresearch.judging.statistics import ERROR, PAIRS, Finding, judge_pairs, next_look
from autoresearch.run.referee import _positions
from autoresearch.task.model import seed_for
from autoresearch.task.program import source_digest
from tests.record.making import key

SPECIFICATION = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
RUN, SALT = b"r" * 32, b"s" * 32
# The DAG-CBOR of the body in the test vector, written by hand.
DAG_CBOR = b"\xa3" + b"crun\x58\x20" + RUN + b"estage" + b"hevaluate" + b"gverdict" + b"dpass"
DUMP = b"(Module body=[(Assign targets=[(Name id=str:1:x)] value=(Constant int:1:1))])"


def documented(name: str) -> str:
    """What the test vector of this name is in the document."""
    match = re.search(rf"^    {name} {{2,}}([^=\s].*)$", SPECIFICATION, re.MULTILINE)
    assert match, name
    return match[1]


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def n63(hashed: bytes) -> int:
    return int.from_bytes(hashed[:8], "big") // 2


def drawn(domain: bytes, output: bytes) -> list[int]:
    return [n63(digest(domain, output, number.to_bytes(4, "big"))) for number in range(2)]


def test_what_a_verifier_draws_is_computed_as_the_document_says():
    question_digest = digest(b"autoresearch/verify/1", RUN, b"evaluate", bytes(4))
    output = bytes.fromhex(documented("output"))
    proof = ecvrf.prove(bytes(key(1).key), question_digest)
    assert question(RUN, EVALUATE, 0) == question_digest == bytes.fromhex(documented("question"))
    assert proof == bytes.fromhex(documented("proof"))
    assert ecvrf.verify(key(1).public, question_digest, proof) == output
    for name, domain, numbers in [
        ("seeds", b"autoresearch/verify-seeds/1", seeds(output, 2)),
        ("text seeds", b"autoresearch/verify-texts/1", text_seeds(output, 2)),
    ]:
        assert drawn(domain, output) == numbers
        assert ", ".join(map(str, numbers)) == documented(name)
        assert f'"{domain.decode()}"' in SPECIFICATION
    assert challenge_draw(output) == digest(b"autoresearch/challenges/1", output) == bytes.fromhex(documented("draw"))


def test_a_runs_seed_is_computed_as_the_document_says():
    task, program = b"t" * 32, b"p" * 32
    by_hand = n63(digest(b"autoresearch/seed/1", task, program, (2).to_bytes(8, "big")))
    assert seed_for(task, program, 2) == by_hand == int(documented("run's seed"))


def test_a_commitment_is_computed_as_the_document_says():
    body = {"run": RUN, "stage": "evaluate", "verdict": "pass"}
    by_hand = digest(b"autoresearch/commit/1", key(1).public, SALT, DAG_CBOR)
    assert commitment_digest(key(1).public, SALT, {**body, "salt": SALT}) == by_hand
    assert by_hand == bytes.fromhex(documented("commitment"))


def test_a_program_is_dumped_as_the_document_says():
    assert source_digest("x = 1  # tea") == digest(DUMP)
    assert f"    {DUMP.decode()}\n" in SPECIFICATION


def test_challenges_are_drawn_as_the_document_says():
    generator = np.random.Generator(np.random.PCG64(int.from_bytes(b"d" * 32, "big")))
    documents = generator.permutation(6)[:4].tolist()
    positions = generator.integers(0, 10, size=4).tolist()
    by_hand = sorted(zip(positions, documents, strict=True), key=lambda pair: pair[0])
    rows, cuts = _positions(b"d" * 32, 6, 10, 4)
    assert [(cut, row) for row, cut in zip(rows.tolist(), cuts.tolist(), strict=True)] == by_hand
    assert documented("documents") == ", ".join(str(row) for _, row in by_hand)
    assert documented("positions") == ", ".join(str(cut) for cut, _ in by_hand)


def test_pairs_are_looked_at_when_the_document_says():
    """After 2, 3 and 4 verifiers, without a noise after 3 and 4; then after six, or all where there are fewer."""
    for sentence in (
        "After 2, 3 and 4 verifiers the one with the greatest mean (of equal ones the last) is left out.",
        "where it names none, nothing is looked at after 2.",
        "After four that did not do it (after all, where `voters` − 1 is two or three;",
        "Then v = 6 verifiers are heard (`voters` − 1 where that is less, but at least 4)",
    ):
        assert sentence in " ".join(SPECIFICATION.split()), sentence
    noisy, none, exact = {"noise": 0.02}, {"noise": 0.0}, {"noise": 0.0, "exact": True}
    for names, looks in ((noisy, (2, 3, 4)), (none, (3, 4)), (exact, (2, 3, 4))):
        clear = [judge_pairs([[9.0, 9.001]] * voters, minimum_effect=0.0, **names).finding for voters in range(1, 7)]
        assert clear == [Finding.OPEN if voters < looks[0] else Finding.BETTER for voters in range(1, 7)]
        worse = [judge_pairs([[-9.0, -9.001]] * voters, minimum_effect=0.0, **names) for voters in range(1, 7)]
        assert [outcome.finding for outcome in worse] == [Finding.OPEN] * 3 + [Finding.NOT_BETTER] * 3
        assert {outcome.verifiers for outcome in worse[3:]} == {4}
        for most in (2, 3):
            all_worse = judge_pairs([[-9.0, -9.001]] * most, minimum_effect=0.0, most=most, **names).finding
            assert all_worse is (Finding.NOT_BETTER if most >= looks[0] else Finding.OPEN)
        for most, last in ((3, 4), (4, 4), (5, 5), (6, 6), (9, 6)):
            next_looks = [next_look(voters, most=most, **names) for voters in range(6)]
            assert next_looks == [next((look for look in looks if look > voters), last) for voters in range(6)]


@pytest.mark.parametrize("noise", [0.02, 0.0])
@pytest.mark.parametrize("voters", [2, 3, 4])
def test_pairs_confirm_from_the_bound_in_the_document_on(noise: float, voters: int):
    count = PAIRS * (voters - 1)
    freedom = count + 3 if noise else count - 1
    spread = [0.01, -0.01] * (voters - 1)
    exact = freedom == 1
    if exact:
        assert judge_pairs([[5.0, 5.0], [5.0, 5.0]], noise=noise, minimum_effect=0.0).finding is Finding.OPEN
    student = {1: 31.8205, 3: 4.5407, 5: 3.3649, 7: 2.9980, 9: 2.8214}[freedom]
    assert f"{student:.4f}" in SPECIFICATION
    error = ((count * 0.01**2 + (8 * noise**2 if noise else 0.0)) / freedom / count) ** 0.5
    for factor, finding in [(1.001, Finding.BETTER), (0.999, Finding.NOT_BETTER)]:
        improvements = [student * error * factor + each for each in spread]
        pairs = [improvements[place : place + PAIRS] for place in range(0, count, PAIRS)]
        # Whoever found the most is left out, by however much.
        for most in ([value + 1e-9 for value in pairs[0]], [9.0, 9.1]):
            outcome = judge_pairs([most, *pairs], noise=noise, minimum_effect=0.0, exact=exact).finding
            # Below the bound more pairs may be asked for; only after the last is there nothing more to hope for.
            assert outcome is (finding if factor > 1 or voters == 4 else Finding.OPEN)
    assert pytest.approx(0.01) == ERROR


@pytest.mark.parametrize(("noise", "column"), [(0.02, 0), (0.0, 1)])
@pytest.mark.parametrize("voters", [4, 5, 6])
def test_against_one_voice_pairs_confirm_from_the_bound_in_the_document_on(noise: float, column: int, voters: int):
    bound = {4: (2.56, 8.04), 5: (2.85, 5.45), 6: (3.03, 4.64)}[voters][column]
    assert f"{bound:.2f}" in SPECIFICATION
    freedom = PAIRS * (voters - 2) + (3 if noise else -1)
    # What the others found lies so far from their mean: the first of them more, so that three of four would confirm it.
    off = {4: [0.0, 0.0], 5: [0.01, 0.01, -0.02], 6: [0.02, 0.02, -0.02, -0.02]}[voters]
    spread = [[each + 0.01, each - 0.01] for each in off]
    squares = sum(each**2 for two in spread for each in two) + (8 * noise**2 if noise else 0.0)
    error = (squares / freedom / (PAIRS * len(off))) ** 0.5
    for factor, finding in [(1.001, Finding.BETTER), (0.999, Finding.NOT_BETTER)]:
        middle = [[bound * error * factor + each for each in two] for two in spread]
        greatest = [each + 0.03 for each in middle[0]]
        # Of one that is left out the size means nothing, of one that is not the width.
        least, wide = [each - 0.001 for each in middle[-1]], [fmean(middle[-1]) + 5, fmean(middle[-1]) - 5]
        for pairs in ([[-9.0, -9.0], greatest, *middle], [wide, greatest, *middle[:-1], least]):
            outcome = judge_pairs(pairs, noise=noise, minimum_effect=0.0, most=voters).finding
            assert outcome is finding
