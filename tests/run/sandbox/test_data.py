"""A task's data is made in the sandbox, checked, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, TimedOut, UsageError
from autoresearch.run.data import MOST_TEXT_BYTES, Preparer, data_digest, prepare_data, write_fresh
from autoresearch.run.sandbox.job import JobLimits, Level

MIB = 1 << 20
LIMITS = JobLimits(seconds=20, memory_bytes=256 * MIB, disk_bytes=4 * MIB, files=1_000, processes=16)
CONTENT = b"tokens" * 1000
EXPECTED = {"train.bin": hashlib.sha256(CONTENT).hexdigest()}
GOOD = """
import os, pathlib
folder = pathlib.Path(os.environ["AUTORESEARCH_DATA"])
(folder / "train.bin").write_bytes(b"tokens" * 1000)
(folder / "unasked.bin").write_bytes(b"x")
"""


def make(
    source: str, cache: Path, level: Level, expected: dict[str, str] = EXPECTED, limits: JobLimits = LIMITS
) -> Path:
    return prepare_data(Preparer({"prepare.py": source.encode()}, level, limits), expected, cache)


def test_data_is_made_once_and_reused(level: Level, tmp_path: Path) -> None:
    folder = make(GOOD, tmp_path / "cache", level)
    assert folder == tmp_path / "cache" / data_digest(EXPECTED)
    assert [entry.name for entry in folder.iterdir()] == ["train.bin"]
    assert (folder / "train.bin").read_bytes() == CONTENT
    assert (folder / "train.bin").stat().st_uid == os.geteuid()
    assert make("raise SystemExit('must not run')", tmp_path / "cache", level) == folder


def test_damaged_data_is_made_again(level: Level, tmp_path: Path) -> None:
    folder = make(GOOD, tmp_path, level)
    (folder / "train.bin").chmod(0o644)
    (folder / "train.bin").write_bytes(b"other")
    assert (make(GOOD, tmp_path, level) / "train.bin").read_bytes() == CONTENT


def test_concurrent_callers_get_the_same_folder(level: Level, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: make(GOOD, tmp_path, level), range(4)))
    assert len(folders) == 1


@pytest.mark.parametrize(
    "source",
    [
        "pass",
        GOOD.replace("tokens", "other!"),
        "raise SystemExit(1)",
        "import os; os.symlink('/etc/passwd', os.environ['AUTORESEARCH_DATA'] + '/train.bin')",
        "import os; os.mkdir(os.environ['AUTORESEARCH_DATA'] + '/train.bin')",
        "import os; os.mkfifo(os.environ['AUTORESEARCH_DATA'] + '/train.bin')",
        "import os, time\nos.chdir(os.environ['AUTORESEARCH_DATA'])\n"
        "for n in range(9): open(str(n), 'wb').write(bytes(1 << 20))\ntime.sleep(60)",
        "import os, time\nos.chdir(os.environ['AUTORESEARCH_DATA'])\n"
        "for n in range(1_100): open(str(n), 'wb').close()\ntime.sleep(60)",
    ],
    ids=["nothing", "other-bytes", "fails", "link", "folder", "fifo", "too-much", "too-many"],
)
def test_wrong_data_is_an_error_and_leaves_nothing(level: Level, tmp_path: Path, source: str) -> None:
    with pytest.raises(AutoresearchError) as caught:
        make(source, tmp_path, level)
    assert caught.value.hint
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix != ".lock"] == []


def test_slow_data_times_out(level: Level, tmp_path: Path) -> None:
    limits = JobLimits(seconds=0.5, memory_bytes=256 * MIB, disk_bytes=4 * MIB, processes=16)
    with pytest.raises(TimedOut):
        make("import time; time.sleep(60)", tmp_path, level, limits=limits)


def test_text_that_is_larger_than_any_is_not_read(level: Level, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    limits = JobLimits(seconds=20, memory_bytes=256 * MIB, disk_bytes=2 * MOST_TEXT_BYTES, processes=16)
    source = f"""
import os, pathlib
folder = pathlib.Path(os.environ["AUTORESEARCH_DATA"])
(folder / "small").write_bytes(b"x")
os.truncate(os.open(folder / "large", os.O_CREAT | os.O_RDWR), {MOST_TEXT_BYTES + 1})
"""
    files = {"prepare.py": source.encode()}
    assert write_fresh(Preparer(files, level, limits), ["small"], 1, tmp_path) == {"small": b"x"}
    with pytest.raises(AutoresearchError, match=f"wrote {MOST_TEXT_BYTES + 1} bytes into large"):
        write_fresh(Preparer(files, level, limits), ["small", "large"], 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("expected", [{}, {"../x": "0" * 64}, {"x": "zz"}, {".lock": "0" * 64}])
def test_senseless_expectations_are_usage_errors(tmp_path: Path, expected: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        make(GOOD, tmp_path, Level.NONE, expected)
