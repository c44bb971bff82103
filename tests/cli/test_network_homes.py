"""Several networks in one home, without a daemon: adding, switching, bringing own runs, forgetting."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from autoresearch_cli.models import BroughtRunsAnswer, HomeNetworksAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.records import ShowAnswer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.context import is_own_run, own_keys
from autoresearch.paths import NETWORK_VARIABLE, Paths
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Run, Withdrawal
from autoresearch.record.record import DEFAULT_NETWORK, Record
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.trust.invite import write_invite
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, TRAIN, Filled, measured
from tests.cli.test_json import strictly
from tests.trust.networks.making import TEA

OTHER_TEA = TEA.__class__(TEA.network.__class__(name=TEA.network.name, nonce=bytes(16)))


@pytest.fixture
def paths(home: Path) -> Paths:
    """The folders of the first network of the home, whichever is in use."""
    return Paths.from_environment({"AUTORESEARCH_HOME": str(home), NETWORK_VARIABLE: ""})


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    """A network's file."""
    save_manifest(tmp_path / "tea.toml", TEA)
    return tmp_path / "tea.toml"


@pytest.fixture
def in_tea(cli: Cli, filled: Filled, tea: Path) -> Paths:
    """A home with a history alone that has joined a network; its folders there."""
    assert cli("network", "join", str(tea)).exit_code == 0
    return used()


def used() -> Paths:
    """The folders of the network in use."""
    return Paths.from_environment(os.environ)


@contextmanager
def log_of(paths: Paths) -> Iterator[Log]:
    with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
        yield log


def runs(paths: Paths) -> list[Record]:
    """The runs in a log, in the order of their author."""
    with log_of(paths) as log:
        return sorted(log.records.newest(kind="run", limit=1000), key=lambda run: run.seq)


def listed(cli: Cli) -> dict[str, bool]:
    """The networks of the home, and which is in use."""
    answer = strictly(cli("network", "list", "--json").stdout, HomeNetworksAnswer)
    return {network.name: network.in_use for network in answer.networks}


def test_a_home_is_in_one_network_until_another_is_joined(cli: Cli, paths: Paths, tea: Path) -> None:
    assert listed(cli) == {"commons": True}
    cli("network", "join", str(tea))
    assert used() == paths, "a new home needs no second folder"
    assert listed(cli) == {"tea": True}


def test_joining_adds_a_network_and_leaves_the_other_as_it_is(
    cli: Cli, filled: Filled, paths: Paths, tea: Path
) -> None:
    before = paths.log.read_bytes()
    result = cli("network", "join", str(tea))
    assert "tea is now the network in use; back to the other one: autoresearch network use commons" in result.stderr
    assert "of yours stay there → autoresearch network bring commons" in result.stderr
    assert (used().log.parent, used().keys) == (paths.data / "networks" / used().folder, paths.keys)
    assert listed(cli) == {"commons": False, "tea": True}
    assert cli("node", "records").stdout == ""
    assert cli("network", "use", "commons").exit_code == 0
    assert paths.log.read_bytes() == before
    assert filled.best in cli("node", "records").stdout
    assert "is already the network in use" in cli("network", "use", "commons").stderr
    assert "is already the network in use" in cli("network", "use", "com").stderr
    assert cli("network", "use", "co").exit_code == 4
    assert cli("network", "join", write_invite(TEA)).exit_code == 0
    assert listed(cli) == {"commons": False, "tea": True}


def test_two_networks_of_one_name_are_told_apart(cli: Cli, in_tea: Paths) -> None:
    assert cli("network", "join", write_invite(OTHER_TEA)).exit_code == 0
    names = [f"tea-{each.network.id.hex()[:8]}" for each in (TEA, OTHER_TEA)]
    assert listed(cli) == {"commons": False, names[0]: False, names[1]: True}
    assert cli("network", "use", "tea").exit_code == 5
    assert cli("network", "use", names[0]).exit_code == 0
    assert cli("network", "use", OTHER_TEA.network.id.hex()[:12]).exit_code == 0
    assert listed(cli)[names[1]]


def test_the_built_in_network_can_be_used_by_a_home_that_began_in_another(cli: Cli, tea: Path) -> None:
    cli("network", "join", str(tea))
    assert cli("network", "use", "coffee").exit_code == 4
    assert cli("network", "use", "commons").exit_code == 0
    assert cli("network", "show", "--json").stdout.count(DEFAULT_NETWORK.id.hex()) == 1
    assert listed(cli) == {"commons": True, "tea": False}


@pytest.mark.parametrize("content", [b"nothing-here\n", b"../..\n", b"\xff\n", b"a/b"])
def test_a_damaged_choice_is_a_sentence(cli: Cli, in_tea: Paths, content: bytes) -> None:
    in_tea.in_use.write_bytes(content)
    for words in (
        (
            "node",
            "records",
        ),
        ("network", "list"),
        ("network", "use", "tea"),
        ("up",),
        (
            "node",
            "paths",
        ),
    ):
        result = cli(*words)
        assert (result.exit_code, "delete that file" in result.stderr) == (2, True), words
        assert "Traceback" not in result.output


@pytest.mark.slow
def test_the_same_key_signs_in_two_networks_with_numbers_of_their_own(cli: Cli, in_tea: Paths, paths: Paths) -> None:
    for place in (in_tea, paths, in_tea):
        assert cli("network", "use", "tea" if place == in_tea else "commons").exit_code == 0
        with Notebook(used()) as notebook:
            before = notebook.log.devices.head(notebook.author)
            notebook.publish_identity(START_MS + 900_000)
            note = notebook.publish_name(f"{place.folder}x"[:8], START_MS + 900_000)
            assert note
            assert note.seq > (before.seq if before else 0)
            assert not notebook.log.devices.forks()
            assert notebook.log.writer.missing_own(notebook.author) is None
    with log_of(paths) as first, log_of(in_tea) as second:
        author = note.author
        assert first.devices.head(author).seq != second.devices.head(author).seq
        numbers = {record.seq for record in second.records.by_author(author)}
        assert numbers == set(range(1, second.devices.head(author).seq + 1))
    assert {file.name for file in in_tea.heads.iterdir()} >= {author.hex()}
    assert "older copy" not in cli("node", "doctor").output


@pytest.mark.slow
def test_an_old_copy_of_one_log_stops_that_network_alone(cli: Cli, in_tea: Paths, paths: Paths, tmp_path: Path) -> None:
    assert cli("network", "bring", "commons").exit_code == 0
    copy = shutil.copy(in_tea.log, tmp_path / "old.sqlite")
    with Notebook(in_tea) as notebook:
        notebook.publish_name("later", START_MS + 900_000)
    for end in ("", "-wal", "-shm"):
        in_tea.log.with_name(in_tea.log.name + end).unlink(missing_ok=True)
    shutil.copy(copy, in_tea.log)
    assert "an older copy was put back" in cli("node", "doctor").output
    cli("network", "use", "commons")
    assert "an older copy was put back" not in cli("node", "doctor").output


def test_own_finished_runs_are_brought_with_their_files_once(
    cli: Cli, in_tea: Paths, filled: Filled, paths: Paths
) -> None:
    listing = strictly(cli("network", "bring", "commons", "--dry-run", "--json").stdout, BroughtRunsAnswer)
    expected = [run for run in filled.ids if run != filled.crash]
    assert [run.id for run in listing.runs] == expected
    assert runs(in_tea) == []
    answer = strictly(cli("network", "bring", "commons", "--json").stdout, BroughtRunsAnswer)
    assert (answer.brought, answer.skipped, answer.network, answer.origin) == (4, 0, "tea", "commons")
    result = runs(in_tea)
    bodies = [run.body for run in result if isinstance(run.body, Run)]
    assert [format_id(body.origin) for body in bodies] == expected
    assert [body.value for body in bodies] == [1.5, 1.4, 1.3, 1.45]
    moved = {body.origin: run.id for run, body in zip(result, bodies, strict=True)}
    originals = {run.id: run.body for run in runs(paths)}
    assert [body.parent for body in bodies] == [moved.get(originals[body.origin].parent) for body in bodies]
    with BlobStore(in_tea.blobs, read_only=True) as blobs:
        assert all(blobs.has(blob.sha256) for body in bodies for blob in (body.source, body.log))
    assert cli("show", format_id(result[-1].id), "--code").stdout == TRAIN.format(x=1.45)
    reply = strictly(cli("show", format_id(result[0].id), "--json").stdout, ShowAnswer)
    assert reply.run
    assert reply.run.run.origin == expected[0]
    assert "0 runs of commons brought here" in cli("network", "bring", "commons").stderr
    assert len(runs(in_tea)) == 4


@pytest.mark.slow
def test_a_run_on_another_participants_has_no_parent_there_until_that_one_is_there(
    cli: Cli, in_tea: Paths, filled: Filled, paths: Paths
) -> None:
    stranger, theirs = KeyPair.from_seed(b"s" * 32), parse_id(filled.stranger)
    cli("network", "use", "commons")
    with Notebook(paths) as notebook:
        for x in (1.1, 1.2):
            plan = plan_as_it_stands(filled.task, TRAIN.format(x=x), title="on theirs", parent=theirs)
            notebook.publish_run(plan, measured(x), START_MS + 800_000)
        first = runs(paths)[-1]
        notebook.withdraw(first, START_MS + 810_000)
        body = notebook.log.records.get(theirs).body
    cli("network", "use", "tea")
    assert cli("network", "bring", "commons").exit_code == 0
    [brought] = [run for run in runs(in_tea) if run.body.title == "on theirs"]
    assert brought.body.parent is None
    with log_of(in_tea) as log:
        assert not is_own_run(log, brought.id, own_keys(log, brought.author, brought.time))
        own = [run for run in runs(in_tea) if run.body.parent]
        assert all(is_own_run(log, run.id, own_keys(log, run.author, run.time)) for run in own)
    with Notebook(in_tea) as notebook:
        notebook.withdraw(brought, START_MS + 900_000)
        moved = body.__class__(**{**as_fields(body), "parent": None, "origin": theirs})
        record = notebook.log.writer.append(stranger, "run", moved, now_ms=brought.time)
    with Notebook(paths) as notebook:
        plan = plan_as_it_stands(filled.task, TRAIN.format(x=1.05), title="later", parent=theirs)
        notebook.publish_run(plan, measured(1.05), START_MS + 950_000)
    answer = strictly(cli("network", "bring", "commons", "--json").stdout, BroughtRunsAnswer)
    assert answer.brought == 1, "a run that was withdrawn there is not brought again"
    [later] = [run for run in runs(in_tea) if run.body.title == "later"]
    assert later.body.parent == record.id


@pytest.mark.slow
def test_a_program_that_another_has_run_there_is_not_published_a_second_time(
    cli: Cli, in_tea: Paths, filled: Filled, paths: Paths
) -> None:
    mine = next(run for run in runs(paths) if format_id(run.id) == filled.ids[1])
    body = mine.body.__class__(**{**as_fields(mine.body), "parent": None})
    with Notebook(in_tea) as notebook:
        theirs = notebook.log.writer.append(KeyPair.from_seed(b"o" * 32), "run", body, now_ms=START_MS)
    answer = strictly(cli("network", "bring", "commons", "--json").stdout, BroughtRunsAnswer)
    assert (answer.brought, answer.repeated) == (3, 1)
    child = next(run.body for run in runs(in_tea) if run.body.origin == parse_id(filled.ids[3]))
    assert child.parent == theirs.id
    again = cli("network", "bring", "commons")
    assert "0 runs of commons brought here" in again.stderr
    assert "1 left out, whose program another participant has run here with the same seed" in again.stderr


def as_fields(body: Run) -> dict[str, object]:
    return {name: getattr(body, name) for name in body.__struct_fields__}


@pytest.mark.slow
def test_what_was_brought_on_is_still_the_same_run(cli: Cli, in_tea: Paths, filled: Filled) -> None:
    cli("network", "bring", "commons")
    assert cli("network", "join", write_invite(OTHER_TEA)).exit_code == 0
    tea = f"tea-{TEA.network.id.hex()[:8]}"
    assert "4 runs of" in cli("network", "bring", tea).stderr
    assert "0 runs of" in cli("network", "bring", "commons").stderr
    cli("network", "use", "commons")
    assert "0 runs of" in cli("network", "bring", tea).stderr


def test_a_run_whose_program_is_not_here_is_left_out(cli: Cli, in_tea: Paths, filled: Filled, paths: Paths) -> None:
    gone = next(run.body for run in runs(paths) if format_id(run.id) == filled.ids[1])
    with BlobStore(paths.blobs) as blobs:
        blobs.delete([blob for blob in blobs.stored() if blob.sha256 == gone.source.sha256])
    result = cli("network", "bring", "commons")
    assert "3 runs of commons brought here\n1 left out, whose program is not on this machine" in result.stderr
    assert [run.body.parent is None for run in runs(in_tea)].count(True) == 2


def test_joining_brings_own_runs_along(cli: Cli, filled: Filled, tea: Path) -> None:
    result = cli("network", "join", str(tea), "--bring")
    assert "4 runs of commons brought here" in result.stderr
    assert len(runs(used())) == 4
    assert "0 runs of commons brought here" in cli("network", "join", str(tea), "--bring").stderr


@pytest.mark.slow
def test_an_encrypted_root_key_names_the_device_before_runs_are_brought(
    cli: Cli, filled: Filled, tea: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "correct horse battery staple")
    assert cli("node", "id", "passphrase").exit_code == 0
    refused = cli("network", "join", str(tea), "--bring")
    assert (refused.exit_code, "autoresearch node id renew" in refused.stderr) == (6, True)
    assert (runs(used()), listed(cli)["tea"]) == ([], True)
    assert cli("node", "id", "renew").exit_code == 0
    assert "4 runs of commons brought here" in cli("network", "bring", "commons").stderr


@pytest.mark.slow
def test_a_process_that_is_killed_in_the_middle_goes_on_without_duplicates(
    cli: Cli, in_tea: Paths, filled: Filled, paths: Paths
) -> None:
    with Notebook(paths) as notebook:
        for number in range(40):
            plan = plan_as_it_stands(filled.task, TRAIN.format(x=2 + number / 100), title=f"number {number}")
            notebook.publish_run(plan, measured(2.0 + number / 100), START_MS + 700_000 + number)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "autoresearch_cli", "network", "bring", "commons"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == "20 of 44 runs\n"
        process.kill()
    before = len(runs(in_tea))
    assert 20 <= before <= 44
    assert f"{44 - before} runs of commons brought here" in cli("network", "bring", "commons").stderr
    result = runs(in_tea)
    assert len({run.body.origin for run in result}) == len(result) == 44
    with log_of(in_tea) as log:
        assert log.devices.forks() == []


def test_a_network_is_forgotten_without_its_keys(cli: Cli, in_tea: Paths, filled: Filled, paths: Paths) -> None:
    keys = {file: file.read_bytes() for file in paths.keys.iterdir()}
    cli("network", "bring", "commons")
    assert cli("network", "forget", "tea", "--yes").exit_code == 6, "it is in use"
    cli("network", "use", "commons")
    assert cli("network", "forget", "tea").exit_code == 2, "nobody can be asked"
    assert cli("network", "forget", "tea", "--yes").exit_code == 0
    assert not in_tea.log.exists()
    assert not in_tea.blobs.exists()
    assert listed(cli) == {"commons": True}
    assert {file: file.read_bytes() for file in paths.keys.iterdir()} == keys
    cli("network", "join", write_invite(TEA))
    refused = cli("network", "bring", "commons")
    assert (refused.exit_code, "older copy" in refused.stderr) == (6, True), "joined again, it must not fork"


def test_the_first_network_of_a_home_can_be_forgotten_too(
    cli: Cli, in_tea: Paths, filled: Filled, paths: Paths
) -> None:
    heads = {file.name for file in paths.heads.iterdir()}
    assert cli("network", "forget", "commons", "--yes").exit_code == 0
    assert listed(cli) == {"tea": True}
    assert not paths.log.exists()
    cli("network", "use", "commons")
    assert {file.name for file in used().heads.iterdir()} == heads
    cli("network", "join", write_invite(OTHER_TEA))
    assert not used().folder, "the place of the first one is free"


def test_a_bundle_of_another_network_says_what_to_do(cli: Cli, in_tea: Paths, filled: Filled, tmp_path: Path) -> None:
    cli("network", "use", "commons")
    cli("run", "export", "--bundle", str(tmp_path / "log.car"))
    cli("network", "use", "tea")
    refused = cli("node", "import", str(tmp_path / "log.car"))
    assert refused.exit_code == 6
    for words in ("network join", "network use", "--bring"):
        assert words in refused.stderr
    assert json.loads(cli("network", "list", "--json").stdout)["networks"][1]["records"] == 0


def test_withdrawals_stay_behind(cli: Cli, in_tea: Paths, filled: Filled, paths: Paths) -> None:
    cli("network", "bring", "commons")
    with log_of(in_tea) as log:
        kinds = {record.kind for record in log.records.newest(limit=100)}
        assert not [record for record in log.records.newest(limit=100) if isinstance(record.body, Withdrawal)]
    assert kinds == {"identity", "task", "run"}


def test_a_log_that_cannot_be_read_leaves_the_other_networks_in_the_list(cli: Cli, in_tea: Paths, paths: Paths) -> None:
    for end in ("-wal", "-shm"):
        paths.log.with_name(paths.log.name + end).unlink(missing_ok=True)
    paths.log.write_bytes(b"no database" * 1000)
    result = cli("network", "list", "--json")
    answer = strictly(result.stdout, HomeNetworksAnswer)
    assert [(network.name, network.records) for network in answer.networks] == [("commons", None), ("tea", 0)]
    assert "commons: " in result.stderr
    assert "Traceback" not in cli("network", "bring", "commons").output
