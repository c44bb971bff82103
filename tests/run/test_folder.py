"""A run as a folder: what travels, what a runner leaves, and what is not believed of it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import Refused, UsageError
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.bench import Ceiling
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.run.folder import (
    CHECKPOINT,
    EVENTS,
    LOG,
    MOST_OUTCOME_BYTES,
    OUTCOME,
    REQUEST,
    Conditions,
    EventFile,
    Fault,
    RunReply,
    RunRequest,
    checkpoint_of,
    last_progress,
    log_of,
    new_run,
    read_outcome,
    read_request,
    run_folder,
    write_outcome,
    write_request,
)
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Work
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.daemon.toy import SLOW_TRAIN, TRAIN, write_toy_task
from tests.walls import best_level


def written(folder: Path, train: str = TRAIN, executor: str = "slurm", **conditions: object) -> tuple[Path, RunRequest]:
    """The folder of a run of a toy task, with its request."""
    task = load_task(write_toy_task(folder / "task", train))
    defaults = {"ceiling": Ceiling.of(Work()), "foreign": best_level() > Level.NONE}
    place = run_folder(folder, new_run("search-1"))
    request = RunRequest(
        run=place.name,
        task=task,
        conditions=Conditions(**{**defaults, **conditions}),
        plan=plan_as_it_stands(task, task.program.decode()),
        executor=executor,
    )
    write_request(place, request)
    return place, request


def ended(folder: Path, **fields: object) -> RunReply:
    return RunReply(**{"run": folder.name, "level": 2, "fault": Fault(sentence="no disk"), **fields})


def test_a_request_comes_back_as_it_was_sent(tmp_path: Path) -> None:
    folder, request = written(tmp_path, foreign=False, threads=3)
    assert read_request(folder) == request
    assert read_request(folder).task.digest == request.task.digest


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.unlink(),
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
        lambda file: file.write_bytes(b"\xc1"),
        lambda file: file.rename(file.with_name("x")) and file.symlink_to(file.with_name("x")),
        lambda file: file.parent.rename(file.parent.with_name("another")),
    ],
    ids=["missing", "half", "no MessagePack", "a link", "another run's"],
)
def test_what_is_no_request_is_refused(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    folder, _ = written(tmp_path)
    spoil(folder / REQUEST)
    with pytest.raises(UsageError):
        read_request(folder if folder.exists() else folder.with_name("another"))


def test_a_run_is_carried_out_once(tmp_path: Path) -> None:
    EventFile(tmp_path).close()
    with pytest.raises(Refused, match="begun before"):
        EventFile(tmp_path)


def test_the_first_outcome_stays(tmp_path: Path) -> None:
    write_outcome(tmp_path, ended(tmp_path))
    write_outcome(tmp_path, ended(tmp_path, fault=Fault(sentence="another")))
    assert read_outcome(tmp_path) == ended(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [OUTCOME]


def test_without_an_outcome_there_is_none(tmp_path: Path) -> None:
    assert read_outcome(tmp_path) is None


def _other(folder: Path) -> bytes:
    return msgspec.msgpack.encode(ended(folder, run="another"))


def _nothing(folder: Path) -> bytes:
    return msgspec.msgpack.encode(ended(folder, fault=None))


def _two(folder: Path) -> bytes:
    return msgspec.msgpack.encode(ended(folder, outcome=RunOutcome(status=RunStatus.OK)))


def _many(folder: Path) -> bytes:
    metrics = {str(number): 1.0 for number in range(65)}
    return msgspec.msgpack.encode(ended(folder, fault=None, outcome=RunOutcome(status="ok", metrics=metrics)))


def _infinite(folder: Path) -> bytes:
    return msgspec.msgpack.encode(ended(folder, fault=None, outcome=RunOutcome(status="ok", value=math.inf)))


def _word(folder: Path) -> bytes:
    return msgspec.msgpack.encode(ended(folder, fault=None, outcome=RunOutcome(status="splendid")))


@pytest.mark.parametrize(
    "content", [_other, _nothing, _two, _many, _infinite, _word, lambda _: b"", lambda _: bytes(MOST_OUTCOME_BYTES)]
)
def test_what_is_no_outcome_of_this_run_is_refused(tmp_path: Path, content: Callable[[Path], bytes]) -> None:
    (tmp_path / OUTCOME).write_bytes(content(tmp_path))
    with pytest.raises(Refused):
        read_outcome(tmp_path)


def test_an_outcome_that_is_too_large_is_not_decoded(tmp_path: Path) -> None:
    long = ended(tmp_path, fault=Fault(sentence="x" * MOST_OUTCOME_BYTES))
    (tmp_path / OUTCOME).write_bytes(msgspec.msgpack.encode(long))
    with pytest.raises(Refused, match="too large"):
        read_outcome(tmp_path)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_plain_files_are_read(tmp_path: Path, kind: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(msgspec.msgpack.encode(ended(tmp_path)))
    for name in (OUTCOME, LOG, CHECKPOINT, EVENTS):
        place = tmp_path / name
        {"link": lambda p: p.symlink_to(secret), "pipe": os.mkfifo, "folder": Path.mkdir}[kind](place)
    with pytest.raises(Refused, match="plain file"):
        read_outcome(tmp_path)
    assert (log_of(tmp_path), checkpoint_of(tmp_path), last_progress(tmp_path)) == (b"", None, None)


def test_a_checkpoint_with_a_second_name_is_none(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    (tmp_path / CHECKPOINT).hardlink_to(tmp_path / "key")
    assert checkpoint_of(tmp_path) is None


@given(st.binary(max_size=200))
def test_no_bytes_in_a_folder_make_a_reader_fail_otherwise(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in (OUTCOME, REQUEST, EVENTS):
            (folder / file).write_bytes(content)
        with pytest.raises(Refused):
            read_outcome(folder)
        with pytest.raises(UsageError):
            read_request(folder)
        last_progress(folder)


def test_progress_is_the_last_whole_line(tmp_path: Path) -> None:
    events = EventFile(tmp_path)
    assert last_progress(tmp_path) is None
    events.stage("preparing_data")
    events.progress(RunProgress(fraction=0.25, step=3, loss=1.5))
    events.close()
    with (tmp_path / EVENTS).open("ab") as file:
        file.write(b'{"event": "progress", "fraction": 0.9')
    assert last_progress(tmp_path) == RunProgress(fraction=0.25, step=3, loss=1.5)


def started(folder: Path, home: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "autoresearch.run", *words, str(folder)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "AUTORESEARCH_HOME": str(home)},
    )


def run_to_its_end(folder: Path, home: Path) -> tuple[int, bytes]:
    process = started(folder, home, "--detached")
    _, words = process.communicate(timeout=250)
    return process.returncode, words


@pytest.mark.slow
def test_the_runner_measures_and_says_where(tmp_path: Path) -> None:
    folder, request = written(tmp_path)
    assert run_to_its_end(folder, tmp_path / "home") == (0, b"")
    reply = read_outcome(folder)
    assert reply is not None
    assert reply.outcome is not None
    assert (reply.outcome.status, reply.outcome.value) == (RunStatus.OK, pytest.approx(0.36 + 0.25))
    assert reply.level == reply.outcome.sandbox == best_level()
    assert reply.outcome.device
    assert reply.outcome.environment["python"]
    assert [json.loads(line)["event"] for line in (folder / EVENTS).open()][:2] == ["begun", "stage"]
    assert sorted(path.name for path in folder.iterdir()) == [EVENTS, LOG, OUTCOME, REQUEST]
    status, words = run_to_its_end(folder, tmp_path / "home")
    assert (status, b"begun before" in words) == (6, True)
    assert read_outcome(folder) == reply
    assert read_request(folder) == request


@pytest.mark.slow
def test_a_weaker_sandbox_than_asked_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    folder, _ = written(tmp_path, least_level=best_level() + 1) if best_level() < Level.BUBBLEWRAP else (None, None)
    if folder is None:
        folder, _ = written(tmp_path, device="cuda:99")
    assert run_to_its_end(folder, tmp_path / "home")[0] == 0
    reply = read_outcome(folder)
    assert reply is not None
    assert reply.fault is not None
    assert reply.fault.cannot_run_here


@pytest.mark.slow
@pytest.mark.parametrize("end", ["standard input ends", "SIGTERM"])
def test_a_runner_that_is_to_stop_leaves_an_outcome(tmp_path: Path, end: str) -> None:
    folder, _ = written(tmp_path, SLOW_TRAIN)
    process = started(folder, tmp_path / "home", *(["--detached"] if end == "SIGTERM" else []))
    while last_progress(folder) is None:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    if end == "SIGTERM":
        process.terminate()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0
    reply = read_outcome(folder)
    assert reply is not None
    assert reply.outcome is not None
    assert (reply.outcome.status, reply.cancelled) == (RunStatus.CANCELLED, True)
