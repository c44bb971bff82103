"""What the recipes tell a reader to type works as it stands."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, played, section, steps

PAGES = ROOT / "docs/how-to"


def test_a_robot_a_learner_and_an_actor_run_as_the_page_says(tmp_path: Path) -> None:
    text = (PAGES / "a-robot-learner-with-actors-elsewhere.md").read_text()
    with ExitStack() as stack:  # other tests may use the page's ports
        for port in sorted(set(re.findall(r"port(?:_number)?=(\d+)", text))):
            free = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            text = text.replace(port, str(free))
    program = list(steps(text))
    assert len(program) == 9

    assert played(program, tmp_path) == program


@pytest.mark.slow  # eight starts of the command line
def test_a_lab_sets_up_its_cluster_as_the_page_says(tmp_path: Path) -> None:
    text = section((PAGES / "use-a-slurm-cluster.md").read_text(), "A lab that shares a cluster")
    program = [*steps(text), "autoresearch node config get executor.options | grep account=lab"]
    assert len(program) == 6

    assert played(program, tmp_path) == program


@pytest.mark.slow  # runs of its programs in the sandbox, and a daemon
@pytest.mark.parametrize("page", ["a-record-for-auditors", "an-optuna-study-over-laptops"])
def test_the_commands_of_a_recipe_run(page: str, tmp_path: Path) -> None:
    program = list(steps((PAGES / f"{page}.md").read_text()))
    assert len(program) > 8

    assert played(program, tmp_path) == program
