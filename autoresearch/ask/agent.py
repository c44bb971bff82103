"""A researcher as a Python object: read the best run, change its program, have the daemon run it, read what came of it.

It speaks to the daemon of this machine over its local API, as the command line does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from autoresearch.ask import questions
from autoresearch.ask.client import Client
from autoresearch.ask.node import Event, StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.participants import AttestAnswer
from autoresearch.ask.requests import OfTask, OneRecord, ProposeRequest
from autoresearch.errors import AutoresearchError, NotFound, UsageError, not_running
from autoresearch.log.standing.answers import RunNumbers, RunView, leading_gain, numbers_of
from autoresearch.paths import Paths, typed_path
from autoresearch.propose.program.edits import constants, set_constants
from autoresearch.propose.program.ranges import Value
from autoresearch.settings import load_settings
from autoresearch.task.loading import load_task, shipped_task
from autoresearch.task.model import Task

# Names of learning rates, the first that a program has; what to change where nobody says.
LEARNING_RATES = ("LR", "LEARNING_RATE", "learning_rate", "lr")
USUAL_FACTOR = 1.1


class Best(RunNumbers, frozen=True, kw_only=True):
    """The program to build on with its numbers: the leading run's, or the baseline where there is no run yet.

    ``parameters`` are the numbers that its source names, ``run`` the run's id (empty: no run).
    """

    run: str
    state: str
    parameters: dict[str, Value]
    source: str


class Hypothesis(msgspec.Struct, frozen=True, kw_only=True):
    """What to change in the program of ``best``, and why it should help."""

    best: Best
    changes: dict[str, Value]
    reason: str


class Result(RunNumbers, frozen=True, kw_only=True):
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

    ``task`` is a task folder (left out: the configured task, or the one that ships), ``home`` what AUTORESEARCH_HOME
    would be.
    """

    def __init__(self, task: str | Path = "", *, home: str | Path | None = None) -> None:
        environment = {**os.environ, **({"AUTORESEARCH_HOME": str(home)} if home else {})}
        self._paths = Paths.from_environment(environment)
        settings, _ = load_settings(self._paths.settings, environment)
        folder = str(task) or settings.work.task
        self._task: Task = load_task(typed_path(folder).absolute()) if folder else shipped_task()
        self._client = Client(self._paths.socket)
        self._script: tuple[str, Hypothesis] | None = None

    def connect(self) -> StatusAnswer:
        """What the daemon does. Raises DaemonNotRunning when none runs."""
        if not self._paths.socket.exists():
            raise not_running()
        return self._client.ask(Node.status)

    def read_best_result(self) -> Best:
        """The program to build on: the best confirmed run's, else the best one known."""
        view = self._leading()
        source = self._client.ask(questions.source, OneRecord(id=view.id)) if view else self._task.program.decode()
        return Best(
            run=view.id if view else "",
            state=view.standing.state if view else "baseline",
            **(msgspec.structs.asdict(numbers_of(view.standing)) if view else {}),
            parameters={name: constant.value for name, constant in constants(source).items()},
            source=source,
        )

    def propose_hypothesis(
        self, best: Best | None = None, changes: Mapping[str, Value] | None = None, reason: str = ""
    ) -> Hypothesis:
        """A change of a program's named numbers. Without ``changes`` its learning rate becomes a tenth larger.

        Raises:
            UsageError: the program has no such number, or no learning rate.
        """
        best = best or self.read_best_result()
        changes = dict(changes or _larger_rate(best))
        said = ", ".join(f"{name} {best.parameters.get(name)} -> {new}" for name, new in changes.items())
        return Hypothesis(best=best, changes=changes, reason=reason or said)

    def modify_train_script(self, hypothesis: Hypothesis, source: str = "") -> str:
        """The changed program, which :meth:`run_experiment` runs next. ``source`` is another program to take instead.

        Raises:
            UsageError: a number can't be set there.
        """
        changed = source or set_constants(hypothesis.best.source, hypothesis.changes)
        self._script = (changed, hypothesis)
        return changed

    def run_experiment(self) -> Result:
        """Hand the changed program to the daemon and wait until it ran. However the program ends, this returns it.

        Raises:
            UsageError: nothing was changed yet.
        """
        if self._script is None:
            raise UsageError("there is no changed program to run", hint="call modify_train_script first")
        program, hypothesis = self._script
        asked = ProposeRequest(
            task=str(self._task.folder), program=program, parent=hypothesis.best.run, hypothesis=hypothesis.reason
        )
        return self._result(self._client.run(asked))

    def publish_results(self, result: Result) -> Result:
        """The run as the log has it now. The daemon signed and announced it when it ended, so this only reads again."""
        return self._read(result.run)

    def verify_identity(self) -> AttestAnswer:
        """How this participant stands with the network's attestors; ``autoresearch node id attest`` asks them."""
        return self._client.ask(Node.attestation)

    def _leading(self) -> RunView | None:
        try:
            return self._client.ask(questions.best, OfTask(task=self._task.digest.hex())).run
        except NotFound:  # nobody ran this task yet
            return None

    def _result(self, event: Event) -> Result:
        run = event.data.get("id")
        if not isinstance(run, str) or not run:
            raise AutoresearchError(f"the run did not take place: {event.data.get('reason') or event.text}")
        return self._read(run)

    def _read(self, name: str) -> Result:
        view = self._run(name)
        run, gain = view.run, leading_gain(view.standing).value
        return Result(
            **msgspec.structs.asdict(numbers_of(view.standing)),
            run=view.id,
            status=run.status,
            state=view.standing.state,
            reason=run.reason,
            parent=run.parent,
            is_better=gain is not None and gain > 0,
        )

    def _run(self, run: str) -> RunView:
        found = self._client.ask(questions.run, OneRecord(id=run)).run
        assert found is not None  # the operation answers with runs only
        return found


class AsyncResearchAgent:
    """The same, for a program with an event loop: each method waits in a thread."""

    def __init__(self, task: str | Path = "", *, home: str | Path | None = None) -> None:
        self._agent = ResearchAgent(task, home=home)

    async def connect(self) -> StatusAnswer:
        """See :meth:`ResearchAgent.connect`."""
        return await asyncio.to_thread(self._agent.connect)

    async def read_best_result(self) -> Best:
        """See :meth:`ResearchAgent.read_best_result`."""
        return await asyncio.to_thread(self._agent.read_best_result)

    async def propose_hypothesis(
        self, best: Best | None = None, changes: Mapping[str, Value] | None = None, reason: str = ""
    ) -> Hypothesis:
        """See :meth:`ResearchAgent.propose_hypothesis`."""
        return await asyncio.to_thread(self._agent.propose_hypothesis, best, changes, reason)

    async def modify_train_script(self, hypothesis: Hypothesis, source: str = "") -> str:
        """See :meth:`ResearchAgent.modify_train_script`."""
        return await asyncio.to_thread(self._agent.modify_train_script, hypothesis, source)

    async def run_experiment(self) -> Result:
        """See :meth:`ResearchAgent.run_experiment`. The daemon ends the run also when nobody waits any more."""
        return await asyncio.to_thread(self._agent.run_experiment)

    async def publish_results(self, result: Result) -> Result:
        """See :meth:`ResearchAgent.publish_results`."""
        return await asyncio.to_thread(self._agent.publish_results, result)

    async def verify_identity(self) -> AttestAnswer:
        """See :meth:`ResearchAgent.verify_identity`."""
        return await asyncio.to_thread(self._agent.verify_identity)


def _larger_rate(best: Best) -> dict[str, Value]:
    for name in LEARNING_RATES:
        value = best.parameters.get(name)
        if isinstance(value, float):
            return {name: float(f"{value * USUAL_FACTOR:.4g}")}
    raise UsageError(
        "the program has no number that is called a learning rate",
        hint=f"say what to change; it has {', '.join(list(best.parameters)[:12]) or 'no named number'}",
    )
