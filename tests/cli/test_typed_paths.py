"""A path that no file can have gives a sentence, wherever a path is typed."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from tests.cli.filling import Filled

NAMES = {
    "300 characters": "x" * 300,
    "5,000 characters": "x" * 5_000,
    "100,000 characters": "x" * 100_000,
    "deep": "x/" * 2_500,
    "a null byte": "a\0b",
    "a null byte in a home": "~\0",
    "a new line": "/proc/no such\nfolder\x1b[2J",
    "bytes that are no text": "/proc/\udcff",
}
COMMANDS = [
    ("run", "PATH"),
    ("work", "PATH"),
    ("work", "./PATH"),
    ("task", "show", "PATH"),
    ("task", "new", "PATH"),
    ("task", "get", "PATH"),
    ("task", "get", "task", "PATH"),
    ("node", "import", "PATH"),
    ("node", "import", "/dev/null", "--task", "PATH"),
    ("run", "export", "-o", "PATH"),
    ("run", "export", "--bundle", "PATH"),
    ("show", "@", "--checkpoint", "PATH"),
    ("network", "join", "PATH"),
    ("network", "new", "tea", "-o", "PATH"),
    ("node", "id", "backup", "PATH"),
    ("node", "id", "restore", "PATH"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_sentence_and_no_file(
    cli: Cli, filled: Filled, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "correct horse battery")
    for kind, name in NAMES.items():
        result = cli(*(word.replace("PATH", name) for word in words))
        assert result.exit_code in (1, 2, 3, 4, 6), (kind, result.output)
        assert "bug in autoresearch" not in result.output, kind
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output
        # What can't be is not repeated in full.
        assert 0 < len(result.stderr) < 1_000, kind


def test_a_setting_may_hold_one_too(cli: Cli, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("node", "config", "set", "work.task", "x" * 300).exit_code == 2
    monkeypatch.setenv("AUTORESEARCH_WORK_TASK", "x" * 300)
    for words in (
        ("task", "show"),
        ("run",),
        (
            "node",
            "doctor",
        ),
    ):
        result = cli(*words)
        assert "can't be a path: it is too long" in result.output
        assert "bug in autoresearch" not in result.output
