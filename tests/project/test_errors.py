"""Wrong files, values and classes: a sentence with file and line, an exit status, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install
from autoresearch.project.model import load_project
from tests.project.making import POLICY, bench, learner, plain, train

HEAD = "[Environment]\nclass_name = light:Light\n"
TAIL = "[Policy]\nclass_name = still:Still\n"


def failed_run(folder: Path, ini: str, *assignments: str) -> tuple[str, int, str]:
    """The sentence, status and hint of a benchmark run that fails."""
    (folder / "agent.ini").write_text(ini)
    with pytest.raises(AutoresearchError) as raised:
        bench(folder, 1, *assignments)
    return str(raised.value), raised.value.exit_status, raised.value.hint


@pytest.mark.parametrize(
    ("ini", "sentence", "status"),
    [
        (HEAD + "length = long\n" + TAIL, "line 3: environment.light: length must be a whole number, not “long”", 2),
        (HEAD + "price = cheap\n" + TAIL, "line 3: environment.light: price must be a number, not “cheap”", 2),
        (HEAD + "on = 3\n" + TAIL, "agent.ini, line 3: environment.light: on must be yes or no, not “3”", 2),
        (HEAD + "width = 3\n" + TAIL, "agent.ini, line 3: environment.light has no parameter width", 2),
        (HEAD.replace(":Light", ":Dark") + TAIL, "has no class Dark", 4),
        (HEAD.replace("light:", "dark:") + TAIL, "agent.ini, line 2: there is no file", 4),
        (HEAD + "[Policy]\nclass_name = still\n", "agent.ini, line 4: the class has no file", 2),
        (HEAD + "[Policy]\nclass_name = a b:c d\n", "agent.ini, line 4: “a b:c d” names no class", 2),
        (HEAD + "[Policy]\nlength = 3\n", "agent.ini, line 4: [Policy] has parameters and no class_name", 2),
        (HEAD + TAIL + "default = dqn\n", "agent.ini, line 5: there is no policy dqn", 2),
        (HEAD, "this project has no policy", 4),
        (HEAD + TAIL + "[Agent]\nclass_name = still:Still\nlearns_on_run = so\n", "line 7: learns_on_run must be", 2),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path: Path, ini: str, sentence: str, status: int) -> None:
    failure = failed_run(plain(tmp_path), ini)
    assert sentence in failure[0]
    assert failure[1] == status
    assert not (tmp_path / ".autoresearch/head").exists()


@pytest.mark.slow
def test_parameters_come_from_the_ini_then_the_file_then_the_command(tmp_path: Path) -> None:
    plain(tmp_path)
    (tmp_path / "agent.ini").write_text(HEAD + "length = 5\n" + TAIL)
    assert bench(tmp_path, 1).data.metrics["steps"] == 5
    (tmp_path / "parameters.yaml").write_text("environment.light:\n  length: 7\n")
    assert bench(tmp_path, 1).data.metrics["steps"] == 7
    run = bench(tmp_path, 1, "environment.length=9", "environment.light.price=2")
    assert (run.data.metrics["steps"], run.data.metrics["mean_reward"]) == (9, -18)
    assert (run.folder / "parameters.yaml").read_text() == "environment.light:\n  length: 9\n  price: 2\n"


@pytest.mark.parametrize(
    ("yaml", "sentence"),
    [
        ("environment:\n  length: long\n", "parameters.yaml, line 2: environment.light: length must be a whole number"),
        ("environment:\n  - 3\n", "parameters.yaml, line 2: a mapping is missing here"),
        ("policy.dqn:\n  a: 1\n", "parameters.yaml, line 2: this project has no policy.dqn"),
        ("a: b: c\n", "parameters.yaml, line 1: mapping values are not allowed here"),
        ("environment:\n  length: !!python/object/apply:os.system [id]\n", "line 2: could not determine a constructor"),
        ("environment:\n  class_name: 3\n", "parameters.yaml, line 2: class_name is no parameter"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_the_parameters_is_named(tmp_path: Path, yaml: str, sentence: str) -> None:
    plain(tmp_path)
    (tmp_path / "parameters.yaml").write_text(yaml)
    failure = failed_run(tmp_path, HEAD + TAIL)
    assert sentence in failure[0]
    assert failure[1] == 2


@pytest.mark.slow
def test_a_wrong_assignment_is_named(tmp_path: Path) -> None:
    plain(tmp_path)
    assert "“length=3” sets nothing" in failed_run(tmp_path, HEAD + TAIL, "length=3")[0]
    assert "--set trainer.x: this project has no trainer" in failed_run(tmp_path, HEAD + TAIL, "trainer.x=3")[0]
    assert (
        "--set environment.length: environment.light: length must"
        in failed_run(tmp_path, HEAD + TAIL, "environment.length=x")[0]
    )


@pytest.mark.slow
def test_an_error_in_a_components_code_names_its_line(tmp_path: Path) -> None:
    plain(tmp_path)
    (tmp_path / "still.py").write_text(POLICY.replace("return 0", "return 1 / 0"))
    failure = failed_run(tmp_path, HEAD + TAIL)
    assert "still.py, line 4: ZeroDivisionError: division by zero" in failure[0]
    assert "log.txt" in failure[2]
    assert "Traceback" in (tmp_path / ".autoresearch/log.txt").read_text()
    (tmp_path / "still.py").write_text("def broken(\n")
    assert "policy.still: still.py, line 1: SyntaxError" in failed_run(tmp_path, HEAD + TAIL)[0]
    (tmp_path / "still.py").write_text("import no_such_package\n")
    assert "needs the package no_such_package" in failed_run(tmp_path, HEAD + TAIL)[0]
    (tmp_path / "still.py").write_text("import os\nos._exit(3)\n")
    assert "the project's process ended before the run was done" in failed_run(tmp_path, HEAD + TAIL)[0]


@pytest.mark.slow
def test_what_was_learned_for_another_environment_is_refused_with_a_remedy(tmp_path: Path) -> None:
    learner(tmp_path)
    train(tmp_path, 5)
    install(load_project(tmp_path), find_offer("environment", "2048", tmp_path), default=True)
    with pytest.raises(AutoresearchError, match=r"policy\.q_table can't go on from what it learned before") as raised:
        bench(tmp_path, 1)
    assert "autoresearch agent reset" in raised.value.hint


@pytest.mark.slow
def test_a_damaged_state_is_refused_with_a_remedy(tmp_path: Path) -> None:
    run = train(learner(tmp_path), 5)
    for name in ("policy.q_table.json", "policy.q_table.safetensors"):
        content = (run.folder / "data" / name).read_bytes()
        (run.folder / "data" / name).write_bytes(b"{")
        with pytest.raises(AutoresearchError, match="is not what run") as raised:
            bench(tmp_path, 1)
        assert raised.value.hint.startswith("autoresearch agent reset")
        (run.folder / "data" / name).write_bytes(content)
    assert bench(tmp_path, 1).data.parent == run.id
