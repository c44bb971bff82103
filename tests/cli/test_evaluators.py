"""A task's own evaluator measures what the program left, and a program that cheats gains nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.records import ShowAnswer
from autoresearch.errors import UsageError
from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import FIT, FORESEEING, HIDDEN, TOSSES, evaluated_task
from tests.cli.test_ideas import ran
from tests.cli.test_json import strictly
from tests.run.sandbox.conftest import level  # noqa: F401 - both levels of the sandbox


@pytest.fixture
def bench(level: object, tmp_path: Path) -> Bench:  # noqa: F811 - the fixture of that name
    return Bench(level, 1, "cpu", tmp_path / "data", tmp_path / "scratch")  # type: ignore[arg-type]


def measured(tmp_path: Path, bench: Bench, program: str) -> JobOutcome:
    """A program on the task whose baseline is the honest one."""
    task = load_task(evaluated_task(tmp_path / "fit"))
    return Experiment(task, plan_as_it_stands(task, program), bench).measure(own=True)


def honest(tmp_path: Path, bench: Bench) -> float:
    value = measured(tmp_path, bench, FIT).value
    assert value is not None
    return value


def test_the_number_is_the_evaluators_and_not_what_the_program_prints(tmp_path: Path, bench: Bench) -> None:
    outcome = measured(tmp_path, bench, FIT)

    assert outcome.status == "ok", outcome.reason
    assert outcome.value is not None
    assert 0.6 < outcome.value < 0.95
    assert "evaluator" in outcome.reason
    assert outcome.checkpoint is not None
    assert outcome.checkpoint.read_bytes() == b'{"threshold": 0.5}'
    assert list(outcome.metrics) == ["accuracy"]


CHEATS = {
    "prints another number": 'print("accuracy: 1.0")\n',
    "changes the evaluator's file": 'open("evaluate.py", "w").write("print(\'accuracy: 1.0\')")\n',
    "puts its own in place": 'import os; os.remove("evaluate.py"); os.symlink("model.json", "evaluate.py")\n',
    "writes modules for it": 'open("json.py", "w").write("raise SystemExit(print(\'accuracy: 1.0\'))")\n',
    "writes to the given files": (
        'import pathlib\nfor f in pathlib.Path(__file__).parent.iterdir():\n    try: f.write_text("x")\n'
        "    except OSError: pass\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gets_the_honest_number(tmp_path: Path, bench: Bench, cheat: str) -> None:
    expected = honest(tmp_path, bench)
    assert measured(tmp_path, bench, FIT + CHEATS[cheat]).value == pytest.approx(expected, abs=0.1)


@pytest.mark.slow
def test_a_withheld_file_is_nowhere_to_be_found(tmp_path: Path, bench: Bench) -> None:
    search = """
import os, pathlib
places = [".", pathlib.Path(__file__).parent, "/in", "/tmp", os.environ.get("AUTORESEARCH_DATA", ".")]
found = [name for place in places for _, _, names in os.walk(place) for name in names if name == "hidden.csv"]
assert not found, found
"""

    measurement = measured(tmp_path, bench, FIT + search)

    assert measurement.status == "ok", measurement.reason


OUTSIDE = "/etc/passwd"


@pytest.mark.slow
def test_a_program_that_works_out_the_evaluator_s_seed_gains_nothing_with_fresh(tmp_path: Path, bench: Bench) -> None:
    values = {}
    for fresh in (False, True):
        task = load_task(evaluated_task(tmp_path / str(int(fresh)), FORESEEING, evaluator=TOSSES, fresh=fresh))
        values[fresh] = Experiment(task, plan_as_it_stands(task, FORESEEING), bench).measure(own=True).value

    assert values[False] == 1.0
    assert values[True] is not None
    assert 0.2 < values[True] < 0.8


def test_fresh_is_another_task_and_without_it_the_digest_is_what_it_was(tmp_path: Path) -> None:
    plain = load_task(evaluated_task(tmp_path / "fit"))
    manifest = plain.folder / "task.toml"
    manifest.write_text(manifest.read_text() + "fresh = false\n")
    assert load_task(plain.folder).digest == plain.digest
    assert "fresh" not in str(plain.definition())
    manifest.write_text(manifest.read_text().replace("fresh = false", "fresh = true"))
    assert load_task(plain.folder).digest != plain.digest


FAULTS = {
    "nothing": "import os; os.remove('model.json')\n",
    "a link": f"import os; os.remove('model.json'); os.symlink({OUTSIDE!r}, 'model.json')\n",
    "a link to its own": "import os; os.rename('model.json', 'm'); os.symlink('m', 'model.json')\n",
    "a second name": "import os; os.link('model.json', 'm')\n",
    "a pipe": "import os; os.remove('model.json'); os.mkfifo('model.json')\n",
    "a folder": "import os; os.remove('model.json'); os.mkdir('model.json')\n",
    "nothing in it": "open('model.json', 'w')\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_plain_file_is_refused(tmp_path: Path, bench: Bench, fault: str) -> None:
    program = FIT.replace('json.dump({"threshold": THRESHOLD}, open("model.json", "w"))', "").rstrip()
    program += '\nwith open("model.json", "w") as out: json.dump({"threshold": THRESHOLD}, out)\n' + FAULTS[fault]

    measurement = measured(tmp_path, bench, program)

    assert (measurement.status, measurement.value) == ("invalid", None), measurement.reason
    assert "no plain file model.json" in measurement.reason


def test_an_artifact_that_is_too_large_is_refused_without_reading_all_of_it(tmp_path: Path, bench: Bench) -> None:
    measurement = measured(tmp_path, bench, FIT + "open('model.json', 'ab').truncate(200 << 20)\n")

    assert (measurement.status, measurement.value) == ("output_limit", None)
    assert "larger than 1 MiB" in measurement.reason


@pytest.mark.slow
def test_an_artifact_that_the_evaluator_cannot_read_is_no_number(tmp_path: Path, bench: Bench) -> None:
    measurement = measured(tmp_path, bench, "open('model.json', 'w').write('{')\n")

    assert (measurement.status, measurement.value) == ("crashed", None)
    assert "the task's evaluator did not end well" in measurement.reason


@pytest.mark.slow
def test_an_artifact_for_its_own_eyes_is_handed_out(tmp_path: Path, bench: Bench) -> None:
    measurement = measured(tmp_path, bench, FIT + "import os; os.chmod('model.json', 0o600)\n")

    assert measurement.status == "ok", measurement.reason


@pytest.mark.parametrize(
    ("line", "instead", "named"),
    [
        ('artifact = "model.json"', 'artifact = "../model.json"', "evaluation.artifact"),
        ('artifact = "model.json"', 'artifact = "train.py"', "is a file of the task"),
        ('artifact = "model.json"', 'artefact = "model.json"', "did you mean evaluation.artifact?"),
        ('artifact = "model.json"\n', "", "artifact"),
        ('command = "python evaluate.py"', 'command = "python \'x"', "evaluation.command can't be read"),
        ('withheld = ["hidden.csv"]', 'withheld = ["other.csv"]', "names other.csv"),
        ("artifact_mib = 1", "artifact_mib = 1000", "evaluation.artifact_mib"),
        ('source = "evaluator"', 'source = "stdout"', "is for the referee and for an evaluator"),
    ],
)
def test_a_wrong_table_is_refused_by_name(tmp_path: Path, line: str, instead: str, named: str) -> None:
    folder = evaluated_task(tmp_path / "fit")
    manifest = folder / "task.toml"
    assert line in manifest.read_text()
    manifest.write_text(manifest.read_text().replace(line, instead, 1))
    with pytest.raises(UsageError) as caught:
        load_task(folder)
    assert named in f"{caught.value}\n{caught.value.hint}"


def test_task_and_run_say_who_measures(process: Process, tmp_path: Path) -> None:
    folder = evaluated_task(tmp_path / "fit")
    pin_baseline(folder)
    assert HIDDEN
    assert "measured by the task's evaluator" in process("task", "show", str(folder)).stdout
    baseline = ran(process, folder)
    assert baseline.run
    assert baseline.measured_by == "evaluator"
    (folder / "train.py").write_text(FIT.replace("THRESHOLD = 0.5", "THRESHOLD = 0.7"))
    result = process("run", str(folder))
    assert ": 1.0000, its parent" in result.stderr, result.stderr
    output = process("show", "@mine").stdout
    assert "measured\tby the task's evaluator" in output
    answer = strictly(process("show", "@mine", "--json").stdout, ShowAnswer)
    assert answer.run
    assert answer.run.run.checkpoint
