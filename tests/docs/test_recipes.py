"""What the recipes tell a reader to type works as it stands."""

from __future__ import annotations

import re
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from autoresearch.run.sandbox.obstacle import Readings, obstacle
from tests.docs.test_tutorial import ROOT, played, section, steps

PAGES = ROOT / "docs/how-to"


@pytest.mark.slow
def test_a_robot_a_learner_and_an_actor_run_as_the_page_says(tmp_path: Path) -> None:
    text = (PAGES / "a-robot-learner-with-actors-elsewhere.md").read_text()
    with ExitStack() as stack:  # other tests may use the page's ports
        free = {
            port: str(stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1])
            for port in set(re.findall(r"port(?:_number)?=(\d+)", text))
        }
    text = re.sub("|".join(free), lambda port: free[port[0]], text)
    program = list(steps(text))
    assert len(program) == 9

    assert played(program, tmp_path) == program


@pytest.mark.parametrize(("page", "heading"), [("install", "What each system needs"), ("troubleshoot", "No sandbox")])
def test_pages_and_the_doctor_say_the_same_of_apparmor(page: str, heading: str) -> None:
    below = section((PAGES / f"{page}.md").read_text(), heading)
    lines = re.findall(r"^\$ (sudo apt install apparmor\S*|sudo cp .*|sudo apparmor_parser .*)$", below, re.MULTILINE)
    message = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
    remedy = obstacle(Readings(program="/usr/bin/bwrap", message=message, apparmor="1")).remedy
    assert remedy.startswith(" && ".join(lines))
    assert len(lines) == 3


@pytest.mark.slow  # five starts of the command line
def test_what_a_mac_is_told_to_type_works(tmp_path: Path) -> None:
    program = list(steps(section((PAGES / "install.md").read_text(), "What each system needs")))
    assert len(program) == 2

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
