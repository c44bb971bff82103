"""Whole daemons on loopback: they find each other, carry the same records and each other's sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.models import Check, DoctorAnswer
from autoresearch_daemon.events import now_ms

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.ask.lookup import find_task
from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.people.claims import published_task
from autoresearch.errors import NotFound
from autoresearch.face.columns.people import PEER_CHARACTERS
from autoresearch.hours import DAYS
from autoresearch.log.blobs import BlobStore
from autoresearch.log.bundle import write_bundle
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.toy import SECOND_TRAIN, write_toy_task
from tests.log.dumping import dump
from tests.warm import PRELOADED, open_command, run_command, warm

pytestmark = pytest.mark.slow

Start = Callable[..., Daemon]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a daemon with the network on, that knows the given ones."""
    made: list[Daemon] = []

    def begin(*bootstrap: Daemon) -> Daemon:
        settings = {
            "AUTORESEARCH_NETWORK_ENABLED": "true",
            "AUTORESEARCH_NETWORK_LAN": "false",
            "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
            "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
            "AUTORESEARCH_NETWORK_BOOTSTRAP": ",".join(address_of(daemon) for daemon in bootstrap),
        }
        made.append(Daemon(tmp_path / f"home{len(made)}", settings).start())
        wait_for(lambda: bool(peers_of(made[-1]).addresses))
        return made[-1]

    yield begin
    stop_all(made)


def peers_of(daemon: Daemon) -> PeersAnswer:
    with daemon.client() as client:
        return msgspec.json.decode(client.get("/v1/peers").content, type=PeersAnswer)


def address_of(daemon: Daemon) -> str:
    return peers_of(daemon).addresses[0]


def ids(daemon: Daemon) -> set[bytes]:
    with Log.open(daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        return {record_id for _, record_id in log.records.iter_keys()}


def test_what_one_did_before_they_met_and_after_is_in_both_logs_with_its_sources(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    first = start()
    first.post("/v1/work", task=str(task), runs=5)
    wait_for(lambda: first.status().state == "idle")

    second = start(first)
    wait_for(lambda: ids(second) >= ids(first))
    second.post("/v1/work", task=str(task), runs=5)
    wait_for(lambda: second.status().state == "idle")
    wait_for(lambda: ids(first) == ids(second))

    runs = first.runs()
    assert len(runs) == len({(run.source_digest, run.replicate) for run in runs}) == 10
    with BlobStore(first.paths.blobs, read_only=True) as blobs:
        wait_for(lambda: all(blobs.has(run.source.sha256) for run in runs))
    assert first.status().task.best == second.status().task.best


def work(daemon: Daemon, task: Path, runs: int) -> None:
    """Do so many runs and wait for their end."""
    before = daemon.status().records
    assert daemon.post("/v1/work", task=str(task), runs=runs).status_code == 200
    wait_for(lambda: daemon.status().state == "idle" and daemon.status().records > before)


def test_nodes_that_begin_at_one_moment_run_nothing_twice(start: Start, tmp_path: Path) -> None:
    folder = write_toy_task(tmp_path / "task")
    first = start()
    second = start(first)
    wait_for(lambda: all(any(peer.connected for peer in peers_of(daemon).peers) for daemon in (first, second)))
    for daemon in (first, second):
        daemon.post("/v1/work", task=str(folder), runs=4, verify_share=0)
    wait_for(lambda: all(daemon.status().state == "idle" for daemon in (first, second)))
    wait_for(lambda: len(first.runs()) == len(second.runs()) >= 8)
    ended = [(run.source_digest, run.replicate) for run in first.runs() if run.status == "ok"]
    assert len(ended) == len(set(ended)) == 8
    with Log.open(first.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        assert log.claims.open(load_task(folder).digest, now_ms=now_ms()) == []


def test_nodes_that_are_asked_for_one_experiment_divide_it(start: Start, tmp_path: Path) -> None:
    folder = write_toy_task(tmp_path / "task", SECOND_TRAIN)
    pin_baseline(folder)
    first = start()
    second = start(first)
    wait_for(lambda: all(any(peer.connected for peer in peers_of(daemon).peers) for daemon in (first, second)))
    words = ("run", "vary", str(folder), "--set", "X=0.2,0.4,0.6", "--set", "Y=0.2,0.8", "--wait", "--json")
    homes = [{**os.environ, **node.settings, "AUTORESEARCH_HOME": str(node.home)} for node in (first, second)]
    answers = []
    for process in [open_command(*words, environment=home) for home in homes]:
        out, errors = process.communicate()
        assert process.returncode == 0, errors
        answers.append(msgspec.json.decode(out, type=VaryAnswer))
    assert [(answer.to_go, answer.elsewhere, len(answer.proposed)) for answer in answers] == [(0, 0, 6)] * 2
    assert [[variant.runs for variant in answer.variants] for answer in answers] == [[1] * 6] * 2
    with Log.open(first.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        authors = [record.author for record in log.records.newest(kind="run", limit=1000)]
    assert (len(authors), len(set(authors))) == (6, 2)


def test_an_old_copy_of_the_whole_data_folder_catches_up_before_anything_is_signed(
    start: Start, tmp_path: Path
) -> None:
    task = write_toy_task(tmp_path / "task")
    first = start()
    second = start(first)
    work(first, task, 3)
    first.kill()
    shutil.copytree(first.paths.data, tmp_path / "copy")
    first.start()
    work(first, task, 3)
    newest = ids(first)
    wait_for(lambda: ids(second) >= newest)
    first.kill()

    shutil.rmtree(first.paths.data)
    shutil.copytree(tmp_path / "copy", first.paths.data)
    assert not ids(first) >= newest
    first.start()
    assert ids(first) >= newest, "it is ready only when it knows what it signed"
    work(first, task, 3)
    wait_for(lambda: ids(first) == ids(second))
    with Log.open(second.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        assert log.devices.forks() == []


def test_an_old_copy_that_reaches_nobody_forks_for_all_to_see(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    first = start()
    second = start(first)
    work(first, task, 1)
    first.kill()
    shutil.copytree(first.paths.data, tmp_path / "copy")
    first.start()
    work(first, task, 2)
    newest = ids(first)
    wait_for(lambda: ids(second) >= newest)
    first.kill()
    second.kill()

    shutil.rmtree(first.paths.data)
    shutil.copytree(tmp_path / "copy", first.paths.data)
    first.start()
    work(first, task, 1)
    second.start()
    wait_for(lambda: ids(first) == ids(second))
    with (
        Log.open(first.paths.log, DEFAULT_NETWORK, read_only=True) as log,
        Log.open(second.paths.log, DEFAULT_NETWORK, read_only=True) as other_log,
    ):
        assert log.devices.forks() == other_log.devices.forks() != []
        assert dump(log) == dump(other_log)


def test_what_is_imported_beside_a_running_daemon_reaches_its_peers(start: Start, tmp_path: Path) -> None:
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "other")})
    with Notebook(paths) as notebook:
        notebook.publish_identity(now_ms())
        notes = [notebook.publish_note(Note(topic="insight", text=f"{n}"), now_ms()).id for n in range(300)]
        with (tmp_path / "log.car").open("wb") as file:
            write_bundle(notebook.log, notebook.blobs, file)
    first = start()
    second = start(first)
    wait_for(lambda: peers_of(first).network.connected == 1)
    environment = {**os.environ, "AUTORESEARCH_HOME": str(first.home)}
    run_command("node", "import", str(tmp_path / "log.car"), environment=environment).check_returncode()

    wait_for(lambda: ids(second) >= set(notes))
    assert ids(first) >= set(notes)


@pytest.mark.parametrize(
    ("name", "text"), [("LISTEN", "rubbish"), ("LISTEN", "/ip4/999/tcp/0"), ("BOOTSTRAP", "/ip4/")]
)
def test_an_address_that_is_none_is_a_sentence_at_the_start(tmp_path: Path, name: str, text: str) -> None:
    settings = {"AUTORESEARCH_HOME": str(tmp_path), "AUTORESEARCH_NETWORK_ENABLED": "true"}
    environment = {**os.environ, **settings, f"AUTORESEARCH_NETWORK_{name}": text}
    ended = warm(PRELOADED).run("autoresearch_daemon", environment=environment)

    assert ended.returncode == 2
    assert f"network.{name.lower()}" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_the_network_a_node_works_and_says_that_it_is_alone(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home").start()
    try:
        assert peers_of(daemon).network.state == "off"
        assert daemon.post("/v1/peers", address="/ip4/127.0.0.1/tcp/1/p2p/x").status_code == 409
    finally:
        daemon.stop()


def test_outside_its_hours_a_node_has_no_connection_and_works_on(start: Start, tmp_path: Path) -> None:
    first = start()
    second = start(first)
    wait_for(lambda: peers_of(second).network.connected == 1)
    second.post("/v1/work", task=str(write_toy_task(tmp_path / "task")))
    other_day = DAYS[(datetime.now(UTC).weekday() + 3) % 7]
    assert second.post("/v1/settings", name="network.hours", value="someday").status_code == 400
    changed = second.post("/v1/settings", name="network.hours", value=other_day)
    assert changed.json()["note"] == "the daemon goes by it from now on"
    wait_for(lambda: peers_of(second).network.state == "resting")
    wait_for(lambda: peers_of(first).network.connected == 0)
    reason = peers_of(second).network.reason
    assert reason.startswith(f"outside the hours of network.hours ({other_day}); the network goes on at 2")
    assert reason in " ".join(autoresearch(second, "network", "peers").stderr.split())
    assert f"net\tresting: {reason}" in autoresearch(second, "status").stdout
    assert checks(autoresearch(second, "node", "doctor", "network", "--json"))["process"].detail.startswith(reason)
    runs = len(second.runs())
    wait_for(lambda: len(second.runs()) > runs + 1)
    second.post("/v1/settings", name="network.hours", value="")
    wait_for(lambda: peers_of(second).network.connected == 1)
    second.post("/v1/finish")
    wait_for(lambda: ids(first) == ids(second))


def test_a_task_that_only_another_node_has_can_be_worked_on(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    first = start()
    first.post("/v1/work", task=str(task), runs=1)
    wait_for(lambda: first.status().state == "idle")
    second = start(first)

    def rebuilt() -> Path | None:
        with (
            Log.open(second.paths.log, DEFAULT_NETWORK, read_only=True) as log,
            BlobStore(second.paths.blobs, read_only=True) as blobs,
        ):
            try:
                digest = find_task(log).digest
                return published_task(log, blobs, digest, tmp_path / "rebuilt").folder
            except NotFound:
                return None

    wait_for(lambda: rebuilt() is not None)
    assert load_task(tmp_path / "rebuilt").digest == load_task(task).digest
    second.post("/v1/work", task=str(tmp_path / "rebuilt"), runs=1)
    wait_for(lambda: len(second.runs()) == 2 and ids(first) == ids(second))


def test_what_is_missing_is_fetched_when_somebody_looks_at_it(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    first = start()
    first.post("/v1/work", task=str(task), runs=2)
    wait_for(lambda: first.status().state == "idle")
    second = start(first)
    with Log.open(first.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        record = log.records.newest(kind="run")[0]
    run, source = format_id(record.id), record.body.source.sha256
    with BlobStore(second.paths.blobs) as blobs:
        wait_for(lambda: blobs.has(source))
        blobs.delete([blob for blob in blobs.stored() if blob.sha256 == source])
        done = autoresearch(second, "show", run, "--code")
        assert done.returncode == 0, done.stderr
        assert done.stdout == autoresearch(first, "show", run, "--code").stdout
        assert blobs.has(source)
        blobs.delete([blob for blob in blobs.stored() if blob.sha256 == source])
    first.stop()
    wait_for(lambda: peers_of(second).network.connected == 0)
    nobody = autoresearch(second, "show", run, "--code")
    assert nobody.returncode == 4
    assert "no peer is connected; it may come back when its author" in nobody.stderr
    second.stop()
    down = autoresearch(second, "show", run, "--code")
    assert down.returncode == 4
    assert "the daemon that would fetch it is not running" in down.stderr
    assert "autoresearch up" in down.stderr


def autoresearch(daemon: Daemon, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    home = {"AUTORESEARCH_HOME": str(daemon.paths.data.parent), **daemon.settings, **settings}
    return run_command(*words, environment={**os.environ, **home})


def test_peers_say_what_they_are_and_a_blocked_one_stays_out(start: Start) -> None:
    first = start()
    second = start(first)
    wait_for(lambda: any(peer.agent and peer.exchanged_ms for peer in peers_of(second).peers))
    (seen,) = peers_of(second).peers
    assert seen.agent.startswith("autoresearch/")
    assert seen.devices
    assert not seen.other_network
    assert abs(seen.clock_ahead_ms) < 5000
    assert seen.bytes_in > 0
    assert peers_of(second).network.exchanged_ms

    peer_id = peers_of(second).peer
    blocked = autoresearch(first, "network", "peers", "block", peer_id[-PEER_CHARACTERS:])
    assert blocked.returncode == 0, blocked.stderr
    wait_for(lambda: peers_of(second).network.connected == 0)
    first.stop()
    first.start()
    wait_for(lambda: peers_of(first).network.state == "running")
    assert [peer.blocked for peer in peers_of(first).peers] == [True]
    assert (
        "may not connect: blocked" in checks(autoresearch(first, "node", "doctor", "network", "--json"))["peers"].detail
    )
    again = autoresearch(first, "network", "peers", "add", address_of(second))
    assert (again.returncode, f"autoresearch network peers unblock {peer_id}" in again.stderr) == (6, True), (
        again.stderr
    )
    assert autoresearch(first, "network", "peers", "unblock", peer_id).returncode == 0
    wait_for(lambda: peers_of(second).network.connected == 1)
    assert autoresearch(first, "network", "peers", "block", "nobody").returncode == 6


def test_doctor_says_why_nobody_is_there(start: Start, tmp_path: Path) -> None:
    off = Daemon(tmp_path / "off").start()
    try:
        by_name = checks(autoresearch(off, "node", "doctor", "network", "--json"))
        assert (
            by_name["setting"].fix
            == "autoresearch network join …, or: autoresearch node config set network.enabled true"
        )
    finally:
        off.stop()
    gone = start()
    alone = start(gone)
    wait_for(lambda: peers_of(alone).network.connected == 1)
    well = checks(autoresearch(alone, "node", "doctor", "network", "--json"))
    assert [well[name].result for name in ("process", "beginning", "peers", "clock")] == ["ok"] * 4
    assert "only this machine" in well["listening"].detail
    elsewhere = autoresearch(alone, "node", "doctor", "network", "--json", AUTORESEARCH_NETWORK_ENABLED="false")
    assert checks(elsewhere)["process"].result == "ok", "the daemon that runs was started with another setting"
    gone.stop()
    wait_for(lambda: peers_of(alone).network.connected == 0)
    ill = checks(autoresearch(alone, "node", "doctor", "network", "--json"))
    assert "does not answer" in ill["beginning"].detail
    assert ill["peers"].result == "warning"


def checks(ended: subprocess.CompletedProcess[str]) -> dict[str, Check]:
    return {check.name: check for check in msgspec.json.decode(ended.stdout, type=DoctorAnswer).checks}


def test_a_record_from_the_future_is_brought_once_and_waits(start: Start, tmp_path: Path) -> None:
    first = start()
    second = start(first)
    first.stop()
    with Notebook(first.paths) as notebook:  # its clock is half an hour ahead
        early = notebook.publish_note(Note(topic="insight", text="too soon"), now_ms() + 1_800_000)
    with ThreadPoolExecutor(1) as pool:  # the next exchange may follow before the first has answered that it is up
        brought = pool.submit(wait_for, lambda: any(peer.records_in for peer in peers_of(second).peers))
        first.start()
        brought.result()
    assert early.id not in ids(second)
    # Each asks the other when they meet: it may be under way twice.
    wait_for(lambda: not any(peer.records_in for peer in peers_of(second).peers))
    second_time = exchanged(second)
    wait_for(lambda: exchanged(second) > second_time)
    assert [peer.records_in for peer in peers_of(second).peers] == [0]
    assert early.id not in ids(second)


def exchanged(daemon: Daemon) -> int:
    return peers_of(daemon).network.exchanged_ms
