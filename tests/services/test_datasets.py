"""Data sets of other libraries, written by extensions: those of others work, and a broken one leaves nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.extensions import DATASETS
from autoresearch.services import EpisodeWriter, write_dataset
from tests.extension_packages import install, install_example


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    """A folder with an episode of two transitions."""
    with EpisodeWriter(tmp_path / "episodes") as writer:
        for step in range(2):
            row = {"observations": [step], "next_observations": [step + 1], "actions": 1, "rewards": 0.5}
            writer.add({**row, "masks": 1 - step})
    return tmp_path / "episodes"


def test_the_format_of_the_page_works(tmp_path: Path, episodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "packages", monkeypatch, DATASETS)
    made = write_dataset("returns", episodes, tmp_path / "sets", "two")
    assert made == tmp_path / "sets/two"
    assert [json.loads(line) for line in (made / "two.jsonl").read_text().splitlines()] == [
        {"return": 1.0, "rewards": [0.5, 0.5]}
    ]
    assert [path.name for path in (tmp_path / "sets").iterdir()] == ["two"]


@pytest.mark.parametrize(
    "module",
    [
        "import no_such_module",
        "raise SystemExit(0)",
        "syntax error",
        "",
        "write = 3",
        "def write(): ...",
        "def write(*_): ...",
        "def write(*_): return 'here'",
        "def write(*_): from pathlib import Path; return Path('/tmp')",
        "def write(_, place, __): return place / 'nothing'",
        "def write(_, place, __): (place / 'half').touch(); open('/no/such/file')",
        "def write(_, place, __): place.rmdir(); return place",
        "def write(episodes, place, _): list(episodes)[0].steps['nothing']",
        "def write(*_): raise ValueError('\x1b[31mno')",
    ],
)
def test_a_broken_format_is_named_and_leaves_nothing(
    tmp_path: Path, episodes: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    install(tmp_path / "packages", monkeypatch, module, f"[{DATASETS}]\nbroken = my_package:write\n")
    with pytest.raises(AutoresearchError, match="the extension broken") as error:
        write_dataset("broken", episodes, tmp_path / "sets")
    assert "\x1b" not in str(error.value)
    assert not list((tmp_path / "sets").glob("*"))


def test_a_format_that_no_package_has_names_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"registers minari in autoresearch\.datasets") as error:
        write_dataset("minari", [], tmp_path)
    assert "rlds" in error.value.hint


def test_stores_load_no_format() -> None:
    program = (
        "import sys, autoresearch.services as s; s.EpisodeWriter, s.write_dataset, s.ReplayBufferDataStore;"
        "sys.exit(any(name.startswith('autoresearch_datasets') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
