"""What a locked list may hold, and that it is part of the task."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.task.folders import is_taken, rebuild_task
from autoresearch.task.loading import load_task
from autoresearch.task.needs import Package, lock_digest, parse_lock, write_lock
from tests.cli.conftest import Cli

HASH = hashlib.sha256(b"a file").hexdigest()
DIGESTS = st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex), min_size=1, max_size=3).map(tuple)
PACKAGES = st.builds(
    Package,
    st.from_regex(r"\A[a-z]([a-z0-9._-]{0,8}[a-z0-9])?(\[[a-z]+\])?\Z"),
    st.from_regex(r"\A[0-9]+(\.[0-9]+){0,3}(\+[a-z0-9]+)?\Z"),
    DIGESTS,
    st.sampled_from(["", "sys_platform == 'linux'", 'python_version < "3.12" and extra == "x"']),
)


@given(st.lists(PACKAGES, max_size=5))
def test_a_list_is_read_as_it_was_written(packages: list[Package]) -> None:
    assert parse_lock(write_lock(packages), "file") == packages


def test_comments_and_line_ends_change_nothing() -> None:
    packages = parse_lock(f"# made by a tool\r\na==1 \\\r\n    --hash=sha256:{HASH}  # via b\r\n\r\n", "file")
    assert packages == [Package("a", "1", (HASH,))]
    assert lock_digest(packages) == lock_digest(parse_lock(f"a==1 --hash=sha256:{HASH}", "other"))


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a==1",
        "a>=1 --hash=sha256:" + HASH,
        "a==1 --hash=md5:" + HASH[:32],
        "a==1 --hash=sha256:" + HASH[:-1],
        "a==* --hash=sha256:" + HASH,
        "a @ file:///etc --hash=sha256:" + HASH,
        "git+https://example.org/a --hash=sha256:" + HASH,
        "--index-url https://example.org/simple",
        f"a==1 --hash=sha256:{HASH} --global-option=x",
        f"a==1 --hash=sha256:{HASH} --extra-index-url=https://example.org",
        "-r /etc/passwd",
        "-e .",
        "./a.whl",
        "\\",
        "a==1 ; import os --hash=sha256:" + HASH + "\x00",
    ],
)
def test_anything_else_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(UsageError, match=r"list is not locked: line 2, ") as refused:
        parse_lock(f"b==1 --hash=sha256:{HASH}\n{line}\n", "list") and parse_lock("\n" + line + "x", "list")
    assert refused.value.hint.startswith("autoresearch task lock")


def test_the_list_is_part_of_the_task_and_an_environment_of_this_machine_is_not(locked: Path) -> None:
    task = load_task(locked)
    assert task.definition()["python"] == {"requirements": "requirements.txt"}
    text = (locked / "task.toml").read_text()
    (locked / "task.toml").write_text(text + "base = true\n")
    assert load_task(locked).digest != task.digest
    (locked / "task.toml").write_text(text[: text.index("[python]")] + '[python]\nvenv = "/opt/mine"\n')
    with_venv = load_task(locked)
    (locked / "task.toml").write_text(text[: text.index("[python]")])
    assert with_venv.digest == load_task(locked).digest
    assert "python" not in with_venv.definition()


def test_a_published_task_is_rebuilt_with_its_packages(locked: Path, place: Path) -> None:
    task = load_task(locked)
    again = rebuild_task(
        task.definition(),
        task.digest,
        harness=task.harness,
        baseline=task.baseline,
        summary="",
        folder=place / "rebuilt",
    )
    assert again.packages == task.packages
    assert is_taken(place / "rebuilt")


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("", "needs one of requirements and venv"),
        ('requirements = "requirements.txt"\nvenv = "/opt/mine"', "needs one of requirements and venv"),
        ("base = true", "needs one of requirements and venv"),
        ('venv = "/opt/mine"\nbase = true', "python.base goes with python.requirements"),
        ('venv = "mine"', "python.venv is not an absolute folder"),
        ('venv = "~/"', "would show runs your whole home folder"),
        ('requirements = "other.txt"', "other.txt is not pinned"),
        ('requirements = "../x.txt"', "requirements"),
        ("packages = 1", "python.packages is not a key"),
    ],
)
def test_a_wrong_table_is_explained(folder: Path, table: str, sentence: str, cli: Cli) -> None:
    with (folder / "task.toml").open("a") as file:
        file.write(f"\n[python]\n{table}\n")
    result = cli("task", "show", str(folder))
    assert result.exit_code == 2
    assert sentence in result.stderr
