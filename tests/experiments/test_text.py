"""The text is the same bytes everywhere, and its entropy is exact: it can be read off the text itself."""

from __future__ import annotations

import array
import hashlib
import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
MANIFEST = tomllib.loads((EXPERIMENTS / "task.toml").read_text())


@pytest.fixture
def prepare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("prepare", monkeypatch)


@pytest.fixture
def grammar(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load("grammar", monkeypatch)


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module(name)


def test_the_generator_is_splitmix64(grammar: ModuleType) -> None:
    random = grammar.Random(1234567)
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]

    assert [random.below(2**64) for _ in published] == published


@pytest.mark.slow
def test_the_files_are_the_pinned_bytes(data: Path) -> None:
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data.iterdir()}

    assert hashes == MANIFEST["data"]


@pytest.mark.slow
def test_the_floor_is_what_the_validation_text_costs_when_it_is_read_back(
    data: Path, prepare: ModuleType, grammar: ModuleType
) -> None:
    text = (data / "val.bin").read_text("ascii")
    tables = grammar.Grammar()
    documents = [text[i : i + grammar.DOC] for i in range(0, len(text), grammar.DOC)]

    bits = sum(grammar.code_length_bits(tables, document) for document in documents)

    assert len(documents) == 512
    assert bits / len(text) == pytest.approx(MANIFEST["metric"]["floor"], abs=5e-7)
    assert MANIFEST["metric"]["floor"] == prepare.FLOOR


@pytest.mark.slow
def test_new_text_follows_from_its_seed_and_comes_with_its_costs(tmp_path: Path, grammar: ModuleType) -> None:
    made = []
    for name, seed in (("one", 77), ("again", 77), ("other", 78)):
        folder = tmp_path / name
        folder.mkdir()
        environment = {"AUTORESEARCH_DATA": str(folder), "AUTORESEARCH_SEED": str(seed), "PATH": os.environ["PATH"]}
        subprocess.run([sys.executable, EXPERIMENTS / "prepare.py", "fresh"], env=environment, check=True)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})

    assert made[0] == made[1]
    assert made[0]["fresh.bin"] != made[2]["fresh.bin"]
    text, costs = made[0]["fresh.bin"].decode("ascii"), array.array("d", made[0]["fresh.bits"])
    assert len(text) == len(costs) * grammar.DOC
    assert costs[5] == grammar.code_length_bits(grammar.Grammar(), text[5 * grammar.DOC : 6 * grammar.DOC])
    floor = sum(array.array("d", made[0]["text.bits"])) / (512 * grammar.DOC)
    assert floor == pytest.approx(MANIFEST["metric"]["floor"], abs=5e-7)


def test_written_and_read_costs_agree_to_the_last_bit(grammar: ModuleType) -> None:
    tables = grammar.Grammar()

    for text, bits in grammar.write_documents(tables, seed=99, count=200):
        assert len(text) == grammar.DOC
        assert grammar.code_length_bits(tables, text) == bits


def test_a_text_that_the_grammar_cannot_write_is_refused(grammar: ModuleType) -> None:
    tables = grammar.Grammar()
    ((text, _),) = grammar.write_documents(tables, seed=1, count=1)

    for spoiled in ("x" * grammar.DOC, text[:-20] + "!" * 20, "Z" + text[1:]):
        with pytest.raises(ValueError, match="byte"):
            grammar.code_length_bits(tables, spoiled)


@pytest.mark.slow
def test_the_manifest_and_the_harness_agree(prepare: ModuleType) -> None:
    assert MANIFEST["budget"]["amount"] == prepare.WORK
    assert (MANIFEST["evaluation"]["vocabulary"], MANIFEST["evaluation"]["length"]) == (prepare.VOCAB, prepare.DOC)
    assert {name: pin for name, (_, _, pin) in prepare.FILES.items()} == MANIFEST["data"]


@pytest.mark.slow
def test_data_that_is_there_is_left_and_data_that_is_spoiled_is_made_again(data: Path, tmp_path: Path) -> None:
    train, val = tmp_path / "train.bin", tmp_path / "val.bin"
    train.write_bytes((data / "train.bin").read_bytes())
    val.write_bytes(b"half")
    before = train.stat().st_mtime_ns

    environment = {"AUTORESEARCH_DATA": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, EXPERIMENTS / "prepare.py"], env=environment, check=True, capture_output=True)

    assert train.stat().st_mtime_ns == before
    assert val.read_bytes() == (data / "val.bin").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.bin", "val.bin"]
