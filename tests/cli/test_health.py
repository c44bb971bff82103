"""What ails a node, each with its real cause: status and doctor say the same of it, with the remedy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.rendering.status import status_lines

from autoresearch.ask.health import conditions, examine, of_peers
from autoresearch.ask.node import Check, Health, PeerView, StatusAnswer
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK
from autoresearch.words import Part, Result
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, Filled
from tests.daemon.daemons import Daemon, wait_for

NOW_MS = START_MS + 1_000_000
HOUR_MS = 3_600_000


def log_files(paths: Paths) -> list[Path]:
    return sorted(paths.data.glob("log.sqlite*"))


def emptied(paths: Paths) -> None:
    for file in log_files(paths):
        file.write_bytes(b"")


def deleted(paths: Paths) -> None:
    for file in log_files(paths):
        file.unlink()


def deleted_and_begun_anew(paths: Paths) -> None:
    deleted(paths)
    Log.open(paths.log, DEFAULT_NETWORK).close()


def without_a_folder(paths: Paths) -> None:
    shutil.rmtree(paths.state)
    paths.state.write_text("a file")


def with_a_setting_that_is_none(paths: Paths) -> None:
    paths.settings.write_text("[work]\nworker = 3\n")


def with_a_device_that_is_not_here(paths: Paths) -> None:
    paths.settings.write_text('[work]\ndevice = "cpu,cuda:77"\n')


def with_open_keys(paths: Paths) -> None:
    (paths.keys / "device.key").chmod(0o644)


def with_a_damaged_log(paths: Paths) -> None:
    deleted(paths)
    paths.log.write_bytes(b"this is no database at all, by far" * 100)


@pytest.mark.parametrize(
    ("ail", "part", "words"),
    [
        (emptied, Part.LOG, "is emptied"),
        (deleted, Part.LOG, "the log lacks all"),
        (deleted_and_begun_anew, Part.LOG, "the log lacks all"),
        (with_a_damaged_log, Part.LOG, "is damaged"),
        (without_a_folder, Part.HOME, "is no folder"),
        (with_a_setting_that_is_none, Part.SETTINGS, "did you mean work.workers?"),
        (with_a_device_that_is_not_here, Part.DEVICE, "there is no cuda:77 on this machine"),
        (with_open_keys, Part.KEYS, "chmod"),
    ],
)
def test_status_and_doctor_fail_with_the_same_condition(
    cli: Cli, filled: Filled, paths: Paths, ail: Callable[[Paths], None], part: Part, words: str
) -> None:
    assert cli("status").exit_code == 0
    ail(paths)
    status = cli("status", "--json")
    assert status.exit_code == 1, status.output
    [condition] = json.loads(status.stdout)["conditions"]
    assert (condition["name"], condition["result"]) == (part, Result.FAILED)
    assert words in f"{condition['detail']} → {condition['fix']}"
    result = cli("status")
    assert (result.exit_code, f"!\t{part}: {condition['detail']}" in result.stdout) == (1, True), result.output
    doctor = cli("node", "doctor", "--json")
    assert doctor.exit_code == 1
    assert condition in json.loads(doctor.stdout)["checks"]


def test_a_home_that_can_be_no_folder_has_one_condition(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place, words in ((file, "is no folder"), (file / "below", "is no folder"), (Path("/proc/x"), "keeps no files")):
        monkeypatch.setenv("AUTORESEARCH_HOME", str(place))
        status = cli("status", "--json")
        assert status.exit_code == 1
        [condition] = json.loads(status.stdout)["conditions"]
        assert (condition["name"], words in condition["detail"]) == (Part.HOME, True)


@pytest.mark.parametrize(
    ("now_ms", "result", "words"),
    [
        (DEFAULT_NETWORK.start_ms - 1, Result.FAILED, "before the network began"),
        (NOW_MS - 30 * DAY_MS, Result.WARNING, "ahead of the clock"),
        (NOW_MS, Result.OK, "plausible"),
    ],
)
def test_a_clock_that_is_wrong_is_seen_by_the_records(
    filled: Filled, paths: Paths, now_ms: int, result: Result, words: str
) -> None:
    [clock] = [each for each in examine(paths, {}, now_ms) if each.name == Part.CLOCK]
    assert (clock.result, words in clock.detail) == (result, True), clock


def test_a_clock_that_is_wrong_is_seen_by_the_peers() -> None:
    def peers(*ahead_ms: int, other: bool = False) -> list[PeerView]:
        return [
            PeerView(peer="p", connected=True, agent="a", clock_ahead_ms=ms, other_network=other) for ms in ahead_ms
        ]

    assert of_peers([]) == of_peers(peers(0, 20_000, 10**12)) == []
    [check] = of_peers(peers(-2 * HOUR_MS, -2 * HOUR_MS, 0))
    assert check.name == Part.CLOCK
    assert check.sentence.startswith("this clock is 2 h ahead of the peers'")
    [check] = of_peers(peers(0, other=True))
    assert (check.name, check.result) == (Part.PEERS, Result.WARNING)
    assert "another network" in check.detail
    assert of_peers([*peers(0, other=True), *peers(0)]) == []


def test_status_and_doctor_are_made_of_one_set() -> None:
    from autoresearch_cli.acts.checks import merged

    results = [
        Check(name=Part.DISK, result=Result.FAILED, detail="full", fix="free some"),
        Check(name=Part.CLOCK, result=Result.WARNING, detail="ahead"),
        Check(name=Part.LOG, result=Result.OK, detail="7 records"),
    ]
    running = StatusAnswer(state="idle", why="not_asked", reason="", conditions=conditions(results))
    # From outside another thing seems wrong, and the clock right: what the running node says is what counts.
    outside = [
        Check(name=Part.DISK, result=Result.OK, detail="free"),
        Check(name=Part.DEVICE, result=Result.FAILED, detail="gone"),
        results[2],
    ]
    checks = merged(outside, running)
    assert conditions(checks) == running.conditions == results[:2]
    assert results[2] in checks
    assert merged(outside, None) == outside
    lines = [text for label, text in status_lines(running, 0) if label == "!"]
    assert lines == [f"{condition.name}: {condition.sentence}" for condition in conditions(checks)]


def test_doctor_reads_every_signature_and_names_the_first_record_that_is_wrong(
    cli: Cli, filled: Filled, paths: Paths
) -> None:
    whole = cli("node", "doctor", "log")
    assert whole.exit_code == 0, whole.output
    assert "each with its hash and its author's signature" in whole.stdout
    with Log.open(paths.log, DEFAULT_NETWORK) as log:
        wrong = log.records.resolve(filled.best)
        before = sum(key < (log.records.get(wrong).time, wrong) for key in log.records.iter_keys())
        log.reader.connection.execute("UPDATE record SET signature = zeroblob(64) WHERE id = ?", (wrong,))
    forged = cli("node", "doctor", "log")
    assert forged.exit_code == 1
    assert f"record {before + 1} in the order of time: the signature is not that of its author" in forged.stdout


def test_doctor_reads_every_blob(cli: Cli, filled: Filled, paths: Paths) -> None:
    blob = next(file for file in sorted(paths.blobs.rglob("*")) if file.is_file() and len(file.name) > 60)
    blob.write_bytes(blob.read_bytes() + b"\n# changed")
    changed = cli("node", "doctor", "log")
    assert (changed.exit_code, "was changed on the disk" in changed.stdout) == (1, True), changed.output


@pytest.mark.slow
def test_a_running_node_says_the_same_everywhere(home: Path, cli: Cli) -> None:
    daemon = Daemon(home, {"AUTORESEARCH_API_PORT": "0"}).start()
    try:
        assert (daemon.status().conditions, cli("status").exit_code) == ([], 0)
        with_a_device_that_is_not_here(daemon.paths)
        [condition] = daemon.status().conditions
        assert (condition.name, condition.detail) == (Part.DEVICE, "there is no cuda:77 on this machine")
        ready = daemon.get("/readyz")
        assert ready.status_code == 503
        assert msgspec.json.decode(ready.content, type=Health).conditions == [condition]
        result = cli("status")
        assert (result.exit_code, f"!\tdevice: {condition.sentence}" in result.stdout) == (1, True), result.output
        doctor = cli("node", "doctor", "--json")
        assert doctor.exit_code == 1
        assert msgspec.to_builtins(condition) in json.loads(doctor.stdout)["checks"]
        wait_for(lambda: f"device: {condition.sentence}" in cli("node", "events").stdout)
        daemon.paths.settings.unlink()
        assert daemon.get("/readyz").status_code == 200
        wait_for(lambda: "device: mended" in cli("node", "events").stdout)
    finally:
        daemon.stop()


# Within it a home on a disk of its own, which is filled; or one that is mounted read only.
ASK = """
import os, shutil, sys
from pathlib import Path
from typer.testing import CliRunner
from autoresearch_cli.main import app
if sys.argv[1] == "fill":
    shutil.copytree(sys.argv[2], os.environ["AUTORESEARCH_HOME"], dirs_exist_ok=True)
    with open(Path(os.environ["AUTORESEARCH_HOME"]) / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
hide = ["network", "hide", "--words", "spam"]
for words in (["status"], ["note", "add", "@", "it is full"], ["node", "config", "set", "work.workers", "2"], hide):
    print(CliRunner().invoke(app, words, prog_name="autoresearch").output)
from autoresearch_daemon.main import main
sys.argv = ["autoresearchd"]
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes a small disk, or one that is read only")
@pytest.mark.parametrize(
    ("how", "sentence", "ending"),
    [
        ("fill", "disk: the disk is nearly full", ""),
        ("read only", "home: {home}/config can't be written: {home}/config is closed to you or read only", "can't be"),
    ],
)
def test_a_full_disk_and_a_read_only_home_are_sentences(
    filled: Filled, home: Path, how: str, sentence: str, ending: str
) -> None:
    copy = shutil.copytree(home, home.with_name("copy"))
    small, closed = ["--size", str(8 << 20), "--tmpfs", str(home)], ["--ro-bind", str(home), str(home)]
    disk = small if how == "fill" else closed
    ended = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *disk, sys.executable, "-c", ASK, how, str(copy)],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "AUTORESEARCH_HOME": str(home),
        "PYTHONPATH": ":".join(sys.path), "AUTORESEARCH_API_PORT": "0"},
    )  # fmt: skip
    output = ended.stdout + ended.stderr
    assert "Traceback" not in output
    assert "bug in autoresearch" not in output
    assert "disk I/O error" not in output, output
    assert output.count(sentence.format(home=home)) == 1, output
    assert ended.returncode != 0
    assert ending in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes small disks")
def test_a_daemon_that_has_no_room_for_a_word_is_told_of(home: Path) -> None:
    home.mkdir()
    up = f'head -c 4M /dev/zero >"{home}/fill"; exec "{sys.executable}" -m autoresearch_cli up'
    ended = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", str(4 << 20), "--tmpfs", str(home), "sh", "-c", up],
        capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "AUTORESEARCH_HOME": str(home),
        "PYTHONPATH": ":".join(sys.path), "AUTORESEARCH_API_PORT": "0"},
    )  # fmt: skip
    assert ended.returncode != 0
    assert f"did not start: the disk is nearly full: 0 B free at {home}/cache → free some" in ended.stderr
