"""A researcher as a Python object: read the best run, change its program, have the daemon run it, read what came of it.

It speaks to the daemon of this machine over its local API, as the command line does. What it has in hand lies in the
task's folder: a script that was ended goes on where it was.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from autoresearch import errors
from autoresearch.ask import publishing, questions, requests
from autoresearch.ask.client import Client
from autoresearch.ask.node import StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.participants import AttestAnswer, AttestRequest
from autoresearch.beneath import is_file_beneath
from autoresearch.log.standing.answers import RunNumbers, leading_gain, numbers_of
from autoresearch.paths import Paths, typed_path
from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.known_names import named_in
from autoresearch.propose.program.ranges import Value
from autoresearch.run.sandbox.cards import card_of, cards, named_devices
from autoresearch.settings import Work, load_settings
from autoresearch.task import folder_state
from autoresearch.task.folders import copy_task, is_taken, write_program
from autoresearch.task.loading import MANIFEST, default_task, load_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest, split_program
from autoresearch.text import value

# Names of learning rates, the first that a program has; what to change where nobody says.
LEARNING_RATES = ("LR", "LEARNING_RATE", "learning_rate", "lr")
USUAL_FACTOR = 1.1
# Where a repository that is no task itself has one: this program's own does.
TASK_FOLDERS = ("", "experiments")
RESTART_SECONDS = 60.0
POLL_SECONDS = 0.05

P = ParamSpec("P")
R = TypeVar("R")


class BestProgram(RunNumbers, frozen=True, kw_only=True):
    """The program to build on with its numbers: the leading run's, or the baseline where there is no run yet.

    ``parameters`` are the numbers that its source names, ``run`` the run's id (empty: no run).
    """

    run: str
    state: str
    parameters: dict[str, Value]
    source: str

    def __getitem__(self, name: str) -> Value:
        """The value of a setting, by its name in the program or in words: ``best["learning_rate"]`` is that of LR."""
        return self.parameters[self.setting(name)]

    def setting(self, name: str) -> str:
        """What the program calls a setting. Raises UsageError where it has none of that name, or several."""
        if name in self.parameters:
            return name
        names = named_in(name, self.parameters)
        if set(names) & set(LEARNING_RATES):
            names = [rate for rate in LEARNING_RATES if rate in names][:1]
        if len(names) == 1:
            return names[0]
        has = ", ".join((names or list(self.parameters))[:12]) or "no named number"
        sentence = f"{name!r} can mean several settings" if names else f"the program has no setting {name!r}"
        raise errors.UsageError(sentence, hint=f"it has {has}")


class Hypothesis(msgspec.Struct, frozen=True, kw_only=True):
    """What to change in the program of ``best``, and why it should help."""

    best: BestProgram
    changes: dict[str, Value]
    reason: str


class RunResult(RunNumbers, frozen=True, kw_only=True):
    """A run that ended, with its numbers.

    ``is_better``: its gain makes the metric better, the verified or else the reported. One run is little evidence.
    """

    run: str
    status: str
    state: str
    reason: str
    parent: str | None
    is_better: bool


class ResearchAgent:
    """The loop of a researcher, step by step. Each method raises an AutoresearchError that says what to do.

    ``task`` is a task folder. Left out, it is the configured task or the one that ships, in a folder of the agent's
    own. ``gpu_id`` has the daemon train on that card too; a machine without cards trains on the processor. ``home`` is
    what AUTORESEARCH_HOME would be.
    """

    def __init__(self, task: str | Path = "", *, gpu_id: int | None = None, home: str | Path | None = None) -> None:
        self._environment = {**os.environ, **({"AUTORESEARCH_HOME": str(home)} if home else {})}
        self._paths = Paths.from_environment(self._environment)
        self._card = f"cuda:{gpu_id}" if gpu_id is not None and cards() else ""
        if self._card:
            card_of(self._card)
        self._folder = typed_path(task).absolute() if str(task) else None
        self._client = Client(self._paths.socket)
        _ = self._task  # a folder that is no task is told at once

    @property
    def folder(self) -> Path:
        """The task's folder. Its program is the one that the next run takes."""
        return self._task.folder

    @property
    def _task(self) -> Task:
        if self._folder is None:
            configured = self._settings.task
            task = load_task(typed_path(configured).absolute()) if configured else default_task()
            self._folder = self._paths.state / "research" / f"{task.name}-{task.digest.hex()[:12]}"
            if not is_taken(self._folder):
                copy_task(task, self._folder)
        return load_task(self._folder)

    def clone_repository(self, url: str = "", folder: str | Path = "") -> Path:
        """Clone a repository, and research on its task: the folder that holds it. Without ``url``: the task at hand.

        A repository without a ``task.toml`` becomes a task: the daemon runs its program in the sandbox to find its
        metric. ``folder`` is where it goes; left out, a folder of its name here. A clone that is there already stays.

        Raises:
            Refused: the folder is something else.
            NotFound: there is no repository at the address.
        """
        if not url:
            return self.folder
        from autoresearch.ask.registry.git_source import clone, origin_of  # git is needed here alone

        name = url.rstrip("/").rpartition("/")[2].removesuffix(".git")
        place = typed_path(folder or name).absolute()
        if not is_taken(place):
            clone(url, place)
        elif origin_of(place) != url:
            raise errors.Refused(f"{place} is there, and no clone of {url}", hint="name another folder for the clone")
        manifests = (Path(inner, MANIFEST) for inner in TASK_FOLDERS)
        task_folder = next((place / name.parent for name in manifests if is_file_beneath(place, name)), None)
        if task_folder is None:
            self.connect()
            task_folder = Path(self._client.ask(Node.new_task, requests.NewTaskRequest(folder=str(place))).folder)
        self._folder = task_folder
        return task_folder

    def connect(self) -> StatusAnswer:
        """What the daemon does. Raises DaemonNotRunning when none runs."""
        if not self._paths.socket.exists():
            raise errors.not_running()
        status = self._client.ask(Node.status)
        if self._card and self._card not in (devices := named_devices(self._settings.device)):
            chosen = ",".join(sorted({*devices, self._card} - {"cpu"}))
            self._client.ask(Node.set_setting, requests.SettingRequest(name="work.device", value=chosen))
        return status

    def connect_to_ensue(self, network: str = "") -> StatusAnswer:
        """Have the daemon join a network, and wait until it begins again in it; one that it is in already stays.

        ``network`` is an invite, a manifest's file, the address of a node, or the name of one of this home's networks.
        Left out, it is the network that the node is in.
        """
        before = self.connect()
        if not network:
            return before
        try:
            is_file = typed_path(network).is_file()
        except errors.UsageError:  # an invite is longer than any path
            is_file = False
        where = str(typed_path(network).absolute()) if is_file else network
        if not self._client.ask(Node.join_network, requests.JoinRequest(where=where)).restarts:
            return before
        deadline = time.monotonic() + RESTART_SECONDS
        while time.monotonic() < deadline:
            with suppress(errors.DaemonNotRunning, errors.TimedOut):
                status = self._client.ask(Node.status)
                if status.started_ms != before.started_ms:
                    self._paths = Paths.from_environment(self._environment)
                    return status
            time.sleep(POLL_SECONDS)
        raise errors.TimedOut("the daemon does not begin again in the network", hint="autoresearch node doctor")

    def read_best_result(self) -> BestProgram:
        """The program to build on: the best confirmed run's, else the best one known."""
        view, task = None, self._task
        with suppress(errors.NotFound):  # nobody ran this task yet
            view = self._client.ask(questions.best, requests.OfTask(task=task.digest.hex())).run
        source = self._client.ask(questions.source, requests.OneRecord(id=view.id)) if view else task.baseline.decode()
        return BestProgram(
            run=view.id if view else "",
            state=view.standing.state if view else "baseline",
            **(msgspec.structs.asdict(numbers_of(view.standing)) if view else {}),
            parameters={name: constant.value for name, constant in constants(source).items()},
            source=source,
        )

    def propose_hypothesis(
        self, best: BestProgram | None = None, changes: Mapping[str, Value] | None = None, reason: str = ""
    ) -> Hypothesis:
        """A change of a program's named numbers. Without ``changes`` its learning rate becomes a tenth larger.

        Raises:
            UsageError: the program has no such number, or no learning rate.
        """
        best = best or self.read_best_result()
        if changes:  # as a person would write them: 0.9 times 1.1 is 0.99
            changes = {
                best.setting(name): float(f"{new:.12g}") if isinstance(new, float) else new
                for name, new in changes.items()
            }
        else:
            changes = _larger_rate(best)
        steps = (f"{name} {best.parameters.get(name)} → {new}" for name, new in changes.items())
        return Hypothesis(best=best, changes=changes, reason=reason or ", ".join(steps))

    def modify_train_script(self, hypothesis: Hypothesis | Mapping[str, Value], source: str = "") -> str:
        """Write the changed program into the task's folder, where :meth:`run_experiment` finds it; returns its text.

        ``hypothesis`` may be a mapping of settings of the best program to their new values. ``source`` is another
        program to take instead. A program there that somebody edited by hand is put aside, in ``.autoresearch/kept``.

        Raises:
            UsageError: a number can't be set there.
            Refused: the task pins no baseline, so that an edit would be another task.
        """
        hypothesis = hypothesis if isinstance(hypothesis, Hypothesis) else self.propose_hypothesis(changes=hypothesis)
        changed = source or set_constants(hypothesis.best.source, hypothesis.changes)
        task = self._task
        folder, now = task.folder, task.program.decode()
        if not task.is_pinned:
            sentence = "task.toml pins no baseline, so each edit is another task"
            raise errors.Refused(sentence, hint=f"autoresearch task pin {shlex.quote(str(folder))}")
        folder_state.keep_baseline(folder, task.baseline)
        own = {
            folder_state.remembered_edit(folder)[0],
            source_digest(task.baseline.decode()).hex(),
            source_digest(changed).hex(),
        }
        if source_digest(now).hex() not in own:
            stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
            for name, content in split_program(now).items():
                folder_state.keep_edit(folder, name, content.encode(), stamp)
        write_program(folder, changed)
        folder_state.remember_start(folder, hypothesis.best.run)
        folder_state.remember_edit(folder, changed, hypothesis.reason)
        return changed

    def run_experiment(self, replicate: int = 0) -> RunResult:
        """Hand the program in the task's folder to the daemon and wait until it ran, however it ends.

        The daemon signs and announces the run as soon as it ended. ``replicate`` 1 and on are other seeds.

        Raises:
            UsageError: nothing was changed yet.
            Refused: a run of the program with this seed has ended; the sentence names it.
        """
        task = self._task
        edit, hypothesis = folder_state.remembered_edit(task.folder)
        if not edit and task.program == task.baseline:
            raise errors.UsageError("there is no changed program to run", hint="call modify_train_script first")
        self.connect()
        event = self._client.run(
            requests.ProposeRequest(
                task=str(task.folder),
                program=task.program.decode(),
                parent=self._start(task),
                hypothesis=hypothesis,
                replicate=replicate,
                once=True,
            )
        )
        run = event.data.get("id")
        if not isinstance(run, str) or not run:
            raise errors.AutoresearchError(f"the run did not take place: {event.data.get('reason') or event.text}")
        return self._read(run)

    def publish_results(self, results: RunResult, hypothesis: Hypothesis | Mapping[str, Value] | str = "") -> RunResult:
        """The run as the log has it now. With a hypothesis, publish as a note what the run shows of it, once.

        The run itself is published when it ended.
        """
        result = self._read(results.run)
        if hypothesis:
            about = requests.OfTask(task=self._task.digest.hex())
            text = f"{_in_words(hypothesis)}: {_in_words(result)}"
            notes = self._client.ask(
                questions.notes, requests.NotesOf(task=about.task, topic="insight", limit=200)
            ).notes
            if not any(note.text == text and result.run in note.evidence for note in notes):
                self._client.ask(publishing.note, requests.NoteRequest(text=text, evidence=[result.run]))
        return result

    def verify_identity(self, address: str = "") -> AttestAnswer:
        """How this participant stands with the network's attestors; with a mail ``address`` they write to it first.

        Without one a person at a terminal is asked for it, where attestors wait for one; an empty line gives none.
        Each mail holds a code: ``autoresearch node id confirm CODE``.
        """
        stands = self._client.ask(Node.attestation)
        if not address and stands.attestors and not stands.attested and sys.stdin.isatty():
            address = input("Your mail address, to which the attestors write (empty: none): ").strip()
        if address:
            return self._client.ask(Node.attest, AttestRequest(address=address))
        return stands

    @property
    def _settings(self) -> Work:
        return load_settings(self._paths.settings, self._environment)[0].work

    def _start(self, task: Task) -> str:
        """The run that the folder's program began as, as long as it is one on this task and here; else empty."""
        start = folder_state.started_from(task.folder)
        if start in ("", folder_state.BASELINE):
            return start
        try:
            view = self._client.ask(questions.run, requests.OneRecord(id=start)).run
        except errors.NotFound:
            view = None  # the folder comes from another machine or network
        return start if view is not None and view.run.task == task.digest.hex() else ""

    def _read(self, name: str) -> RunResult:
        view = self._client.ask(questions.run, requests.OneRecord(id=name)).run
        assert view is not None  # the operation answers with runs only
        run, gain = view.run, leading_gain(view.standing).value
        return RunResult(
            **msgspec.structs.asdict(numbers_of(view.standing)),
            run=view.id,
            status=run.status,
            state=view.standing.state,
            reason=run.reason,
            parent=run.parent,
            is_better=gain is not None and gain > 0,
        )


def _in_thread(
    method: Callable[Concatenate[ResearchAgent, P], R],
) -> Callable[Concatenate[AsyncResearchAgent, P], Coroutine[Any, Any, R]]:
    async def awaited(self: AsyncResearchAgent, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.agent, *args, **kwargs)

    update_wrapper(awaited, method)
    return awaited


class AsyncResearchAgent:
    """The same, for a program with an event loop: each method waits in a thread. ``agent`` is the other one.

    The daemon ends a run also when nobody waits for it any more.
    """

    def __init__(self, task: str | Path = "", *, gpu_id: int | None = None, home: str | Path | None = None) -> None:
        self.agent = ResearchAgent(task, gpu_id=gpu_id, home=home)

    clone_repository = _in_thread(ResearchAgent.clone_repository)
    connect = _in_thread(ResearchAgent.connect)
    connect_to_ensue = _in_thread(ResearchAgent.connect_to_ensue)
    read_best_result = _in_thread(ResearchAgent.read_best_result)
    propose_hypothesis = _in_thread(ResearchAgent.propose_hypothesis)
    modify_train_script = _in_thread(ResearchAgent.modify_train_script)
    run_experiment = _in_thread(ResearchAgent.run_experiment)
    publish_results = _in_thread(ResearchAgent.publish_results)
    verify_identity = _in_thread(ResearchAgent.verify_identity)


def _in_words(content: Hypothesis | RunResult | Mapping[str, Value] | str) -> str:
    """A hypothesis, or what a run shows of it, as a note says it."""
    match content:
        case str():
            return content
        case Hypothesis():
            return content.reason
        case RunResult():
            gain = content.gain if content.gain is not None else content.gain_reported
            if gain is None:
                return content.status if content.reported is None else value(content.reported)
            return f"{'better' if gain > 0 else 'not better'} than its parent, by {value(gain)}"
    return ", ".join(f"{name} = {new}" for name, new in content.items())


def _larger_rate(best: BestProgram) -> dict[str, Value]:
    for name in LEARNING_RATES:
        value = best.parameters.get(name)
        if isinstance(value, float):
            return {name: float(f"{value * USUAL_FACTOR:.4g}")}
    raise errors.UsageError(
        "the program has no number that is called a learning rate",
        hint=f"say what to change; it has {', '.join(list(best.parameters)[:12]) or 'no named number'}",
    )
