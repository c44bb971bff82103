"""A machine with a card that is none: the driver's files, and a driver library that fails as the real one does."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from autoresearch.run.proving import prove
from autoresearch.run.sandbox import cards
from autoresearch.run.sandbox.job import Level
from tests.walls import best_level

UUID = "GPU-d4ab8a56-1111-2222-3333-444455556666"
INFORMATION = """Model: \t\t NVIDIA Stand-in 24G
IRQ:   \t\t 178
GPU UUID: \t {uuid}
Video BIOS: \t 94.02.42.00.a9
Bus Type: \t PCIe
Bus Location: \t {bus}
Device Minor: \t {minor}
"""
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 06:27:22 UTC 2026\n"


@dataclass(frozen=True, slots=True)
class Machine:
    """The folders of the stand-in. A card's ``state`` is what its device file says; see ``driver.c``."""

    folder: Path

    def add(self, minor: int, bus: str, uuid: str) -> Path:
        """Put a card in; its device file."""
        place = self.folder / "driver" / "gpus" / bus
        place.mkdir(parents=True)
        (place / "information").write_text(INFORMATION.format(uuid=uuid, bus=bus, minor=minor))
        hardware = self.folder / "hardware" / bus
        hardware.mkdir(parents=True)
        (hardware / "vendor").write_text("0x10de\n")
        (self.folder / "bus" / bus).symlink_to(hardware)
        self.state("ok", minor)
        return self.folder / "dev" / f"nvidia{minor}"

    def state(self, word: str, minor: int = 0) -> None:
        """Have a card be so from now on."""
        node = self.folder / "dev" / f"nvidia{minor}"
        node.write_text(word)
        node.chmod(0o666)


@pytest.fixture(scope="session")
def driver() -> Iterator[Path]:
    """The folder with the stand-in for CUDA's driver library."""
    if shutil.which("gcc") is None:
        pytest.skip("the stand-in for the driver is compiled with gcc")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        source, library = Path(__file__).with_name("driver.c"), Path(folder) / "libcuda.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", library, source], check=True)
        yield Path(folder)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with a driver and no card."""
    with TemporaryDirectory() as folder:
        made = Machine(Path(folder))
        for name in ("driver", "dev", "bus"):
            (made.folder / name).mkdir()
        made.folder.chmod(0o755)
        (made.folder / "driver" / "version").write_text(VERSION)
        for node in ("nvidiactl", "nvidia-uvm"):
            (made.folder / "dev" / node).touch()
        monkeypatch.setattr(cards, "DRIVER", made.folder / "driver")
        monkeypatch.setattr(cards, "NODES", made.folder / "dev")
        monkeypatch.setattr(cards, "BUS", made.folder / "bus")
        yield made


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What has nvidia-smi answer with a shell script from now on."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def answer(script: str) -> None:
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "nvidia-smi").chmod(0o755)

    return answer


@pytest.fixture
def one_card(machine: Machine) -> Machine:
    """A machine with one card, without a sandbox and without the driver's library."""
    machine.add(0, "0000:01:00.0", UUID)
    return machine


@pytest.fixture
def set_state(one_card: Machine, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A machine with one card, in a sandbox that holds: what sets that card's state."""
    if best_level() < Level.BUBBLEWRAP:
        pytest.skip("programs get a card behind bubblewrap only")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    prove.cache_clear()
    yield one_card.state
    prove.cache_clear()
