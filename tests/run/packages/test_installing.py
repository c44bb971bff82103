"""Where an environment comes from and who sees it: both sandbox levels, killed installations, old environments."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, CannotRunHere
from autoresearch.paths import Paths
from autoresearch.run.bench import Bench, environment, job_limits
from autoresearch.run.consent import allow
from autoresearch.run.data import Preparer, prepare_data
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.packages import (
    ALLOWED,
    PackagesNotAllowed,
    are_allowed,
    environment_folder,
    installed_bytes,
    is_installed,
    program_python,
    task_python,
    unpack,
)
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Work
from autoresearch.task.loading import load_task
from autoresearch.task.needs import lock_digest, program_packages
from autoresearch.task.program import join_files
from autoresearch.words import RunStatus
from tests.cli.conftest import Cli
from tests.daemon.daemons import wait_for
from tests.run.packages.conftest import write_folder
from tests.run.packages.wheels import write_wheel
from tests.run.sandbox.conftest import level as level  # noqa: PLC0414 - each level that works here
from tests.run.sandbox.support import SMALL, run

# What of this machine's Python a program can import, and whether it can write beside its packages.
LOOKING = """
import importlib.util, pathlib, sys
import tiny_a
here = pathlib.Path(tiny_a.__file__).parent
for name in ("torch", "autoresearch", "pip"):
    assert importlib.util.find_spec(name) is None, name
for folder in (here, pathlib.Path(sys.prefix), pathlib.Path(sys.prefix).parent):
    try:
        (folder / "planted.py").write_text("")
    except OSError:
        continue
    raise SystemExit(f"{folder} can be written")
succeed(tiny_a.VALUE)
"""


@pytest.mark.slow
def test_a_program_sees_the_packages_and_can_not_change_them(locked: Path, paths: Paths, level: Level) -> None:
    task = load_task(locked)
    python = task_python(task, paths.environments, may_install=lambda: ALLOWED)
    outcome = run(LOOKING, level, python=python)
    assert outcome.status is RunStatus.OK, outcome.log.decode()
    assert outcome.value == 8.0


@pytest.mark.slow
def test_the_harness_runs_under_the_same_python(locked: Path, paths: Paths, level: Level, place: Path) -> None:
    made = b"8"
    source = (
        b"import os, tiny_a\nopen(os.path.join(os.environ['AUTORESEARCH_DATA'], 'x'), 'w').write(str(tiny_a.VALUE))\n"
    )
    python = task_python(load_task(locked), paths.environments, may_install=lambda: ALLOWED)
    expected = {"x": hashlib.sha256(made).hexdigest()}
    data = prepare_data(Preparer({"prepare.py": source}, level, SMALL, python=python), expected, place / "data")
    assert (data / "x").read_bytes() == made


@pytest.mark.slow
def test_a_record_names_the_versions_that_ran_it(locked: Path, paths: Paths, wheels: Path) -> None:
    python = task_python(load_task(locked), paths.environments, may_install=lambda: ALLOWED)
    assert python is not None
    assert python.version_of("tiny_a") == "1.0"
    assert "numpy" in environment()
    assert "numpy" not in environment(python)


def test_nothing_is_installed_without_consent(locked: Path, paths: Paths) -> None:
    with pytest.raises(PackagesNotAllowed, match="2 Python packages that nobody allowed here"):
        task_python(load_task(locked), paths.environments, may_install=lambda: 0)
    assert not paths.environments.exists()


@pytest.mark.slow
def test_a_program_runs_with_the_packages_that_it_brings_once_somebody_allowed_them(
    locked: Path, paths: Paths, place: Path, level: Level
) -> None:
    lock = (locked / "requirements.txt").read_text()
    source = join_files({"agent.py": "import tiny_a\n", "requirements.txt": lock})
    bench = Bench(level, 1, "cpu", place / "data", place / "scratch", environments=paths.environments)
    assert program_python("print(1)\n", bench) is None
    with pytest.raises(PackagesNotAllowed, match="2 Python packages that nobody allowed here"):
        program_python(source, bench)
    assert not are_allowed([source], paths, Work())
    allow(paths.allowed, lock_digest(program_packages(source)))
    assert are_allowed(["print(1)\n", source], paths, Work())
    python = program_python(source, replace(bench, may_install=ALLOWED))
    assert python is not None
    assert python.version_of("tiny_a") == "1.0"
    assert python.version_of("msgspec"), "beside the node's own"


@pytest.mark.slow
def test_what_is_here_needs_no_consent_and_no_index(
    locked: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_task(locked)
    task_python(task, paths.environments, may_install=lambda: ALLOWED)
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert task_python(task, paths.environments, may_install=lambda: 0) is not None


@pytest.mark.slow
def test_code_that_a_package_has_python_run_at_its_start_runs_in_the_sandbox_alone(
    locked: Path, paths: Paths, place: Path
) -> None:
    task, spy = load_task(locked), place / "seen"
    task_python(task, paths.environments, may_install=lambda: ALLOWED)
    site = next(environment_folder(task, paths.environments).glob("lib/python*/site-packages"))
    (site / "evil.pth").write_text(f"import os; os.system('touch {spy}')\n")
    (site / "sitecustomize.py").write_text(f"open({str(spy)!r}, 'w')\n")
    python = task_python(task, paths.environments, may_install=lambda: 0)
    assert python is not None
    assert python.version_of("tiny_b") == "1.2"
    bench = Bench(Level.BUBBLEWRAP, 1, "cpu", paths.task_data, place, python=python)
    plan = plan_as_it_stands(task, task.baseline.decode())
    Experiment(task, plan, bench).train(job_limits(task, bench.ceiling))
    assert not spy.exists()


@pytest.mark.slow
def test_installing_runs_nothing_and_replaces_nothing(place: Path, wheels: Path, cli: Cli, paths: Paths) -> None:
    spy = place / "seen"
    files = {
        "evil-1.0.data/scripts/python": f"#!/bin/sh\ntouch {spy}\n",
        "evil-1.0.data/data/bin/python": f"#!/bin/sh\ntouch {spy}\n",
        "evil-1.0.data/data/pyvenv.cfg": f"home = {place}\n",
        "evil-1.0.data/data/share/kept": "",
        "evil-1.0.data/platlib/evil_too.py": "",
        "evil-1.0.dist-info/entry_points.txt": "[console_scripts]\npython = evil:f\n../../../../planted = evil:f\n",
        "pip/__init__.py": f"open({str(spy)!r}, 'w')\n",
        "keyring.py": f"open({str(spy)!r}, 'w')\n",
        "evil.pth": f"import os; os.system('touch {spy}')\n",
    }
    write_wheel(wheels, "evil", "1.0", "", further=files)
    folder = write_folder(place / "evil-task", "import evil_too, tiny_a\nprint('score: 1')\n")
    (folder / "requirements.in").write_text("evil\ntiny_a\n")
    assert cli("task", "lock", str(folder)).exit_code == 0
    made = environment_folder(load_task(folder), paths.environments)
    assert cli("run", str(folder)).exit_code == 0
    assert not spy.exists()
    assert not list(place.rglob("planted*"))
    assert (made / "share" / "kept").exists()
    assert {file.name for file in (made / "bin").iterdir() if not file.is_symlink()} == {
        "Activate.ps1",
        "activate",
        "activate.csh",
        "activate.fish",
    }


def refused(wheel: Path, place: Path, *honest: Path, most: int = 1 << 30) -> str:
    """What is said of a list with a wheel, of which nothing is written."""
    (place / "made").mkdir()
    wheels = [*honest, wheel]
    hashes = [hashlib.sha256(each.read_bytes()).hexdigest() for each in wheels]
    with pytest.raises(CannotRunHere) as error:
        unpack(wheels, place / "made", hashes, most)
    assert not list((place / "made").iterdir())
    return str(error.value)


NAMES = [
    "../planted.py",
    "/planted.py",
    "a/../../planted.py",
    "..\\planted.py",
    "a\nb.py",
    "a//b.py",
    "./a.py",
    "a/./b.py",
]
NAMES += ["C:/a.py", "evil-1.0.data/data/../../x", "evil-1.0.data/data//etc/x", "x" * 256, "a/" * 600 + "b", "a\x1b.py"]
NAMES += ["EVIL.py", "evil.py/x", "e\u0301.py", "a\u202ey.py"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_leads_out_of_the_environment_is_refused(name: str, place: Path) -> None:
    honest = write_wheel(place / "wheels", "a", "1.0", "")
    files = {name: "", "é.py": ""}
    message = refused(write_wheel(place / "wheels", "evil", "1.0", "", further=files), place, honest)
    assert "evil-1.0-py3-none-any.whl can't be unpacked" in message
    assert not list(place.rglob("planted.py"))


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_a_wheel_holds_plain_files_alone(mode: int, place: Path) -> None:
    wheel = write_wheel(place / "wheels", "evil", "1.0", "")
    with zipfile.ZipFile(wheel, "a") as archive:
        entry = zipfile.ZipInfo("evil/link")
        entry.external_attr = (mode | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    assert "is a link, a device or encrypted" in refused(wheel, place)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method: int, place: Path) -> None:
    wheel = write_wheel(place / "wheels", "evil", "1.0", "")
    with zipfile.ZipFile(wheel, "a", method) as archive:
        archive.writestr("evil/data", bytes(1 << 20))
    assert "in a way that no wheel has" in refused(wheel, place)


def test_a_wheel_may_list_its_folders(place: Path) -> None:
    wheel = write_wheel(place / "wheels", "plain", "1.0", "", further={"plain.data/purelib/more/a.py": ""})
    with zipfile.ZipFile(wheel, "a") as archive:
        for folder in ("plain-1.0.dist-info/", "plain.data/", "plain.data/purelib/", "plain.data/purelib/more/"):
            entry = zipfile.ZipInfo(folder)
            entry.external_attr = (stat.S_IFDIR | 0o755) << 16
            archive.writestr(entry, "")
    (place / "made").mkdir()
    unpack([wheel], place / "made", [hashlib.sha256(wheel.read_bytes()).hexdigest()])
    assert {path.name for path in (place / "made").rglob("*") if path.is_file()} >= {"plain.py", "METADATA", "a.py"}


def bomb(folder: Path, name: str = "evil", mib: int = 64) -> Path:
    """A wheel of some KiB that unpacks to so many MiB."""
    wheel = write_wheel(folder, name, "1.0", "")
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{name}/zeros", "w") as file:
        for _ in range(mib):
            file.write(bytes(1 << 20))
    return wheel


def test_a_list_is_bounded_before_anything_is_unpacked(place: Path) -> None:
    wheels = [bomb(place / "wheels", f"evil{number}", 4) for number in range(4)]
    message = refused(wheels[0], place, *wheels[1:], most=15 << 20)
    assert "the packages take 16.0 MiB when they are unpacked, and 15.0 MiB are allowed" in message


def test_a_wheel_that_unpacks_to_more_than_it_says_writes_no_more(place: Path) -> None:
    wheel = bomb(place / "wheels", mib=1)
    content = wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        archive.fp.seek(archive.start_dir)  # type: ignore[union-attr]
    size = (1 << 20).to_bytes(4, "little")
    wheel.write_bytes(content.replace(size, (10).to_bytes(4, "little")))
    (place / "made").mkdir()
    with pytest.raises(CannotRunHere, match="can't be unpacked"):
        unpack([wheel], place / "made", [hashlib.sha256(wheel.read_bytes()).hexdigest()])
    assert sum(path.stat().st_size for path in place.joinpath("made").rglob("*") if path.is_file()) < 4096


@pytest.mark.parametrize("tail", [b"", b"PK\x05\x06" + b"\xff" * 18, b"\0" * 100])
def test_what_is_no_wheel_is_a_sentence(tail: bytes, place: Path) -> None:
    wheel = write_wheel(place / "wheels", "evil", "1.0", "")
    wheel.write_bytes(wheel.read_bytes()[:-22] + tail)
    assert "can't be unpacked" in refused(wheel, place)


def test_a_directory_of_files_is_not_read_without_end(place: Path) -> None:
    wheel = place / "evil-1.0-py3-none-any.whl"
    with wheel.open("wb") as file:
        size = 40 << 20
        file.truncate(size)
        file.seek(size)
        file.write(b"PK\x05\x06" + bytes(4) + b"\xff\x7f" * 2 + size.to_bytes(4, "little") + bytes(4) + bytes(2))
    assert "its list of files is too long" in refused(wheel, place)


@pytest.mark.slow
def test_a_budget_counts_a_list_before_it_is_installed(wheels: Path, place: Path, cli: Cli, paths: Paths) -> None:
    bomb(wheels)
    folder = write_folder(place / "task", "print('score: 1')\n")
    (folder / "requirements.in").write_text("evil\n")
    assert cli("task", "lock", str(folder)).exit_code == 0
    task = load_task(folder)
    with pytest.raises(
        CannotRunHere, match=r"the packages take 64\.0 MiB when they are unpacked, and 32\.0 MiB are allowed"
    ):
        task_python(task, paths.environments, may_install=lambda: 32 << 20)
    assert not is_installed(task, paths.environments)
    assert installed_bytes(paths.environments) < 1 << 20, "nothing is left"
    task_python(task, paths.environments, may_install=lambda: 80 << 20)
    assert is_installed(task, paths.environments)


@contextmanager
def index(wheels: Path) -> Iterator[tuple[str, threading.Event, threading.Event]]:
    """An index that sends no file until it is let go; its address, an event once a file is wanted, one to let go."""
    requested, go = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rstrip("/").rpartition("/")[2]
            files = [file for file in wheels.iterdir() if file.name.replace("_", "-").startswith(f"{name}-")]
            if self.path.endswith(".whl"):
                requested.set()
                go.wait()
            text = "".join(f'<a href="/files/{file.name}">{file.name}</a>' for file in files)
            body = (wheels / name).read_bytes() if self.path.endswith(".whl") else text.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple", requested, go
    finally:
        go.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def slow_index(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    with index(wheels) as (address, requested, go):
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.delenv("PIP_FIND_LINKS")
        monkeypatch.setenv("PIP_INDEX_URL", address)
        monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield requested, go


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_taken_for_whole(
    locked: Path, paths: Paths, slow_index: tuple[threading.Event, threading.Event]
) -> None:
    requested, go = slow_index
    task = load_task(locked)
    command = [sys.executable, "-m", "autoresearch_cli", "task", "allow", str(locked), "--yes"]
    installing = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert requested.wait(60)
    installing.send_signal(signal.SIGKILL)
    installing.wait()
    assert not is_installed(task, paths.environments)
    assert [folder.name for folder in paths.environments.glob("*/made")] == ["made"]

    go.set()
    assert task_python(task, paths.environments, may_install=lambda: ALLOWED) is not None

    def swept() -> bool:
        task_python(task, paths.environments, may_install=lambda: ALLOWED)
        return [folder for folder in paths.environments.iterdir() if folder.is_dir()] == [
            environment_folder(task, paths.environments)
        ]

    from autoresearch.run.sandbox.scratch import sweep

    wait_for(lambda: sweep(paths.environments) > 0 or swept())
    assert swept()


@pytest.mark.slow
def test_an_installation_can_be_stopped(
    locked: Path, paths: Paths, slow_index: tuple[threading.Event, threading.Event]
) -> None:
    requested, _ = slow_index
    with pytest.raises(AutoresearchError, match="stopped on request"):
        task_python(load_task(locked), paths.environments, may_install=lambda: ALLOWED, cancelled=requested.is_set)
    assert [folder for folder in paths.environments.iterdir() if folder.is_dir()] == []


@pytest.mark.slow
def test_an_environment_that_nobody_used_for_a_month_goes_when_the_next_is_made(
    locked: Path, paths: Paths, wheels: Path
) -> None:
    task = load_task(locked)
    old, recent = (paths.environments / (digit * 64) for digit in "ab")
    for folder in (old, recent):
        folder.mkdir(parents=True)
    a_month = time.time() - 31 * 86_400
    os.utime(old, (a_month, a_month))
    write_wheel(wheels, "tiny_c", "1.0", "")
    task_python(task, paths.environments, may_install=lambda: ALLOWED)
    assert (old.exists(), recent.exists()) == (False, True)
