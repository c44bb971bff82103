"""Runs on a Slurm cluster, by its commands: ``sbatch``, ``squeue``, ``scancel``. Folders lie on a shared file system.

A job's id alone is no name: a controller that lost its state gives ids out again. So a job has the name of its run,
which names one attempt. Jobs are not requeued; a copy that somebody requeues finds the run begun, and ends.
"""

from __future__ import annotations

import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from getpass import getuser
from pathlib import Path
from typing import Literal

from autoresearch.errors import Refused, TimedOut, UsageError
from autoresearch.run.bench import limits_of
from autoresearch.run.executors import DETACHED, MACHINE, EngineJob, Executor
from autoresearch.run.folder import RunRequest, read_request
from autoresearch.settings import ExecutorSection

# Without a controller a command gives up after about ten seconds; the daemon's end must not wait longer.
COMMAND_SECONDS = 12.0
# A small job that asks a machine what it is waits so long for one, and has so long to answer.
WAIT_SECONDS, ANSWER_SECONDS = 45, 60
# The engine's limit lies above the runner's own: data, packages, baseline and questions take time besides the run.
TIMES_LIMIT, SPARE_SECONDS = 8, 1800
# What the runner needs besides the run; files of a sandbox live in memory too.
RUNNER_MIB = 1024
PREFIX = "ar-"
# What the job inherits; `--export=NONE` would ask a login shell for the user's environment.
EXPORTED = ("HOME", "LANG", "PATH", "USER", "AUTORESEARCH_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_WAITS = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_OVER = frozenset(
    {
        "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL",
        "DEADLINE", "REVOKED",
    }
)  # fmt: skip
# What a command's errors speak of when the controller is away, or busy.
_AWAY = ("contact", "connect", "socket", "timed out", "transmit", "transport")


def run_command(words: Sequence[str], stdin: str = "") -> str:
    """What a command of Slurm's prints.

    Raises:
        TimedOut: the controller does not answer.
        Refused: there is no such command, or it says no.
    """
    if shutil.which(words[0]) is None:
        raise Refused(f"{words[0]} is not on this machine", hint="run the daemon on a login node of the cluster")
    seconds = WAIT_SECONDS + ANSWER_SECONDS if words[0] == "srun" else COMMAND_SECONDS
    try:
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, timeout=seconds, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"{words[0]} did not answer within {seconds:.0f} s") from error
    if done.returncode == 0:
        return done.stdout
    sentence = " ".join(done.stderr.split())[:500] or f"{words[0]} ended with {done.returncode}"
    # Only what is submitted can be wrong; a list that can't be had says nothing.
    if words[0] not in ("sbatch", "srun") or any(sign in sentence.lower() for sign in _AWAY):
        raise TimedOut(sentence)
    raise Refused(sentence, hint="autoresearch node config show: executor.options")


class Slurm(Executor):
    """The executor. ``executor.options`` are further words for ``sbatch``. Raises UsageError where these are none."""

    kind, unit = "slurm", "job"

    def __init__(
        self, settings: ExecutorSection, host: str = "", command: Callable[[Sequence[str], str], str] = run_command
    ) -> None:
        super().__init__(settings, host)
        self.command = command
        try:
            self.options = tuple(shlex.split(settings.options))
        except ValueError as error:
            raise UsageError(f"executor.options can't be read: {error}", hint="close its quotes") from error

    def listed(self) -> dict[str, EngineJob]:
        """The jobs, by one ``squeue``. Raises Refused, TimedOut."""
        words = ["squeue", "--noheader", f"--user={getuser()}", "--states=all", "--format=%i|%T|%r|%j"]
        return parse_list(self.command(words, ""))

    def start(self, folder: Path) -> None:
        """Submit the run, unless a job has its name. Raises Refused, TimedOut: then a job may be there or not."""
        if folder.name in self.listed():
            return
        words = ["sbatch", *submission(folder, read_request(folder)), *self.options]
        self.command(words, script(folder))

    def cancel(self, folder: Path) -> None:
        """Ask for the end of the run's job, and of copies that somebody requeued. Raises Refused, TimedOut."""
        self.command(["scancel", f"--user={getuser()}", f"--name={PREFIX}{folder.name}"], "")

    def printed_machine(self) -> str:
        """What a machine of the cluster says in a small job. Raises Refused where none is free soon, TimedOut."""
        words = ["srun", "--quiet", f"--immediate={WAIT_SECONDS}", "--ntasks=1", f"--export={exported()}"]
        return self.command([*words, *self.options, sys.executable, "-P", "-m", "autoresearch.run", MACHINE], "")


def parse_list(printed: str) -> dict[str, EngineJob]:
    """What ``squeue`` lists, by run. Of several jobs of a name one that is not over counts."""
    jobs: dict[str, EngineJob] = {}
    for line in printed.splitlines():
        native, word, rest = (*line.split("|", 2), "", "")[:3]
        reason, _, name = rest.rpartition("|")
        if not name.startswith(PREFIX):
            continue
        run, state = name.removeprefix(PREFIX), state_of(word)
        sentence = word.lower() if reason in ("", "None") else f"{word.lower()}: {reason}"
        if run not in jobs or jobs[run].state == "over":
            jobs[run] = EngineJob(native=native, state=state, sentence=sentence)
    return jobs


def state_of(word: str) -> Literal["queued", "running", "over"]:
    """What a job's state means for its run; a word that is not known means that the job is there."""
    if word in _OVER:
        return "over"
    return "queued" if word in _WAITS else "running"


def submission(folder: Path, request: RunRequest) -> list[str]:
    """The words of ``sbatch`` for a run: its name, and what it may use."""
    conditions, limits = request.conditions, limits_of(request.task)
    minutes = math.ceil((TIMES_LIMIT * limits["seconds"] + SPARE_SECONDS) / 60)
    memory = math.ceil(limits["memory_mib"] + 2 * limits["disk_mib"]) + RUNNER_MIB
    words = [
        "--parsable",
        "--no-requeue",
        f"--job-name={PREFIX}{request.run}",
        f"--comment={request.run}",
        f"--time={minutes}",
        "--signal=B:TERM@60",
        f"--cpus-per-task={conditions.threads}",
        f"--mem={memory}M",
        "--ntasks=1",
        f"--chdir={folder}",
        f"--output={folder}/engine.log",
        f"--export={exported()}",
    ]
    return [*words, "--gpus-per-node=1"] if conditions.device != "cpu" else words


def exported() -> str:
    """The variables that a job inherits."""
    return ",".join(name for name in EXPORTED if name in os.environ)


def script(folder: Path) -> str:
    """The job: the runner takes the place of the shell, so that Slurm's signals reach it."""
    words = shlex.join([sys.executable, "-P", "-m", "autoresearch.run", DETACHED, str(folder)])
    return f"#!/bin/sh\nexec {words} </dev/null\n"
