"""Records of older versions, with files of names that are refused today: shown, and no command fails on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.acts.edited_program import Idea, run_once
from autoresearch.paths import Paths
from autoresearch.settings import Work
from autoresearch.task import program
from autoresearch.task.folders import pin_baseline, write_task
from tests.cli.conftest import Cli

PROGRAM = '[program]\ncommand = "python train.py"\nedit = ["train.py", "mise.toml"]\n'


@pytest.fixture
def old(tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run of such a program, published by a version that took its names."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "train.py").write_text("print('score: 1')\n")
    (folder / "mise.toml").write_text("x = 1\n")
    write_task(folder, metric="score", direction="maximize", seconds=20, most_memory_mib=512)
    manifest = folder / "task.toml"
    lines = [line for line in manifest.read_text().splitlines() if not line.startswith("baseline")]
    manifest.write_text("\n".join([*lines, PROGRAM]))
    with monkeypatch.context() as patch:
        patch.setattr(program, "form_fault", lambda _: None)
        program.source_digest.cache_clear()
        task = pin_baseline(folder)
        published = run_once(Idea(task, task.program.decode()), paths, now_ms=lambda: 1_790_000_000_000, work=Work())
    program.source_digest.cache_clear()
    return published


@pytest.mark.slow
def test_no_command_fails_on_such_a_record(old: str, cli: Cli, tmp_path: Path) -> None:
    for words in (
        *(
            ("run", "list"),
            ("task", "list"),
            ("top",),
            ("show", old),
            ("show", old, "--code"),
            ("diff", old),
            ("status",),
        ),
        *(("run", "list", "--json"), ("best",), ("run", "lineage", old), ("run", "export"), ("node", "doctor", "log")),
    ):
        done = cli(*words)
        assert done.exit_code in {0, 4}, (words, done.stderr)
    for words in (("verify", old), ("work", "old", "--runs", "1"), ("task", "get", "old", str(tmp_path / "got"))):
        refused = cli(*words)
        assert refused.exit_code == 2, (words, refused.stderr)
        assert "mise.toml is a name of a kind that tools may obey" in refused.stderr
        assert "call it config_mise.toml" in refused.stderr
    assert not list((tmp_path / "got").rglob("mise.toml"))
