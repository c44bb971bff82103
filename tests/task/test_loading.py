"""A task folder is loaded whole or refused with the file, the key and what to do."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.propose.program.edits import patches_of
from autoresearch.task import loading
from autoresearch.task.loading import QUICK_TASK, load_task, shipped_by_name, shipped_task, shipped_tasks

ROOT = Path(__file__).parents[2]


def test_a_task_is_loaded(folder: Path) -> None:
    task = load_task(folder)

    assert (task.name, task.summary, task.folder) == ("tiny", "A tiny task.", folder)
    assert (task.metric.name, task.metric.direction, task.metric.source) == ("val_bpb", "minimize", "harness")
    assert (task.metric.floor, task.metric.noise) == (0.5, None)
    assert (task.budget.unit, task.budget.amount) == ("work", 1000.0)
    assert (task.limits.seconds, task.limits.memory_mib) == (60.0, 2048)
    assert dict(task.harness) == {"prepare.py": (folder / "prepare.py").read_bytes()}
    assert task.baseline == b"LR = 0.1\n"
    assert dict(task.data) == {"train.bin": b"\xab" * 32}
    assert dict(task.mounts) == {}


SPOILED = [
    ("name = ", "nmae = ", "did you mean name?"),
    ("direction = ", "dirction = ", "did you mean metric.direction?"),
    ("seconds = 60", "second = 60", "did you mean limits.seconds?"),
    ("seconds = 60", "colour = 60", "known keys: seconds, memory_mib"),
    ("[limits]", "[limit]", "did you mean limits?"),
    ('"minimize"', '"smallest"', "metric.direction"),
    ("floor = 0.5", 'floor = "0.5"', "metric.floor"),
    ("floor = 0.5", "floor = nan", "metric.floor"),
    ("floor = 0.5", "floor = inf", "metric.floor"),
    ("floor = 0.5", "floor = -0.0", "negative zero"),
    ("amount = 1000", "amount = 0", "budget.amount"),
    ("amount = 1000", "amount = inf", "budget.amount"),
    ('unit = "work"', 'unit = "hours"', "budget.unit"),
    ("seconds = 60", "seconds = -1", "limits.seconds"),
    ("seconds = 60", "memory_mib = 0", "limits.memory_mib"),
    ("seconds = 60", "memory_mib = 1.5", "limits.memory_mib"),
    ('"tiny"', '"Tiny Task"', "name"),
    ('"A tiny task."', '"A\\ntask"', "summary"),
    ('name = "tiny"\n', "", "name"),
    ("[budget]", "[[budget]]", "budget"),
    ("[budget]", "[budget", "not TOML"),
    ('"prepare.py" = "', '"prepare.py" = "0', "harness.prepare.py"),
    ('"prepare.py" = "', '"../prepare.py" = "', "plain file name"),
    ('"prepare.py" = "', '"other.py" = "', "other.py does not exist"),
    ('"prepare.py" = "', '"train.py" = "', "not part of the harness"),
    ("abab", "zzzz", "data.train.bin"),
    ("[data]\n", "[mounts]\n", "mounts.train.bin"),
    ("[data]\n", '[mounts]\nall = "~/"\n[data]\n', "home folder"),
    ("[data]\n", '[mounts]\nall = "/"\n[data]\n', "home folder"),
]


@pytest.mark.parametrize(("original", "instead", "named"), SPOILED)
def test_a_wrong_manifest_is_refused_by_name(folder: Path, original: str, instead: str, named: str) -> None:
    manifest = folder / "task.toml"
    text = manifest.read_text()
    assert original in text
    manifest.write_text(text.replace(original, instead, 1))

    with pytest.raises(UsageError) as caught:
        load_task(folder)

    assert named in f"{caught.value}\n{caught.value.hint}"
    assert str(folder) in str(caught.value)
    assert caught.value.hint


def test_a_changed_harness_is_refused_with_the_hash_it_has(folder: Path) -> None:
    (folder / "prepare.py").write_text("TIME_BUDGET = 3000\n")

    with pytest.raises(UsageError, match=r"prepare\.py is not the file") as caught:
        load_task(folder)

    assert '"prepare.py" = "' in caught.value.hint


@pytest.mark.parametrize("name", ["task.toml", "train.py", "prepare.py"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()

    with pytest.raises(UsageError, match=f"{name} does not exist"):
        load_task(folder)


@pytest.mark.parametrize("name", ["task.toml", "train.py", "prepare.py"])
def test_a_folder_in_place_of_a_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()

    with pytest.raises(UsageError, match=f"{name} can't be read"):
        load_task(folder)


@pytest.mark.parametrize("content", [b"def f(:\n", b"\xff\xfe", b"x = 1\n" * 400_000])
def test_a_baseline_that_is_no_source_is_refused(folder: Path, content: bytes) -> None:
    (folder / "train.py").write_bytes(content)

    with pytest.raises(UsageError, match=r"train\.py"):
        load_task(folder)


def test_the_shipped_task_is_the_one_in_experiments() -> None:
    task = shipped_task()

    assert task.folder == ROOT / "experiments"
    assert (task.name, task.metric.name, task.metric.direction) == ("grammar", "val_bpb", "minimize")
    assert set(task.harness) == {"grammar.py", "prepare.py"}
    assert set(task.data) == {"train.bin", "val.bin"}


def test_the_wheel_carries_every_file_of_the_shipped_task() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]

    for name in ("task.toml", "train.py", "changes.toml", "names.toml", *shipped_task().harness):
        assert wheel["force-include"][f"experiments/{name}"] == f"autoresearch/task/shipped/{name}"
    others = [task.folder.relative_to(ROOT) for task in shipped_tasks()][1:]
    assert {f"experiments/{name}" for name in (QUICK_TASK, "gpt-small", "gpt-small-l")} < set(map(str, others))
    for folder in others:
        assert wheel["force-include"][str(folder)] == f"autoresearch/task/shipped/{folder.name}"


def test_the_sizes_of_gpt_small_are_the_same_program_with_another_budget() -> None:
    names = ("gpt-small", "gpt-small-m", "gpt-small-l", "gpt-small-smoke")
    tasks = [task for task in map(shipped_by_name, names) if task is not None]

    assert [task.budget.amount for task in tasks] == [2e15, 2e16, 1.2e17, 2e12]
    assert len({task.baseline for task in tasks}) == 1
    for task in tasks:
        assert patches_of(task)
        sizes: dict[str, float] = {}
        exec(task.harness["size.py"], sizes)
        assert (sizes["WORK"], sizes["FLOOR"]) == (task.budget.amount, task.metric.floor)


def test_an_installed_package_falls_back_to_its_own_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "autoresearch" / "task"
    shipped = package / "shipped"
    shipped.mkdir(parents=True)
    for name in ("task.toml", "grammar.py", "prepare.py", "train.py"):
        shutil.copy(ROOT / "experiments" / name, shipped)
    strangers = tmp_path / "site-packages" / "experiments"
    strangers.mkdir()
    (strangers / "task.toml").write_text("name = 'not ours'")
    expected = shipped_task()

    monkeypatch.setattr(loading, "_PACKAGE", package)
    task = shipped_task()

    assert task.folder == shipped
    assert task.digest == expected.digest


EVALUATION = """
[evaluation]
text = "val.bin"
vocabulary = 128
length = 256
values = 1000
"""


def refereed(folder: Path, evaluation: str, *, source: str = "referee") -> None:
    manifest = folder / "task.toml"
    text = manifest.read_text().replace('direction = "minimize"', f'direction = "minimize"\nsource = "{source}"')
    manifest.write_text(f'{text}"val.bin" = "{"cd" * 32}"\n{evaluation}')


def test_a_task_says_what_the_referee_asks(folder: Path) -> None:
    before = load_task(folder).digest
    refereed(folder, EVALUATION + 'withheld = ["prepare.py"]\nfresh = true\n')

    task = load_task(folder)

    assert task.evaluation is not None
    assert (task.evaluation.text, task.evaluation.withheld, task.evaluation.fresh) == ("val.bin", ["prepare.py"], True)
    assert task.definition()["evaluation"]["tolerance"] == 0.0005  # type: ignore[index]
    assert task.digest != before


def test_more_bits_are_never_better(folder: Path) -> None:
    refereed(folder, EVALUATION)
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text().replace('"minimize"', '"maximize"'))

    with pytest.raises(UsageError, match="fewer are better"):
        load_task(folder)


@pytest.mark.parametrize(
    ("evaluation", "source", "sentence"),
    [
        ("", "referee", "the referee needs to know"),
        (EVALUATION, "harness", "is for the referee"),
        (EVALUATION.replace("val.bin", "other.bin"), "referee", "other.bin, is not a file of"),
        (EVALUATION + 'withheld = ["secret.py"]', "referee", "names secret.py"),
        (EVALUATION.replace("128", "1"), "referee", "evaluation.vocabulary"),
        (EVALUATION.replace("length = 256", "length = 0"), "referee", "evaluation.length"),
        (EVALUATION.replace("values = 1000\n", ""), "referee", "values"),
        (EVALUATION + "tolerance = 0.0", "referee", "evaluation.tolerance"),
    ],
)
def test_what_the_referee_cannot_ask_is_refused(folder: Path, evaluation: str, source: str, sentence: str) -> None:
    refereed(folder, evaluation, source=source)

    with pytest.raises(UsageError) as refused:
        load_task(folder)

    assert sentence in str(refused.value)
    assert refused.value.hint
