"""Walls by Apptainer's words. No Apptainer is installed here: a stand-in carries them out, the rest is real."""

from __future__ import annotations

import sys
from pathlib import Path
from secrets import token_hex

import pytest

from autoresearch.run.sandbox import filters, probes
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level, probe_sandbox
from autoresearch.words import RunStatus
from tests.run.sandbox.apptainer import BUBBLEWRAP
from tests.run.sandbox.support import SMALL, job, processes_with, run

pytestmark = pytest.mark.skipif(not Path(BUBBLEWRAP).exists(), reason="the stand-in is made of bubblewrap")


@pytest.fixture(autouse=True)
def only_apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without bubblewrap and landlock, that has Apptainer."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "apptainer"
    source = Path(__file__).with_name("apptainer.py").read_text()
    program.write_text(f"#!{sys.executable} -I\n{source}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(filters, "landlock_version", lambda: 0)
    monkeypatch.setattr(probes, "probe_sandbox", probe_sandbox)
    return program


@pytest.mark.slow
def test_every_probe_is_blocked_and_so_it_is_taken() -> None:
    level, results = detect_level()
    assert [(result.name, result.detail) for result in results if not result.blocked] == []
    assert (level, level.label) == (Level.APPTAINER, "S3")


def test_without_it_only_own_programs_are_run(only_apptainer: Path) -> None:
    only_apptainer.unlink()
    assert detect_level()[0] is Level.NONE


def test_one_that_gives_no_namespace_for_processes_is_not_used(only_apptainer: Path) -> None:
    only_apptainer.write_text(only_apptainer.read_text().replace('"--unshare-pid", "--as-pid-1", ', ""))
    outcome = run("succeed()", Level.APPTAINER)
    assert outcome.status is RunStatus.REFUSED
    assert "there is no namespace for processes" in outcome.reason
    assert detect_level()[0] is Level.NONE


def test_a_program_has_its_files_its_data_and_its_mounts(tmp_path: Path) -> None:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    for name in ("data", "mount"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    source = f"""
    assert os.getpid() != 1 and os.getcwd() == "/tmp/run", os.getcwd()
    assert sorted(os.listdir("/in")) == ["other.py", "train.py"], os.listdir("/in")
    assert open(os.environ["AUTORESEARCH_DATA"] + "/file").read() == "data"
    assert open({str(tmp_path / "mount" / "file")!r}).read() == "mount"
    assert "AUTORESEARCH_HOME" not in os.environ and os.environ["HOME"] == "/tmp"
    open("/dev/shm/x", "w").write("x")
    os.write(int(os.environ["AUTORESEARCH_CHECKPOINT_FD"]), b"model")
    succeed()
    """
    contained_job = job(
        source,
        beside={"other.py": b""},
        data=tmp_path / "data",
        mounts=(tmp_path / "mount",),
        checkpoint_to=tmp_path,
    )
    outcome = execute(contained_job, level=Level.APPTAINER)
    assert outcome.status is RunStatus.OK, outcome.reason + outcome.log.decode()
    assert outcome.checkpoint is not None
    assert (outcome.sandbox, outcome.checkpoint.read_bytes()) == (3, b"model")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("x = bytearray(400 << 20); time.sleep(30)", RunStatus.OUT_OF_MEMORY),
        ("for n in range(40): open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 20))\ntime.sleep(30)", RunStatus.DISK_LIMIT),
        ("if os.fork() == 0:\n    os.setsid(); time.sleep(987)\nsucceed()", RunStatus.OK),
    ],
    ids=["memory", "files", "a process that stays"],
)
def test_its_limits_hold_and_nothing_of_it_stays(source: str, status: RunStatus) -> None:
    marker = token_hex(8)
    assert run(source, Level.APPTAINER, limits=SMALL, arguments=(marker,)).status is status
    assert processes_with(marker) == []
