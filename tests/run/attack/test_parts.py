"""What attacks are made of: artifacts as values, and what counts as through."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save

from autoresearch.record.kinds import RunOutcome
from autoresearch.run.attack import artifacts
from autoresearch.run.attack.judging import judge
from autoresearch.run.attack.rehearsal import printed_value
from autoresearch.run.attack.table import ATTACKS
from autoresearch.run.attack.target import AttackAttempt, Hole, Proof, Target, margin_of
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.run.attack.planted import SOUND, Planted, build


def npy(array: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(array))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"[1, 2.5, 3, 4, 5]", "json"),
        (b'{"a": 1}\n{"a": 2}\n{"a": 3}\n{"a": 4}\n{"a": 5}\n', "jsonl"),
        (b"id,label\na,1\nb,0\nc,1\nd,1\ne,0\n", "table"),
        (b"1\n2\n3\nx\n5\n", "table"),
        (b"elm\noak\nelm\nelm\noak", "lines"),
        (npy([1.0, 2.0, 3.0, 4.0, 5.0]), "npy"),
        (save({"w": np.arange(6, dtype=np.float32)}), "safetensors"),
        *(
            (pickle.dumps({"a": 300, "deeper": {"b": 0.5, "c": [7]}, "d": 1, "e": 2, "f": 3}, n), "pickle")
            for n in (2, 5)
        ),
    ],
)
def test_an_artifact_is_read_and_written_in_its_form(content: bytes, kind: str) -> None:
    form = artifacts.opened(content)

    assert form is not None
    assert form.kind == kind
    again = artifacts.opened(form.written(form.value) or b"")
    assert again is not None
    assert again.value == form.value
    assert artifacts.answer_slots(form.value)
    assert kind != "safetensors" or form.with_leaves(lambda _: "x") is None, "no type of that format"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"def f(): pass\n", b"[" * 100_000, b"PK\x03\x04junk"])
def test_what_nobody_can_read_is_no_value(content: bytes) -> None:
    assert artifacts.opened(content) is None


def test_the_numbers_of_a_pickle_change_in_their_place_and_nothing_of_it_is_run() -> None:
    content = pickle.dumps({"a": 300, "deeper": {"b": 0.5}, "text": "x", "c": [1, 2]}, 5)
    form = artifacts.opened(content)

    assert form is not None
    assert form.value == {"a": 300, "b": 0.5}
    changed = form.written({"a": -1e6, "b": 7}) or b""
    assert pickle.loads(changed) == {"a": -1e6, "deeper": {"b": 7}, "text": "x", "c": [1, 2]}
    assert form.written({"a": "x", "b": 7}) is None
    assert artifacts.opened(pickle.dumps(print)) is None


@pytest.mark.slow
def test_a_file_of_torch_is_read_with_its_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"size": 6, "w": torch.ones(2, 3), "n": torch.tensor([4])}, tmp_path / "a.pt")
    form = artifacts.opened((tmp_path / "a.pt").read_bytes())

    assert form is not None
    assert form.value == {"size": 6, "data/0": [1.0] * 6, "data/1": [4]}
    (tmp_path / "b.pt").write_bytes(form.with_leaves(lambda leaf: 0 * leaf) or b"")
    changed = torch.load(tmp_path / "b.pt", weights_only=True)
    assert (changed["size"], changed["w"].shape, changed["w"].sum().item()) == (0, (2, 3), 0.0)
    assert form.written({**form.value, "data/0": [1.0]}) is None


REPORT = b"loss: 0.25\ncase 1 PASSED\ncase 2 FAILED\n==== done ====\n"


@pytest.mark.parametrize(
    ("name", "artifact", "changed"),
    [
        ("rewrites-its-report", REPORT, {REPORT.replace(b"FAILED", b"PASSED"), REPORT.replace(b"0.25", b"0.93906")}),
        ("rewrites-its-report", b"[1, 2]", set()),
        ("rewrites-its-report", b"\xff", set()),
        ("all-zero", b'{"a": [1, 2.5], "b": "x"}', {b'{"a": [0, 0.0], "b": "x"}'}),
        ("all-zero", b"no numbers", set()),
        ("all-zero without data", b"[1]", set()),
    ],
)
def test_an_artifact_is_changed_by_attacks(target: Target, name: str, artifact: bytes, changed: set[bytes]) -> None:
    costs = msgspec.structs.replace(target.task.metric, direction="minimize")
    task = msgspec.structs.replace(target.task, metric=costs) if name.startswith("all-zero") else target.task
    if name.endswith("data"):  # as a function whose lowest point is at zero
        task = msgspec.structs.replace(task, harness={"evaluate.py": b"import json"})
    attack = next(each for each in ATTACKS if each.name == name.split(maxsplit=1)[0])

    attempts = attack.tries(replace(target, task=task, artifact=artifact))

    assert changed <= {each.artifact for each in attempts if not isinstance(each, str)}
    assert isinstance(attempts, str) == (not changed)
    assert isinstance(attack.tries(replace(target, artifact=None)), str)


def test_answers_are_replaced_cut_and_made_longer_in_their_place() -> None:
    value = {"answers": [0, 1, 0, 1, 0, 1], "name": "x"}
    slot = artifacts.answer_slots(value)[0]

    assert artifacts.with_slot(value, slot, [1] * 6) == {"answers": [1] * 6, "name": "x"}
    assert artifacts.resized(value, lambda old: old[:1], 6) == {"answers": [0], "name": "x"}


@pytest.fixture
def target(tmp_path: Path) -> Target:
    task = load_task(build(tmp_path / "task", SOUND["strict"]))
    return Target(task, 0.8, 0.01, margin_of(task, 0.8, 0.01), artifact=json.dumps([0, 1] * 30).encode())


def ended(value: float | None, status: RunStatus = RunStatus.OK) -> RunOutcome:
    return RunOutcome(status=status, value=value, reason="")


@pytest.mark.parametrize(
    ("attempt", "value", "through"),
    [
        (AttackAttempt(), 0.83, False),  # within the noise
        (AttackAttempt(), 0.9, True),
        (AttackAttempt(least=0.2), 0.9, False),
        (AttackAttempt(proof=Proof.PERFECT), 0.95, False),
        (AttackAttempt(proof=Proof.PERFECT), 1.0, True),
        (AttackAttempt(proof=Proof.STATED, stated=0.91), 0.9, False),
        (AttackAttempt(proof=Proof.STATED, stated=0.3), 0.3, True),  # it is worse, and still its own
        (AttackAttempt(), 1.7, True),  # no accuracy
        (AttackAttempt(proof=Proof.STATED, stated=1e13), 1e13, False),  # nobody believes it
    ],
)
def test_what_counts_as_through(target: Target, attempt: AttackAttempt, value: float, through: bool) -> None:
    assert judge(target, attempt, ended(value)).through is through


@pytest.mark.parametrize(
    ("proof", "value", "more", "through"),
    [
        (Proof.UNBOUND, 0.9, {"further": 0.9}, False),  # a bound holds both
        (Proof.UNBOUND, 0.9, {"further": 0.85}, True),
        (Proof.FOLLOWS, 0.9, {"further": 0.93}, False),  # more than before, by less than the noise
        (Proof.FOLLOWS, 0.9, {"further": 0.95}, True),
        (Proof.BETTER, 0.83, {"repeated": [0.01, 0.015, 0.01, 0.03]}, False),
        (Proof.BETTER, 0.83, {"repeated": [0.03, 0.025, 0.03, 0.04]}, True),
    ],
)
def test_what_another_value_says_counts_beyond_the_margin(
    target: Target, proof: Proof, value: float, more: dict[str, Any], through: bool
) -> None:
    assert target.margin == pytest.approx(0.04)
    assert judge(target, AttackAttempt(proof=proof), ended(value), **more).through is through


def test_a_run_without_a_value_is_held_by_what_refused_it(target: Target) -> None:
    assert judge(target, AttackAttempt(), ended(None, RunStatus.INVALID)).by == "a rule of the task"
    assert judge(target, AttackAttempt(), ended(None, RunStatus.OVER_BUDGET)).by == "the sandbox"


def test_a_gain_on_one_test_alone_is_no_gain(target: Target) -> None:
    attempt = AttackAttempt(proof=Proof.SEED)

    assert judge(target, attempt, ended(0.9), others=[0.0, 0.01, -0.01, 0.0, 0.01]).through
    assert not judge(target, attempt, ended(0.9), others=[0.1, 0.11, 0.09, 0.1, 0.1]).through


def test_an_impossible_value_is_a_hole_of_its_own(target: Target) -> None:
    assert judge(target, AttackAttempt(), ended(1.7)).hole is Hole.BEYOND
    bounded = msgspec.structs.replace(target.task, metric=msgspec.structs.replace(target.task.metric, floor=1.0))
    beyond = judge(Target(bounded, 0.8, 0.01, 0.04), AttackAttempt(), ended(1.7))
    assert (beyond.through, beyond.by) == (False, "metric.floor")


def test_there_are_enough_attacks_and_each_has_a_name_of_its_own() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 40
    assert 20 <= sum(attack.quick for attack in ATTACKS) <= len(ATTACKS) * 0.6


COUNTS = """\
import subprocess, sys
words = [[sys.executable, "-SE", "train.py", str(at)] for at in range(4)]
ended = [subprocess.run(each, stderr=subprocess.DEVNULL).returncode for each in words]
print("accuracy:", ended.count(0) / 4)
"""
REMEMBERS = """\
import json, pathlib, subprocess, sys
usual = pathlib.Path("usual.json")
out = subprocess.run([sys.executable, "-SE", "train.py", "1"], capture_output=True, text=True).stdout
if not usual.exists():
    usual.write_text(json.dumps({"took": 3.0}))
print("score:", json.loads(usual.read_text())["took"] / len(out))
"""


@pytest.mark.parametrize(
    ("name", "metric", "measure", "mend"),
    [
        ("ends-at-once", "accuracy", COUNTS, ("ended.count(0) / 4", "0.5")),
        ("leaves-old-files", "score", REMEMBERS, ("if not usual.exists():\n    ", "")),
    ],
)
def test_a_program_that_others_run_falls_to_the_attack_of_its_kind(
    tmp_path: Path, name: str, metric: str, measure: str, mend: tuple[str, str]
) -> None:
    program = "import sys\nprint('ab')\nassert int(sys.argv[1]) % 2\n"
    for text in (measure, measure.replace(*mend)):
        folder = build(tmp_path / str(text == measure) / "task", Planted(program, "", {"run.py": text}, metric=metric))
        task = load_task(folder)
        recipe = msgspec.structs.replace(task.recipe, command="python run.py")

        def value(files: Mapping[str, str], folder: Path = folder) -> RunOutcome:
            (folder / "usual.json").unlink(missing_ok=True)
            (folder / "train.py").write_text(files["train.py"])
            ran = subprocess.run(
                [sys.executable, "-SE", "run.py"], cwd=folder, capture_output=True, text=True, check=False
            )
            number = printed_value(metric, ran.stdout)
            return ended(number, RunStatus.OK if number is not None else RunStatus.CRASHED)

        honest = value({"train.py": program}).value
        assert honest is not None
        target = Target(msgspec.structs.replace(task, recipe=recipe), honest, 0.0, margin_of(task, honest, 0.0))
        attempts = next(each for each in ATTACKS if each.name == name).tries(target)
        assert not isinstance(attempts, str)
        through = [
            judge(target, each, value(each.program), further=value(each.further).value if each.further else None)  # type: ignore[arg-type]
            for each in attempts
        ]
        assert any(each.through for each in through) == (text == measure), through
