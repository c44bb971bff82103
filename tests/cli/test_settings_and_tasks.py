"""``config``, ``paths``, ``id``, ``task`` and ``doctor``: this machine."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_cli.acts.task_folders import named_folder

from autoresearch.paths import Paths
from autoresearch.task.loading import QUICK_TASK, load_task, shipped_task
from tests.cli.conftest import Cli
from tests.cli.filling import Filled, write_folder


def test_a_setting_is_written_and_read_back_with_its_origin(
    cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("node", "config", "get", "work.workers").stdout == "1\n"
    assert cli("node", "config", "set", "work.workers", "2").exit_code == 0
    assert cli("node", "config", "get", "work.workers").stdout == "2\n"
    assert "work.workers\t2\tfile\tAUTORESEARCH_WORK_WORKERS" in cli("node", "config", "show", "--origin").stdout
    monkeypatch.setenv("AUTORESEARCH_WORK_WORKERS", "3")
    assert cli("node", "config", "get", "work.workers").stdout == "3\n"
    warned = cli("node", "config", "set", "work.workers", "4")
    assert "AUTORESEARCH_WORK_WORKERS is set and wins" in warned.stderr


def test_changing_a_setting_keeps_comments_and_a_wrong_value_changes_nothing(cli: Cli, paths: Paths) -> None:
    paths.create()
    paths.settings.write_text("# mine\n[work]\nworkers = 1  # one is enough\n")
    assert cli("node", "config", "set", "storage.keep_checkpoints", "true").exit_code == 0
    text = paths.settings.read_text()
    assert "# mine" in text
    assert "# one is enough" in text
    assert cli("node", "config", "set", "work.workers", "999").exit_code == 2
    assert paths.settings.read_text() == text
    assert cli("node", "config", "get", "storage.keep_checkpoints").stdout == "true\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("network.listen", "foo"),
        ("network.listen", "/ip4/0.0.0.0/tcp/4001,foo"),
        ("network.bootstrap", "/ip4/1.2.3.4"),
        ("work.task", "/no/such/folder"),
        ("work.device", "gpu"),
    ],
)
def test_a_value_with_which_no_daemon_starts_is_refused_and_not_written(
    cli: Cli, paths: Paths, name: str, value: str
) -> None:
    refused = cli("node", "config", "set", name, value)
    assert refused.exit_code in (2, 4)
    assert "→" in refused.stderr
    assert not paths.settings.exists() or value not in paths.settings.read_text()


def test_every_setting_is_explained(cli: Cli) -> None:
    rows = [line.split("\t") for line in cli("node", "config", "show").stdout.splitlines()]
    assert len(rows) > 5
    assert all(len(row) == 3 and row[2] for row in rows)


def test_an_unknown_setting_gets_a_suggestion(cli: Cli) -> None:
    assert "work.workers" in cli("node", "config", "get", "work.worker").stderr


def test_paths_are_all_below_the_home(cli: Cli, home: Path) -> None:
    for line in cli("node", "paths").stdout.splitlines():
        name, place = line.split("\t")
        assert place.startswith(str(home)) or name == "socket"
    assert cli("node", "paths", "log").stdout.strip() == str(home / "data" / "log.sqlite")
    assert (cli("node", "paths", "nowhere").exit_code, cli("node", "paths", "nowhere").stdout) == (4, "")
    assert cli("node", "config", "path").stdout.strip() == str(home / "config" / "config.toml")


def test_keys_are_made_once_and_only_shown_in_public(cli: Cli, paths: Paths) -> None:
    missing = cli("node", "id", "show")
    assert (missing.exit_code, missing.stdout) == (4, "")
    made = cli("node", "id", "new", "--no-passphrase")
    assert made.exit_code == 0
    assert cli("node", "id", "show").stdout == made.stdout
    assert cli("node", "id", "new", "--no-passphrase").exit_code == 6
    for file in paths.keys.glob("*.key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().split()[-1] not in made.output


def test_keys_that_others_can_read_are_refused_with_the_remedy(cli: Cli, paths: Paths) -> None:
    cli("node", "id", "new", "--no-passphrase")
    key = paths.keys / "device.key"
    key.chmod(0o644)
    refused = cli("node", "id", "show")
    assert refused.exit_code == 6
    assert "chmod 600" in refused.stderr
    assert f"chmod 600 {key}" in cli("node", "doctor").stdout


def test_a_new_task_folder_is_a_copy_of_the_shipped_task(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "copy"
    assert cli("task", "new", str(place), "--new").exit_code == 0
    assert load_task(place).digest == shipped_task().digest
    for name in ("changes.toml", "names.toml"):
        assert (place / name).read_bytes() == (shipped_task().folder / name).read_bytes()
    assert cli("task", "show", str(place)).stdout.startswith(f"task\t{shipped_task().name}\n")
    again = cli("task", "new", str(place))
    assert again.exit_code == 6


def test_a_folder_is_made_only_where_that_was_asked_for(cli: Cli, tmp_path: Path) -> None:
    write_folder(tmp_path / "curve")
    (tmp_path / "empty").mkdir()
    for words, status, message in (
        (("curv",), 4, f"did you mean {tmp_path / 'curve'}?"),
        (("nothing/like/it",), 4, "there is no folder"),
        (("empty",), 4, "is empty"),
        (("other", "--metric", "loss", "--seconds", "3"), 4, "--new"),
        (("curve/train.py",), 2, "is not a folder"),
    ):
        result = cli("task", "new", str(tmp_path / words[0]), *words[1:])
        assert (result.exit_code, message in result.stderr) == (status, True), result.stderr
    (tmp_path / "curve" / "task.toml").unlink()
    result = cli("task", "new", str(tmp_path / "curve"), "--new")
    assert (result.exit_code, "without --new" in result.stderr) == (2, True)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("home")) == ["curve", "empty"]
    assert list((tmp_path / "empty").iterdir()) == []
    assert cli("task", "new", str(tmp_path / "empty"), "--new").exit_code == 0


def test_a_folder_that_is_no_task_is_told_how_it_becomes_one(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "my code").mkdir()
    result = cli("run", str(tmp_path / "my code"))
    assert (result.exit_code, f"autoresearch task new '{tmp_path / 'my code'}'" in result.stderr) == (2, True), (
        result.stderr
    )


def test_a_task_that_ships_is_known_by_its_name_before_anybody_published_it(cli: Cli, tmp_path: Path) -> None:
    quick = shipped_task(QUICK_TASK)
    assert named_folder(QUICK_TASK) == quick.folder
    place = tmp_path / "own"
    assert cli("task", "get", QUICK_TASK, str(place)).exit_code == 0
    assert load_task(place).digest == quick.digest
    assert cli("task", "get", "moon", str(tmp_path / "none")).exit_code == 4


def test_a_folder_with_a_program_gets_a_manifest_and_a_copy_of_its_baseline(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    write_folder(place)
    (place / "task.toml").unlink()
    before = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert cli("task", "new", str(place)).exit_code == 0
    after = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    assert after.pop("task.toml")
    assert after.pop("AGENTS.md")
    assert after.pop("history.md")
    assert after == before
    assert (place / ".autoresearch" / "baseline.py").read_bytes() == before["train.py"]


def test_a_folder_without_a_program_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert cli("task", "new", str(tmp_path)).exit_code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt"}


def test_the_task_in_the_settings_is_the_one_that_is_shown(cli: Cli, filled: Filled) -> None:
    cli("node", "config", "set", "work.task", str(filled.task.folder))
    assert filled.task.digest.hex() in cli("task", "show").stdout


@pytest.mark.slow
def test_a_task_above_a_ceiling_is_shown_beside_it_and_runs_nowhere(
    cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_WORK_TASK", str(shipped_task().folder))
    monkeypatch.setenv("AUTORESEARCH_WORK_MAX_MEMORY_MIB", "1024")
    monkeypatch.setenv("AUTORESEARCH_WORK_MAX_SECONDS", "7")
    result = cli("task", "show")
    assert "limits\tseconds 900, memory_mib 2048," in result.stdout
    assert "allowed here\tseconds 7, memory_mib 1024," in result.stdout
    sentence = "config set work.max_seconds 900 && autoresearch node config set work.max_memory_mib 2048"
    assert sentence in result.stderr
    refused = cli("run")
    assert (refused.exit_code, sentence in refused.stderr) == (6, True)
    assert not paths.task_data.exists() or not any(paths.task_data.iterdir())
    assert cli("node", "doctor").exit_code == 1


@pytest.mark.slow
def test_doctor_passes_on_a_healthy_machine_and_fails_on_a_broken_task(cli: Cli, filled: Filled) -> None:
    healthy = cli("node", "doctor")
    assert healthy.exit_code == 0, healthy.output
    rows = {line.split("\t")[0]: line.split("\t") for line in healthy.stdout.splitlines()}
    assert rows["daemon"][1:] == ["warning", "it is not running", "autoresearch up"]
    assert rows["log"][1] == rows["keys"][1] == rows["task"][1] == "ok"
    cli("node", "config", "set", "work.task", str(filled.task.folder))
    (filled.task.folder / "prepare.py").write_text("BUDGET = 2\n")
    broken = cli("node", "doctor")
    assert broken.exit_code == 1
    assert "prepare.py" in broken.stdout


def test_the_log_file_is_shown_from_its_end(cli: Cli, paths: Paths) -> None:
    assert cli("node", "logs").exit_code == 4
    paths.create()
    paths.daemon_log.write_text('{"event": "one"}\n{"event": "two"}\nnot json \x1b[2J\n')
    assert cli("node", "logs", "-n", "2").stdout == '{"event": "two"}\nnot json \ufffd[2J\n'
    assert cli("node", "logs", "--json", "-n", "3").stdout.splitlines()[0] == '{"event": "one"}'
    assert cli("node", "logs", "--run", "two", "-n", "1").stdout == '{"event": "two"}\n'


@pytest.mark.slow
def test_a_log_is_followed_into_the_next_file(paths: Paths) -> None:
    paths.create()
    log = paths.daemon_log
    log.write_text('{"run": "a1"}\n{"run": "b2"}\n')
    command = [sys.executable, "-m", "autoresearch_cli", "node", "logs", "--follow", "--run", "b2"]
    follower = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert follower.stdout
        assert follower.stdout.readline() == '{"run": "b2"}\n'
        with log.open("a") as file:
            file.write('{"run": "a1", "n": 2}\n{"run": "b')
            file.flush()
            file.write('2", "n": 3}\n')
        assert follower.stdout.readline() == '{"run": "b2", "n": 3}\n'
        fresh = log.with_suffix(".new")
        fresh.write_text('{"run": "b2", "n": 4}\n')
        fresh.replace(log)
        assert follower.stdout.readline() == '{"run": "b2", "n": 4}\n'
    finally:
        follower.kill()
        follower.communicate()


def test_a_wrong_value_is_told_what_its_setting_takes(cli: Cli) -> None:
    for name, word in (
        ("work.workers", "a whole number from 0 to 64"),
        ("network.lan", "true or false"),
        ("llm.day_cost", "a number of 0 and more"),
        ("mail.security", "a text: starttls, tls or none"),
    ):
        refused = cli("node", "config", "set", name, "nonsense")
        assert refused.exit_code == 2
        assert f"{name} = 'nonsense' does not work: it takes {word}" in refused.stderr
