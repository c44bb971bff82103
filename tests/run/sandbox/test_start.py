"""What can't be started is refused with a sentence; what makes no sense is a usage error."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits, Level
from tests.run.sandbox.support import job


@pytest.mark.parametrize(
    "wrong",
    [
        Job(files={}),
        Job(files={"../train.py": b""}, entry="../train.py"),
        Job(files={"train.py": b""}, data=Path("/does/not/exist")),
        Job(files={"train.py": b""}, mounts=(Path("/does/not/exist"),)),
        Job(files={"train.py": b""}, limits=JobLimits(seconds=float("nan"))),
        Job(files={"train.py": b""}, limits=JobLimits(processes=0)),
        Job(files={"train.py": b""}, arguments=("a\0b",)),
    ],
)
def test_a_senseless_job_is_a_usage_error(wrong: Job) -> None:
    with pytest.raises(UsageError):
        execute(wrong, level=Level.NONE)


def test_a_missing_bubblewrap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    outcome = execute(job("succeed()"), level=Level.BUBBLEWRAP)
    assert outcome.status == "refused"
    assert "bubblewrap is not installed" in outcome.reason


_REFUSED = """
import platform, sys
from autoresearch.run.sandbox import filters, launcher
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, Level
from autoresearch.run.sandbox.probes import detect_level
launcher._prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
launcher.apply_seccomp(filters.deny_filter(platform.machine(), sockets=True))
files = {"train.py": b"print('it ran')"}
outcome = execute(Job(files=files, metric_source="stdout"), level=Level.LANDLOCK)
print(outcome.status, outcome.reason, outcome.log)
level, results = detect_level()
print(level, results[0].name, results[0].blocked, results[0].detail)
"""


@pytest.mark.slow
def test_without_a_namespace_for_processes_there_is_no_sandbox() -> None:
    """The filter of a sandbox stands for a machine that allows none."""
    command = [sys.executable, "-c", _REFUSED]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    refusal = "the kernel refuses a namespace for processes: Operation not permitted"
    missing = f"the sandbox did not start: [Errno 1] {refusal}"
    assert printed == [f"refused {missing} b''", f"0 start the sandbox False {missing}"]


def test_an_unknown_processor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "pdp11")
    assert execute(job("succeed()"), level=Level.LANDLOCK).status == "refused"


def test_a_missing_interpreter_is_refused(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/no-such-python")
    outcome = execute(job("succeed()"), level=level)
    assert outcome.status == "refused"
    assert "no-such-python" in outcome.reason or "No such file" in outcome.reason


def test_an_empty_program_is_a_crash_not_an_error(level: Level) -> None:
    outcome = execute(dataclasses.replace(job(""), files={"train.py": b"\0\xff("}), level=level)
    assert outcome.status == "crashed"


def test_enormous_limits_are_no_error(level: Level) -> None:
    limits = JobLimits(1e20, 1 << 60, 1 << 60, 1 << 40, 1 << 50, 1 << 60)
    assert execute(job("succeed()", limits=limits), level=level).status == "ok"


@pytest.mark.slow
def test_an_interpreter_below_the_temporary_folder_is_not_hidden_by_the_runs_own(level: Level) -> None:
    program = f"""
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import interpreter_folders
files = {{"train.py": b"print('x: 1')"}}
job = Job(files=files, metric_source="stdout", metric_name="x")
outcome = execute(job, level=Level({int(level)}))
print(outcome.status, outcome.value, outcome.reason, interpreter_folders())
"""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="venv-") as folder:
        Path(folder).chmod(0o755)
        venv.create(folder, with_pip=False, symlinks=True)
        result = subprocess.run(
            [f"{folder}/bin/python", "-c", program],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.startswith("ok 1.0"), result.stdout
        assert folder in result.stdout
