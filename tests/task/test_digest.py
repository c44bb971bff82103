"""A task's digest and a run's seed are the same for everyone, and change with whatever makes another question."""

from __future__ import annotations

import hashlib
from pathlib import Path

import dag_cbor
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.task.loading import load_task
from autoresearch.task.model import Budget, Limits, Metric, Task, seed_for

TASK = Task(
    name="tiny",
    summary="A tiny task.",
    metric=Metric(name="val_bpb", direction="minimize", floor=0.5),
    budget=Budget(unit="work", amount=1000.0),
    limits=Limits(),
    harness={"prepare.py": b"pass\n"},
    baseline=b"LR = 0.1\n",
    data={"train.bin": b"\xab" * 32},
    mounts={},
    folder=Path(),
    program=b"LR = 0.1\n",
)


def test_the_digest_is_this_one() -> None:
    assert TASK.digest.hex() == "03d0f7ffda54b7304bd908df7cd8ac508ba1d3d616c51e235d750b613533f828"
    assert TASK.digest == hashlib.sha256(dag_cbor.encode(TASK.definition())).digest()  # type: ignore[arg-type]


def test_where_it_lies_and_how_it_is_described_do_not_matter() -> None:
    moved = msgspec.structs.replace(TASK, folder=Path("/elsewhere"), summary="", mounts={"cache": "~/.cache"})

    assert moved.digest == TASK.digest


@pytest.mark.parametrize(
    "changed",
    [
        msgspec.structs.replace(TASK, name="other"),
        msgspec.structs.replace(TASK, metric=msgspec.structs.replace(TASK.metric, direction="maximize")),
        msgspec.structs.replace(TASK, metric=msgspec.structs.replace(TASK.metric, floor=None)),
        msgspec.structs.replace(TASK, budget=Budget(unit="seconds", amount=1000.0)),
        msgspec.structs.replace(TASK, budget=Budget(unit="work", amount=1001.0)),
        msgspec.structs.replace(TASK, limits=Limits(memory_mib=4096)),
        msgspec.structs.replace(TASK, harness={"prepare.py": b"pass \n"}),
        msgspec.structs.replace(TASK, harness={"prepare.py": b"pass\n", "text.py": b""}),
        msgspec.structs.replace(TASK, data={}),
        msgspec.structs.replace(TASK, baseline=b"LR = 0.2\n"),
    ],
)
def test_what_changes_the_question_changes_the_digest(changed: Task) -> None:
    assert changed.digest != TASK.digest


def test_a_whole_number_in_the_manifest_is_the_same_amount(folder: Path) -> None:
    before = load_task(folder)
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text().replace("amount = 1000", "amount = 1_000.0"))

    assert load_task(folder).digest == before.digest


def test_a_seed_is_the_first_63_bits_of_its_hash() -> None:
    task, source = bytes(range(32)), bytes(range(32, 64))
    material = b"autoresearch/seed/1" + task + source + b"\0\0\0\0\0\0\0\3"

    assert seed_for(task, source, 3) == int.from_bytes(hashlib.sha256(material).digest(), "big") >> (256 - 63)
    assert seed_for(task, source, 3) == 7707187468404552928


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), st.integers(0, 2**63))
def test_a_seed_fits_and_every_replicate_has_its_own(task: bytes, source: bytes, replicate: int) -> None:
    seed = seed_for(task, source, replicate)

    assert 0 <= seed < 2**63
    assert seed != seed_for(task, source, replicate + 1)


@pytest.mark.parametrize(
    ("task", "source", "replicate"), [(b"", bytes(32), 0), (bytes(32), b"", 0), (bytes(32),) * 2 + (-1,)]
)
def test_a_seed_needs_two_digests_and_a_replicate(task: bytes, source: bytes, replicate: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        seed_for(task, source, replicate)
