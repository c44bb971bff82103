"""Programs of others on the cards, as nvidia-smi names them; a card that sleeps is not asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_daemon.gauges import Gauges
from autoresearch_daemon.owner.host import LocalMachine, others

from autoresearch.settings import Work
from tests.run.cards.conftest import UUID, Machine

BUS = "0000:01:00.0"
# More than the kernel gives to any process.
NOBODY = 1 << 23


@pytest.fixture
def calls_file(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a card, and the file in which its nvidia-smi notes each call; beside it what that prints."""
    machine.add(0, BUS, UUID)
    calls, program = tmp_path / "calls", tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\necho "$1" >> {calls}\ncat {tmp_path}/printed\n')
    program.chmod(0o755)
    calls.touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return calls


def count(calls_file: Path) -> int:
    return len(calls_file.read_text().splitlines())


def test_programs_of_others_are_named_and_own_ones_are_not(calls_file: Path) -> None:
    own = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        lines = (f"{own.pid}, python", f"{os.getppid()}, /usr/bin/blender", f"{NOBODY}, /of/another/container", "none")
        calls_file.with_name("printed").write_text("\n".join(lines))
        assert others() == (f"blender ({os.getppid()})",)
    finally:
        own.communicate()


def test_a_card_that_sleeps_is_not_asked(calls_file: Path, machine: Machine) -> None:
    calls_file.with_name("printed").write_text(f"{os.getppid()}, blender")
    power = machine.folder / "hardware" / BUS / "power"
    power.mkdir()
    (power / "runtime_status").write_text("suspended\n")
    assert others() == ()
    Gauges(machine.folder).look(cards=True)
    assert calls_file.read_text() == ""
    (power / "runtime_status").write_text("active\n")
    assert others()
    assert calls_file.read_text()


async def test_while_nothing_runs_cards_are_asked_every_half_minute(calls_file: Path, tmp_path: Path) -> None:
    calls_file.with_name("printed").write_text(f"{os.getppid()}, blender")
    host, work = LocalMachine(tmp_path), Work(only_free_card=True)
    begin = 1_800_000_000_000
    for seconds in range(0, 61, 5):
        reading = await host.read(work, begin + 1000 * seconds, running=False)
        assert reading.others == (f"blender ({os.getppid()})",)
    assert count(calls_file) == 3
    for seconds in range(65, 76, 5):
        await host.read(work, begin + 1000 * seconds, running=True)
    assert count(calls_file) == 6
