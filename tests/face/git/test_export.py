"""A person exports a task and looks at it with git."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.main import app
from typer.testing import CliRunner

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Identity, Run, Withdrawal
from autoresearch.record.record import Record
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.face.git.conftest import Export, answer, git, references
from tests.face.git.history import PREPARE, History, grown, home, settle, small
from tests.log.standing.village import AUTHOR, ROOTS, TRUST, Village
from tests.record.making import NETWORK, NOW_MS, key, pairs

# The commit ids of the small history. They are the same on every node: a change of them is a change for everybody.
TASK_COMMIT = "b90d4e641eff9396ee0630a601511ab76abcc6c0"
BEST_COMMIT = "95208274961e5efe3b06d8f604c8e0f3a64f7814"


@pytest.fixture
def full(history: History, tmp_path: Path) -> Path:
    """A home with the small history."""
    small(history)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    return tmp_path / "home"


@pytest.mark.slow
def test_every_run_is_a_commit_on_its_parents_commit_and_the_best_is_main(
    history: History, full: Path, tmp_path: Path, export: Export
) -> None:
    base, better, crash, best, aside = history.records[1:]
    repo = tmp_path / "repo"
    summary = answer(export(full, repo, "--json"))
    assert (summary["runs"], summary["commits"], summary["missing"], summary["waiting"]) == (5, 5, 0, 0)
    assert summary["main"] == format_id(best.id)

    commits = {run.id: references(repo)[f"refs/runs/{format_id(run.id)}"] for run in history.records[1:]}
    for run, parent in ((better, base), (crash, better), (best, better), (aside, base)):
        assert git(repo, "rev-parse", f"{commits[run.id]}^").strip() == commits[parent.id]
    assert git(repo, "log", "--format=%s", "main").splitlines() == [
        "X to 1.25",
        "X to 1.5",
        "the baseline",
        "Task grammar",
    ]
    assert git(repo, "rev-parse", "main").strip() == commits[best.id]
    branches = references(repo, "refs/heads")
    assert branches == {"refs/heads/main": commits[best.id], f"refs/heads/runs/{short_id(aside.id)}": commits[aside.id]}

    assert (repo / "train.py").read_bytes() == b"X = 1.25\n"
    assert (repo / "prepare.py").read_bytes() == PREPARE
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "ls-tree", "--name-only", "main~3").split() == ["prepare.py", "task.toml"]
    assert "-X = 1.5\n+X = 1.25" in git(repo, "diff", "main^", "main")
    assert git(repo, "blame", "-s", "train.py").startswith(commits[best.id][:8])
    assert git(repo, "fsck", "--strict") == ""


def test_a_run_that_a_person_hides_has_no_commit_and_what_builds_on_it_stands_on_the_run_before(
    history: History, full: Path, tmp_path: Path, export: Export
) -> None:
    base, better, _, best, _ = history.records[1:]
    with Log.open(home(full).log, NETWORK) as log:
        hide(log, [HiddenRow(better.id, b"", "", 0)])
    repo = tmp_path / "repo"
    summary = answer(export(full, repo, "--json"))
    assert (summary["runs"], summary["missing"], summary["waiting"], summary["main"]) == (4, 0, 0, format_id(best.id))
    commits = references(repo)
    assert f"refs/runs/{format_id(better.id)}" not in commits
    assert git(repo, "rev-parse", "main^").strip() == commits[f"refs/runs/{format_id(base.id)}"]
    assert "-X = 2.0\n+X = 1.25" in git(repo, "diff", "main^", "main")
    assert "X to 1.5" not in git(repo, "log", "--all", "--format=%B")


def test_a_commit_says_what_the_record_fixes_and_its_note_what_can_change(
    history: History, full: Path, tmp_path: Path, export: Export
) -> None:
    _, better, crash, *_ = history.records[1:]
    repo = tmp_path / "repo"
    export(full, repo)

    def show_commit(run: bytes, form: str) -> str:
        return git(repo, "log", "-1", f"--format={form}", f"refs/runs/{format_id(run)}").strip("\n")

    assert show_commit(better.id, "%an <%ae> %at") == (
        f"{better.author.hex()[:16]} <{better.author.hex()}@autoresearch.invalid> {better.time // 1000}"
    )
    assert show_commit(better.id, "%b").startswith(
        "smaller is better\n\nas in the paper\n\nReported: 1.5\nChange-reported: -0.5\n"
    )
    assert show_commit(better.id, "%(trailers:key=Record,valueonly)").strip() == format_id(better.id)
    assert show_commit(crash.id, "%(trailers:key=Status,key=Reason)") == "Status: crashed\nReason: ValueError: no"
    assert show_commit(better.id, "%N").startswith("State: reported\nParticipant: ")
    assert "State:" not in show_commit(better.id, "%B")
    assert "1.25" in git(repo, "runs", "--color=never")
    assert "crashed" in git(repo, "runs", "--color=never")


def test_commit_ids_stay_what_they_are(history: History, full: Path, tmp_path: Path, export: Export) -> None:
    export(full, tmp_path / "repo")
    task, best = git(tmp_path / "repo", "rev-parse", "main~3", "main").split()
    assert (task, best) == (TASK_COMMIT, BEST_COMMIT)


@pytest.mark.slow
def test_any_order_of_arrival_gives_the_same_commits(history: History, tmp_path: Path, export: Export) -> None:
    grown(history, 60)
    sources = list(history.sources.values())
    for name, records in (("one", history.records), ("two", history.records[::-1])):
        settle(home(tmp_path / name), records, sources)
        assert answer(export(tmp_path / name, tmp_path / f"{name}.git", "--json"))["runs"] == 61
    forward, backward = tmp_path / "one.git", tmp_path / "two.git"
    assert references(forward) == references(backward)
    assert references(forward, "refs/heads") == references(backward, "refs/heads")
    assert git(forward, "ls-tree", "-r", "refs/notes/autoresearch") == git(
        backward, "ls-tree", "-r", "refs/notes/autoresearch"
    )


@pytest.mark.slow
def test_a_log_that_was_carried_by_hand_gives_the_same_commits(
    full: Path, tmp_path: Path, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(full, tmp_path / "here")
    settle(home(tmp_path / "elsewhere"), [], [])
    monkeypatch.setattr("autoresearch_cli.home.now_ms", lambda: NOW_MS + 60_000)
    for place, words in ((full, ("run", "export", "--bundle")), (tmp_path / "elsewhere", ("node", "import"))):
        monkeypatch.setenv("AUTORESEARCH_HOME", str(place))
        carried = CliRunner().invoke(app, [*words, str(tmp_path / "log.car")], prog_name="autoresearch")
        assert carried.exit_code == 0, carried.output
    export(tmp_path / "elsewhere", tmp_path / "there")
    assert references(tmp_path / "there") == references(tmp_path / "here")


@pytest.mark.slow
def test_what_comes_later_is_added_and_nothing_else_changes(history: History, tmp_path: Path, export: Export) -> None:
    grown(history, 36)
    node_home, repo = tmp_path / "home", tmp_path / "repo"
    before: dict[str, str] = {}
    for upto in range(1, len(history.records) + 1, 12):
        settle(home(node_home), history.records[:upto], list(history.sources.values()))
        summary = answer(export(node_home, repo, "--json"))
        now = references(repo)
        assert before.items() <= now.items()
        assert summary["commits"] == len(now) - len(before)
        assert git(repo, "status", "--porcelain") == ""
        before = now
    names = references(repo, "refs")
    assert answer(export(node_home, repo, "--json"))["commits"] == 0
    assert references(repo, "refs") == names
    at_once = tmp_path / "at_once"
    export(node_home, at_once)
    commit_refs = {name: at for name, at in names.items() if "notes" not in name}
    assert {name: at for name, at in references(at_once, "refs").items() if "notes" not in name} == commit_refs


def test_a_run_whose_source_is_not_here_waits_and_so_do_its_children(
    history: History, tmp_path: Path, export: Export
) -> None:
    small(history)
    node_home, repo = tmp_path / "home", tmp_path / "repo"
    lost = b"X = 1.5\n"
    settle(home(node_home), history.records, [source for source in history.sources.values() if source != lost])
    result = export(node_home, repo)
    assert result.exit_code == 0
    assert "1 run left out, whose source is not on this machine, nor 2 runs after them" in result.stderr
    assert f"the best run, {short_id(history.records[4].id)}, is among those" in result.stderr
    assert (repo / "train.py").read_bytes() == b"X = 1.75\n"
    first = references(repo)
    settle(home(node_home), [], [lost])
    assert answer(export(node_home, repo, "--json"))["commits"] == 3
    assert first.items() <= references(repo).items()
    assert (repo / "train.py").read_bytes() == b"X = 1.25\n"


@pytest.mark.slow
def test_a_run_whose_parent_is_not_in_the_log_waits(history: History, tmp_path: Path, export: Export) -> None:
    small(history)
    node_home, repo = tmp_path / "home", tmp_path / "repo"
    sources = list(history.sources.values())
    settle(home(node_home), [record for record in history.records if record is not history.records[2]], sources)
    result = export(node_home, repo)
    assert "2 runs left out, whose parent run is not in the log" in result.stderr
    settle(home(node_home), history.records, sources)
    assert answer(export(node_home, repo, "--json"))["commits"] == 3


def test_a_parent_on_another_task_is_no_parent(history: History, tmp_path: Path, export: Export) -> None:
    other = history.run(1.0, b"X = 9\n", task=b"o" * 32)
    run = history.run(1.5, b"X = 1.5\n", other)
    settle(home(tmp_path / "home"), history.records, list(history.sources.values()))
    repo = tmp_path / "repo"
    export(tmp_path / "home", repo, "--task", "grammar")
    [(name, commit)] = references(repo).items()
    assert name == f"refs/runs/{format_id(run.id)}"
    assert "Delta" not in git(repo, "log", commit)
    assert git(repo, "log", "--format=%s", commit).splitlines() == ["X to 1.5", "Task grammar"]
    # Its record proves fraud.
    assert git(repo, "rev-parse", "main").strip() != commit


class Sourced(Village):
    """A village whose programs are files."""

    def __init__(self, log: Log, blobs: BlobStore) -> None:
        self._blobs, whole = blobs, History(blobs)
        log.writer.ingest(pairs(whole.records), now_ms=whole.records[0].time)
        super().__init__(log, whole.definition)

    def _body(self, value: float | None, name: str, above: Record | None, fields: dict[str, object]) -> Run:
        body = super()._body(value, name, above, fields)
        return msgspec.structs.replace(body, source=self._blobs.put(f"# {name}\n".encode()))


@pytest.mark.slow
def test_a_state_and_a_name_that_change_leave_every_commit_as_it_is(tmp_path: Path, export: Export) -> None:
    node_home, repo = home(tmp_path / "home"), tmp_path / "repo"
    node_home.create()
    save_manifest(node_home.manifest, NetworkManifest(network=NETWORK, trust=TRUST))
    with Log.open(node_home.log, NETWORK, trust=TRUST) as log, BlobStore(node_home.blobs) as blobs:
        village = Sourced(log, blobs)
        better = village.run(1.5, "better")
        assert answer(export(tmp_path / "home", repo, "--json"))["runs"] == 2
        commits, notes = references(repo), git(repo, "rev-list", "--count", "refs/notes/autoresearch")
        assert "State: reported" in git(repo, "log", "-1", "main")

        village.confirm(better, 2.0, 1.5)
        root = ROOTS[0].public
        village.append(ROOTS[0], "identity", Identity(action="profile", root=root, name="ann"))
        assert answer(export(tmp_path / "home", repo, "--json"))["commits"] == 0
    assert references(repo) == commits
    log_text = git(repo, "log", "-1", "main")
    assert "State: confirmed\n" in log_text
    assert re.search(r"Verified: 1\.5\d* ± 0\.\d+ by 3 verifiers\n +Gain: \+0\.5 ± 0\.\d+\n", log_text)
    assert f"Author: {root.hex()[:8]} “ann” <{AUTHOR.public.hex()}@" in log_text
    assert git(repo, "rev-list", "--count", "refs/notes/autoresearch") != notes


@pytest.mark.slow
def test_a_withdrawn_run_keeps_its_commit_and_leaves_main(history: History, tmp_path: Path, export: Export) -> None:
    *_, best, _ = small(history)
    node_home, repo = tmp_path / "home", tmp_path / "repo"
    settle(home(node_home), history.records, list(history.sources.values()))
    export(node_home, repo)
    commits = references(repo)
    history.sign(key(1), "withdrawal", Withdrawal(reason="wrong data"), [best.id])
    settle(home(node_home), history.records, [])
    assert answer(export(node_home, repo, "--json"))["main"] == format_id(history.records[2].id)
    assert references(repo) == commits
    assert "Withdrawn: yes" in git(repo, "log", "-1", f"refs/runs/{format_id(best.id)}")
    assert (repo / "train.py").read_bytes() == b"X = 1.5\n"
    assert git(repo, "status", "--porcelain") == ""
