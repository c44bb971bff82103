"""What a program's source says of its needs: folders of the home, a budget of time."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.task.needs import (
    folders_to_mount,
    named_in_home,
    printed_folders,
    printed_in_home,
    stated_seconds,
)

PYTHON = {
    'CACHE = os.path.join(os.path.expanduser("~"), ".cache", "tiny")\nDATA = os.path.join(CACHE, "data")': {
        ".cache/tiny",
        ".cache/tiny/data",
    },
    'P = Path.home() / "sets" / "a.csv"': {"sets", "sets/a.csv"},
    'P = Path("~/other").expanduser()': {"other"},
    'P = os.environ.get("PLACE", os.path.expanduser("~/usual"))': {"usual"},
    'P = os.environ["HOME"] + "/plus"': {"plus"},
    'P = f"{Path.home()}/text"': {"text"},
    'P = Path(os.getenv("HOME")).joinpath("a", "b")': {"a/b"},
    'P = Path.home() / name / "x"': set(),
    'print(", ".join(["~", "x"]))': set(),
    'P = Path("/data") / "x"': set(),
}


@pytest.mark.parametrize(("source", "paths"), PYTHON.items())
def test_paths_below_the_home_are_read_from_the_source(source: str, paths: set[str]) -> None:
    assert named_in_home("train.py", source) == paths


def test_of_other_files_the_words_are_read() -> None:
    assert named_in_home("run.sh", "cat ~/a/b.csv $HOME/c ${HOME}/d /etc/passwd") == {"a/b.csv", "c", "d"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("TIME_BUDGET = 300        # seconds", 300),
        ("x = 1\nTIME_BUDGET: int = 5 * 60\n", 300),
        ("MAX_SECONDS = 1_000", 1000),
        ("TIME_LIMIT_S = 0.5", 0.5),
        ("TIME_BUDGET = other", None),
        ("    TIME_BUDGET = 3", None),
        ("TIME_BUDGET = 1.2.3", None),
    ],
)
def test_a_budget_of_time_is_read_from_the_source(text: str, seconds: float | None) -> None:
    assert stated_seconds(["", text]) == seconds


def test_what_a_run_did_not_find_is_below_its_home_or_the_real_one() -> None:
    text = "No such file or directory: '/tmp/sets/a.bin'\nopen /home/me/b/c.txt: not found; /etc/x; ratio 1/2"
    assert printed_in_home(text, [Path("/home/me"), Path("/tmp")]) == {"sets/a.bin", "b/c.txt"}


def test_places_in_code_and_python_itself_are_never_data(tmp_path: Path) -> None:
    for folder in ("sets", "code", "venv/lib/python3.11/site-packages/torch/cuda", ".pyenv/lib/python3.11/json"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "code" / "train.py").write_text("")
    (tmp_path / "sets" / "a.csv").write_text("")
    text = f"""Traceback (most recent call last):
  File "{tmp_path}/code/train.py", line 3, in <module>
  File "{tmp_path}/.pyenv/lib/python3.11/json/__init__.py", line 9, in load
{tmp_path}/venv/lib/python3.11/site-packages/torch/cuda/__init__.py:61: UserWarning: no card
{tmp_path}/code/main.cpp:12:3: error: no such thing
ImportError: {tmp_path}/venv/lib/python3.11/site-packages/torch/lib/libtorch.so
FileNotFoundError: [Errno 2] No such file or directory: '{tmp_path}/sets/a.csv'
"""
    assert printed_in_home(text, [tmp_path]) == {"sets/a.csv"}
    assert printed_in_home(f"open {sys.prefix}/x", [Path(sys.prefix).parent]) == set()


def test_folders_outside_of_the_home_are_offered_where_they_are() -> None:
    with TemporaryDirectory(dir="/var/tmp") as place:
        sets, home = Path(place, "my sets"), Path(place, "home")
        for folder in (sets, home / "a"):
            folder.mkdir(parents=True)
        (sets / "ä b.csv").write_text("")
        for text, folders in (
            (f"FileNotFoundError: [Errno 2] No such file or directory: '{sets}/ä b.csv'", [str(sets)]),
            (f"PermissionError: [Errno 13] Permission denied: '{sets}'", [str(sets)]),
            (f"'{sets}/not-there.csv'", []),
            (f"open {place}/my: no such file", []),
            (f"not found: {home}/a", []),  # of the home by another way
            (f"'{sets}'", []),  # nothing is said of it
            (f"OSError: Unable to open file (name = '{sets}/ä b.csv')", [str(sets)]),
            (f"not found: {place} /tmp /home / /etc/passwd /usr/bin/env /proc/self/maps {sys.prefix}", []),
            (f"'{place}/x/../my sets/../../../etc'", []),
            ("\0'/\0'", []),
            ("not found: " + "/" * 1_000_000, []),
            ("not found: " + "/x" * 1_000_000, []),
        ):
            assert printed_folders(text, home) == folders, text


def test_a_folder_that_is_shared_secret_or_outside_is_never_offered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in ("sets/deep", ".cache/tiny", ".ssh", ".config/autoresearch", "loose"):
        (home / folder).mkdir(parents=True)
    for file in ("sets/a.csv", "sets/deep/b.csv", ".ssh/key", ".cache/c", "d"):
        (home / file).write_text("")
    (tmp_path / "beside").mkdir()
    for path, offered in (
        ("sets/deep/b.csv", ["~/sets/deep"]),
        (".cache/tiny", ["~/.cache/tiny"]),
        (".cache/c", []),
        (".cache", []),
        (".ssh/key", []),
        (".config/autoresearch", []),
        ("d", []),
        (".", []),
        ("../beside", []),
        ("loose/../..", []),
        ("not/there", []),
    ):
        assert folders_to_mount([path], home) == offered, path
    assert folders_to_mount(["sets/deep/b.csv", "sets/a.csv", "loose"], home) == ["~/loose", "~/sets"]


@given(st.lists(st.lists(st.sampled_from(["a", "b", "..", ".", ".ssh", ".cache", "f"]), max_size=4), max_size=6))
def test_no_folder_that_is_offered_lies_in_another_or_outside(paths: list[list[str]]) -> None:
    home = Path(__file__).parents[2]
    offered = folders_to_mount(["/".join(["tests", *path]) for path in paths], home)
    folders = [PurePosixPath(folder) for folder in offered]
    assert all((home / folder.relative_to("~")).is_dir() for folder in folders)
    assert not any(folder != other and folder.is_relative_to(other) for folder in folders for other in folders)


@pytest.mark.parametrize("piece", ["/", "/x", "x", "a:1:", 'File "', "'/", "~/a", ": "])
def test_a_long_text_is_read_in_no_time(piece: str) -> None:
    text = piece * 3_000_000
    assert isinstance(printed_in_home(text, [Path("/home/me")]), set)
    assert isinstance(printed_folders(text, Path("/home/me")), list)
