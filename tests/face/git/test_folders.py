"""Folders that export may write to, and what it never touches there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from autoresearch.record.kinds import BlobRef, Task
from tests.daemon.daemons import kill as kill_process
from tests.daemon.daemons import wait_for
from tests.face.git.conftest import Export, answer, git, references
from tests.face.git.history import History, grown, home, settle, small
from tests.nasty import NASTY, harms
from tests.record.making import digest_of, key
from tests.warm import open_command

KILLS = 12
RUNS = 500


@pytest.fixture
def node_home(history: History, tmp_path: Path) -> Path:
    """A home with the small history."""
    small(history)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    return tmp_path / "home"


@pytest.fixture
def repo(node_home: Path, tmp_path: Path, export: Export) -> Path:
    """Its repository; after it the log has a better run."""
    assert export(node_home, tmp_path / "repo").exit_code == 0
    return tmp_path / "repo"


@pytest.fixture
def better(history: History, node_home: Path, repo: Path) -> None:
    """A run that is better than those in the repository."""
    history.run(1.0, b"X = 1.0\n", history.records[2])
    settle(home(node_home), history.records, list(history.sources.values()))


@pytest.mark.slow
def test_edits_stay_and_so_does_main(node_home: Path, repo: Path, better: None, export: Export) -> None:
    (repo / "train.py").write_text("X = 7\n")
    before = git(repo, "rev-parse", "main")
    result = export(node_home, repo)
    assert result.exit_code == 6
    assert "main in" in result.stderr
    assert "stays where it is: train.py has edits" in result.stderr
    assert f"→ git -C {repo} switch -c mine" in result.stderr
    assert (repo / "train.py").read_text() == "X = 7\n"
    assert git(repo, "rev-parse", "main") == before
    assert len(references(repo)) == 6
    document = export(node_home, repo, "--json")
    assert document.exit_code == 6
    assert "has edits" in json.loads(document.stdout)["kept"]

    git(repo, "switch", "--quiet", "-c", "mine")
    assert export(node_home, repo).exit_code == 0
    assert (repo / "train.py").read_text() == "X = 7\n"
    assert git(repo, "show", "main:train.py") == "X = 1.0\n"


@pytest.mark.slow
def test_a_file_that_git_does_not_know_is_not_overwritten(
    node_home: Path, repo: Path, better: None, export: Export
) -> None:
    git(repo, "rm", "--quiet", "--cached", "train.py")
    (repo / "train.py").write_text("X = 7\n")
    assert export(node_home, repo).exit_code == 6
    assert (repo / "train.py").read_text() == "X = 7\n"


@pytest.mark.slow
def test_edits_on_the_best_run_are_nobody_elses_business(node_home: Path, repo: Path, export: Export) -> None:
    (repo / "train.py").write_text("X = 7\n")
    (repo / "notes.txt").write_text("mine")
    assert export(node_home, repo).exit_code == 0
    assert (repo / "train.py").read_text() == "X = 7\n"


@pytest.mark.slow
def test_commits_of_ones_own_stay_on_main_and_on_branches(
    node_home: Path, repo: Path, better: None, export: Export
) -> None:
    git(repo, "config", "user.name", "me")
    git(repo, "config", "user.email", "me@example.org")
    branch = git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/runs").strip()
    for name in (branch, "main"):
        git(repo, "switch", "--quiet", name)
        git(repo, "commit", "--quiet", "--allow-empty", "-m", "mine")
    result = export(node_home, repo)
    assert result.exit_code == 6
    assert "it has commits that export did not make" in result.stderr
    assert git(repo, "log", "-1", "--format=%s").strip() == "mine"
    git(repo, "branch", "-m", "main", "mine")
    assert export(node_home, repo).exit_code == 0
    assert git(repo, "show", "main:train.py") == "X = 1.0\n"
    assert git(repo, "log", "-1", "--format=%s", branch).strip() == "mine"


@pytest.mark.slow
def test_the_folder_is_a_task_folder(repo: Path, node_home: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "autoresearch_cli", "task", "show", str(repo)],
        env={**os.environ, "AUTORESEARCH_HOME": str(node_home), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "val_bpb, minimize" in result.stdout
    assert (repo / ".autoresearch" / "baseline.py").read_bytes() == b"X = 2.0\n"
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.slow
def test_a_bare_repository_has_no_files(node_home: Path, tmp_path: Path, export: Export) -> None:
    place = tmp_path / "bare"
    assert answer(export(node_home, place, "--bare", "--json"))["runs"] == 5
    assert [each.name for each in place.iterdir()] == [".git"]
    assert git(place, "rev-parse", "--is-bare-repository").strip() == "true"
    git(tmp_path, "clone", "--quiet", str(place), "clone")
    assert (tmp_path / "clone" / "train.py").read_text() == "X = 1.25\n"
    assert export(node_home, place).exit_code == 0


def everything(folder: Path) -> list[str]:
    """All that is there beside the home, but not what reading a database writes."""
    home_of_the_node = folder / "home"
    return sorted(str(each) for each in folder.rglob("*") if home_of_the_node not in each.parents)


def test_what_export_did_not_make_is_not_touched(node_home: Path, tmp_path: Path, export: Export) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    git(tmp_path, "init", "--quiet", "other")
    (tmp_path / "other" / "inside").mkdir()
    (tmp_path / "other" / "inside" / "a.txt").write_text("mine")
    before = everything(tmp_path)
    for name in ("full", "file", "dangling", "other", "other/inside", "file/new"):
        result = export(node_home, tmp_path / name)
        assert result.exit_code == 6, (name, result.output)
        assert "bug" not in result.stderr
    assert export(node_home, Path("\0")).exit_code == 2
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_a_repository_has_one_task_of_one_network(
    node_home: Path, repo: Path, history: History, tmp_path: Path, export: Export
) -> None:
    other = {**history.definition, "name": "other"}
    prepare, baseline = (BlobRef(sha256=digest, size=len(text)) for digest, text in list(history.sources.items())[:2])
    body = Task(
        digest=digest_of(other), name="other", definition=other, baseline=baseline, harness={"prepare.py": prepare}
    )
    history.sign(key(2), "task", body)
    settle(home(node_home), history.records, [])
    result = export(node_home, repo, "--task", "other")
    assert result.exit_code == 6
    assert "another task" in result.stderr
    # Without a name it is the task that the repository has.
    assert export(node_home, repo).exit_code == 0
    assert answer(export(node_home, tmp_path / "second", "--task", "other", "--json"))["runs"] == 0
    assert git(tmp_path / "second", "log", "--format=%s").strip() == "Task other"
    git(repo, "config", "autoresearch.network", "00" * 16)
    result = export(node_home, repo)
    assert result.exit_code == 6
    assert "another network" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["core.fsmonitor", "filter.x.smudge", "include.path", "gc.recentObjectsHook", "core.hooksPath", "remote.x.vcs"],
)
def test_nothing_that_a_repository_of_elsewhere_names_is_run(
    name: str, node_home: Path, repo: Path, better: None, export: Export, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/seen\ncat\n")
    script.chmod(0o755)
    hooks = repo / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("reference-transaction", "pre-auto-gc", "post-index-change", "post-checkout"):
        (hooks / hook).symlink_to(script)
    (repo / ".git/info/attributes").write_text("* filter=x\n")
    (tmp_path / "config").write_text(f"[core]\n\tfsmonitor = {script}\n")
    git(repo, "config", name, str(tmp_path / "config" if name == "include.path" else script))
    (tmp_path / "seen").unlink(missing_ok=True)
    result = export(node_home, repo)
    assert (result.exit_code, f"sets {name.lower()}" in result.stderr.lower()) == (6, True), result.stderr
    git(repo, "config", "--unset", name)
    (tmp_path / "seen").unlink(missing_ok=True)
    assert export(node_home, repo).exit_code == 0
    assert not (tmp_path / "seen").exists()


def test_variables_of_another_repository_lead_nowhere(
    node_home: Path, tmp_path: Path, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    assert export(node_home, tmp_path / "repo").exit_code == 0
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_DEFAULT_HASH"):
        monkeypatch.delenv(name)
    assert len(references(tmp_path / "repo")) == 5
    assert references(tmp_path / "other", "refs") == {}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--bundle", "x.car"), 2, "--bundle"),
        (("--output", "x.tsv"), 2, "--output"),
        (("--task", "nothing"), 4, "nothing"),
        (("--follow",), 3, "daemon"),
    ],
)
def test_what_does_not_go_is_a_sentence(
    node_home: Path, tmp_path: Path, export: Export, words: tuple[str, ...], status: int, message: str
) -> None:
    result = export(node_home, tmp_path / "repo", *words)
    assert (result.exit_code, message in result.stderr) == (status, True), result.output
    assert not (tmp_path / "repo").exists()


def test_without_git_it_is_a_sentence(
    node_home: Path, tmp_path: Path, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = export(node_home, tmp_path / "repo")
    assert result.exit_code == 6
    assert "git is not on this machine" in result.stderr
    assert not (tmp_path / "repo").exists()


@pytest.mark.parametrize(
    "more",
    [
        {"name": NASTY},
        {"mounts": {"keys": "/root/.ssh"}},
        {"x": {NASTY: [NASTY, {"": b"\0"}, None, 1.5, 2**62, []]}},
        {"harness": {NASTY[:64]: b"h" * 32}},
        {"baseline": b"b" * 32},
        {"data": NASTY},
    ],
)
def test_a_task_with_a_hostile_definition_is_refused(
    history: History, tmp_path: Path, export: Export, more: dict[str, object]
) -> None:
    definition = {**history.definition, **more}
    prepare, baseline = (BlobRef(sha256=digest, size=len(text)) for digest, text in list(history.sources.items())[:2])
    harness = {"prepare.py": prepare, NASTY[:64]: baseline}
    body = Task(digest=digest_of(definition), name="x", definition=definition, baseline=baseline, harness=harness)
    history.sign(key(2), "task", body)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    result = export(tmp_path / "home", tmp_path / "repo", "--task", digest_of(definition).hex())
    assert result.exit_code == 6, result.output
    assert "is not what its digest says" in result.stderr
    assert not harms(result.stderr.replace("\n", ""))
    assert not (tmp_path / "repo").exists()


def test_hostile_text_breaks_nothing(history: History, tmp_path: Path, export: Export) -> None:
    forged = f"x\n\nRecord: forged\nReported: 0\n---\nStatus: {NASTY}"
    base = history.run(2.0, NASTY.encode() + b"\0\xff\n", title=NASTY, hypothesis=forged, device=NASTY)
    history.run(None, b"done\ndata 5\n", base, title="\n", status="from :1", reason=NASTY * 20, hypothesis="\0" * 2048)
    history.run(1.5, b"", base, title="M 100644 :1 /etc/passwd", hypothesis=f"commit refs/heads/main\n{NASTY}")
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    repo = tmp_path / "repo"
    assert answer(export(tmp_path / "home", repo, "--json"))["runs"] == 3
    assert git(repo, "fsck", "--strict") == ""
    log_text = git(repo, "log", "--glob=refs/runs/*", "--format=%an%n%ae%n%B%n%N").replace("\n", "")
    assert not harms(log_text)
    for name, commit in references(repo).items():
        record = git(repo, "log", "-1", "--format=%(trailers:key=Record,valueonly)", commit).split()
        assert record == [name.removeprefix("refs/runs/")]
    assert git(repo, "log", "--format=%s", "main").splitlines()[0] == "M 100644 :1 /etc/passwd"
    assert (repo / "train.py").read_bytes() == b""


def test_a_task_with_files_in_folders_is_exported(history: History, tmp_path: Path, export: Export) -> None:
    prepare, baseline = (BlobRef(sha256=digest, size=len(text)) for digest, text in list(history.sources.items())[:2])
    definition = {**history.definition, "harness": {"data/deep/a.py": prepare.sha256}}
    task = digest_of(definition)
    body = Task(digest=task, name="deep", definition=definition, baseline=baseline, harness={"data/deep/a.py": prepare})
    history.sign(key(2), "task", body)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    assert export(tmp_path / "home", tmp_path / "repo", "--task", task.hex()).exit_code == 0
    assert (tmp_path / "repo" / "data/deep/a.py").read_bytes() == history.sources[prepare.sha256]


@pytest.mark.parametrize(
    "name", ["../evil.py", ".git", ".gitattributes", "train.py", "a/../../b", "a/.git/config", "train.py/b", "x\n"]
)
def test_a_task_with_an_impossible_file_is_refused(history: History, tmp_path: Path, export: Export, name: str) -> None:
    prepare, baseline = (BlobRef(sha256=digest, size=len(text)) for digest, text in list(history.sources.items())[:2])
    definition = {**history.definition, "harness": {name: prepare.sha256}}
    task = digest_of(definition)
    body = Task(digest=task, name="evil", definition=definition, baseline=baseline, harness={name: prepare})
    history.sign(key(2), "task", body)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    result = export(tmp_path / "home", tmp_path / "repo", "--task", task.hex())
    assert result.exit_code == 6, result.output
    assert "impossible name" in result.stderr
    assert not (tmp_path / "repo").exists()


@pytest.mark.slow
def test_locks_of_an_export_that_was_killed_are_taken_away(
    node_home: Path, repo: Path, better: None, export: Export
) -> None:
    for name in ("packed-refs.lock", "refs/autoresearch/main.lock", "index.lock", "autoresearch.busy"):
        (repo / ".git" / name).touch()
    assert export(node_home, repo).exit_code == 0
    assert (repo / "train.py").read_bytes() == b"X = 1.0\n"
    assert [each.name for each in (repo / ".git").rglob("*.lock")] == ["autoresearch.lock"]


@pytest.mark.slow
def test_the_lock_of_a_persons_own_git_stays(node_home: Path, repo: Path, better: None, export: Export) -> None:
    lock, mark = repo / ".git" / "index.lock", repo / ".git" / "autoresearch.busy"
    (repo / "train.py").write_text("X = 7.0\n")
    variables = {**os.environ, "GIT_EDITOR": "sleep 600; true", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    variables |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    writing = subprocess.Popen(["git", "-C", str(repo), "commit", "-a"], env=variables, start_new_session=True)
    try:
        wait_for(lambda: lock.exists() or writing.poll() is not None)
        mark.touch()
        refused = export(node_home, repo)
        assert refused.exit_code == 6
        assert lock.exists()
    finally:
        os.killpg(writing.pid, signal.SIGKILL)
        writing.wait()
    lock.unlink()
    git(repo, "reset", "--quiet", "--hard")
    assert export(node_home, repo).exit_code == 0


@pytest.mark.slow
def test_a_move_of_main_that_was_interrupted_is_completed(
    node_home: Path, repo: Path, history: History, better: None, export: Export
) -> None:
    at = git(repo, "rev-parse", "main").strip()
    assert export(node_home, repo).exit_code == 0
    # As a kill leaves it: the files are there, and the branch and the index are not.
    git(repo, "update-ref", "refs/heads/main", at)
    git(repo, "read-tree", at)
    history.run(0.5, b"X = 0.5\n", history.records[2])
    settle(home(node_home), history.records, list(history.sources.values()))
    assert (repo / "train.py").read_bytes() == b"X = 1.0\n"
    assert export(node_home, repo).exit_code == 0
    assert (repo / "train.py").read_bytes() == b"X = 0.5\n"
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.slow
def test_killed_in_the_middle_it_leaves_a_repository_that_the_next_export_completes(
    history: History, tmp_path: Path, export: Export
) -> None:
    made = grown(history, RUNS)
    node_home = home(tmp_path / "home")
    settle(node_home, history.records, list(history.sources.values()))
    began = time.monotonic()
    assert export(tmp_path / "home", tmp_path / "whole").exit_code == 0
    took = time.monotonic() - began
    commits = references(tmp_path / "whole")
    assert len(commits) == len(made)
    repo, held = tmp_path / "repo", []
    for kill in range(KILLS):
        if kill % 4 == 0:
            subprocess.run(["rm", "-rf", str(repo)], check=True)
        process = open_command("task", "export", "--git", str(repo))
        time.sleep(took * (kill + 1) / KILLS)  # the moment of the kill, not a wait for anything
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for each in below:
                kill_process(each)
        process.communicate()
        if (repo / ".git").exists():
            assert "error" not in git(repo, "fsck", "--strict")
            held.append(len(references(repo)))
    assert export(tmp_path / "home", repo).exit_code == 0
    assert references(repo) == commits
    assert git(repo, "status", "--porcelain") == ""
    assert (repo / "train.py").read_bytes() == (tmp_path / "whole" / "train.py").read_bytes()
