"""The tools themselves: each asks the daemon over its API and answers with small plain values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from typing_extensions import TypedDict

from autoresearch.api import (
    ClaimRequest,
    Difference,
    Event,
    NoteRequest,
    NotesOf,
    OfTask,
    OneRecord,
    ProposeRequest,
    Records,
    RunView,
    TopOf,
    operations,
)
from autoresearch.client import Client
from autoresearch.errors import AutoresearchError, NotFound, UsageError
from autoresearch.proposers import Block, apply_blocks
from autoresearch.tasks import load_task
from autoresearch_cli.mcp import answers
from autoresearch_cli.mcp.answers import Facts

ROWS_MAX = 50
# Clients give up after a minute.
WAIT_SECONDS = 45.0
WAIT_SECONDS_MAX = 3600.0


class Edit(TypedDict):
    """Text that stands exactly once in the parent's program, and what to put in its place."""

    search: str
    replace: str


class Tools:
    """The tools of one server. ``client`` finds the daemon, ``folder`` the task folder that it works on."""

    def __init__(self, client: Callable[[], Client], folder: Callable[[], Path]) -> None:
        self._client = client
        self._folder = folder

    def status(self) -> Facts:
        """What this node does now, what waits for a worker, and how far the network is with the task."""
        return answers.status(self._client().ask(operations.STATUS))

    def best(self, task: str = "") -> Facts:
        """The program to build on: the best confirmed one, else the best known. `show_run` has its source."""
        found = self._client().ask(operations.BEST, OfTask(task=task or None))
        leading = {"run": answers.run(found.run)} if found.run else {}
        programs = {"confirmed": found.confirmed, "provisional": found.provisional, "reported": found.reported}
        return {
            "task": answers.task(found.task),
            **leading,
            **{name: answers.program(program) for name, program in programs.items() if program},
        }

    def search_runs(
        self,
        where: str = "",
        order: Literal["best", "newest"] = "newest",
        limit: int = 20,
        before: str = "",
        task: str = "",
    ) -> Facts:
        """Runs of a task: the leaderboard (`order` best), or the newest. `where` selects, such as `value<1.1`.

        `next_before` is what to give as `before` for the next page of the newest.
        """
        limit = max(1, min(limit, ROWS_MAX))
        if order == "best" and not where:
            top = self._client().ask(operations.TOP, TopOf(task=task or None, limit=limit))
            return answers.listed([answers.program(each) for each in top.programs], limit=limit + 1)
        asked = Records(task=task or None, kind="run", limit=limit, before=before or None, where=where)
        found = self._client().ask(operations.RECORDS, asked).records
        return answers.listed([answers.record(each) for each in found], limit=limit)

    def show_run(self, run: str, part: Literal["facts", "source", "log"] = "facts", offset: int = 0) -> Facts:
        """One run by its id, `@` (best) or `@mine`: its facts, a page of its source, or a page of what it printed."""
        client, asked = self._client(), OneRecord(id=run)
        if part != "facts":
            operation = operations.SOURCE if part == "source" else operations.TRAINING_LOG
            return {"run": run, **answers.page(client.ask(operation, asked), max(offset, 0))}
        shown = client.ask(operations.RUN, asked)
        assert shown.run is not None  # the operation answers with runs only
        facts = answers.run(shown.run, self._parent(client, shown.run))
        if shown.verification is not None:
            facts["verification"] = {"state": shown.verification.state, "reason": shown.verification.reason}
        return facts

    def diff(self, old: str, new: str) -> Facts:
        """What changed from one run's program to another's, and their values. `@~1` is the parent of the best run."""
        found = self._client().ask(operations.DIFF, Difference(old=old, new=new))
        values = {"old_value": found.old_value, "new_value": found.new_value}
        return answers.change(found.old, found.new, values, found.change, found.diff)

    def lineage(self, run: str = "@") -> Facts:
        """The steps from the baseline to a run: which change brought what."""
        steps = self._client().ask(operations.LINEAGE, OneRecord(id=run)).steps
        return {"steps": [answers.run(step.run) for step in steps if step.run]}

    def run(
        self,
        hypothesis: str,
        edits: list[Edit] | None = None,
        program: str = "",
        parent: str = "@",
        seeds: int = 1,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Facts:
        """Run a changed program here: claimed, trained in the sandbox, measured, compared with its parent, published.

        Give `edits` of the parent's program (each search text must stand there exactly once), or the whole `program`.
        `hypothesis` says why it should help; everybody reads it. If the run takes longer than `wait_seconds`, this
        answers with its name in the queue, and later `show_run` with `@mine` or `search_runs` has the result.
        """
        client, folder = self._client(), self._folder()
        parent, program = self._program(client, folder, edits, program, parent)
        asked = ProposeRequest(task=str(folder), program=program, parent=parent, hypothesis=hypothesis, seeds=seeds)
        waiting = _Waiting(client, asked)
        ended = waiting.wait(max(0.0, min(wait_seconds, WAIT_SECONDS_MAX)))
        if ended is None:
            return {"state": "queued", "name": waiting.name, "next": "ask status, then show_run with @mine"}
        record = ended.data.get("id")
        if not isinstance(record, str) or not record:
            raise AutoresearchError(f"the run did not take place: {ended.data.get('reason') or ended.text}")
        return self.show_run(record)

    def notes(self, query: str = "", limit: int = 20, task: str = "") -> Facts:
        """What participants found out or suppose about a task: the newest, or the best fit to the words of `query`.

        Read these before you propose: `better` and `worse` count what became of the runs that cite a note.
        """
        limit = max(1, min(limit, ROWS_MAX))
        found = self._client().ask(operations.NOTES, NotesOf(task=task or None, query=query, limit=limit)).notes
        return {"rows": [answers.note(each) for each in found]}

    def note(
        self, text: str, evidence: list[str] | None = None, topic: Literal["insight", "hypothesis"] = "insight"
    ) -> Facts:
        """Publish a note for everybody: an insight with the runs that show it, or a hypothesis to try.

        `evidence` are ids of runs. One or two sentences; it cannot be changed, only withdrawn.
        """
        task = "" if evidence else load_task(self._folder()).digest.hex()
        asked = NoteRequest(text=text, evidence=evidence or [], topic=topic, task=task)
        return answers.note(self._client().ask(operations.NOTE, asked).note)

    def claim(
        self,
        hypothesis: str,
        edits: list[Edit] | None = None,
        program: str = "",
        parent: str = "@",
        minutes: int = 30,
    ) -> Facts:
        """Announce the program that you are about to `run`, so that no other node tries it for so many minutes.

        Give the same `edits` or `program` as to `run`. Refused when another node tries it or has run it.
        """
        client, folder = self._client(), self._folder()
        parent, program = self._program(client, folder, edits, program, parent)
        asked = ClaimRequest(
            task=str(folder), program=program, parent=parent, hypothesis=hypothesis, minutes=max(1, min(minutes, 1440))
        )
        return answers.claim(client.ask(operations.CLAIM, asked).claim)

    def _program(
        self, client: Client, folder: Path, edits: list[Edit] | None, program: str, parent: str
    ) -> tuple[str, str]:
        """The parent run's id, and the program that edits of its program make, or the whole one that was given."""
        if bool(edits) == bool(program):
            raise UsageError("give either edits or a whole program")
        parent, source = self._source(client, folder, parent)
        if edits:
            program = apply_blocks(source, [Block(edit["search"], edit["replace"]) for edit in edits])
        return parent, program

    def _source(self, client: Client, folder: Path, parent: str) -> tuple[str, str]:
        """A run and its program; before the first run the baseline and no parent."""
        task = load_task(folder)
        asked = OneRecord(id=parent, task=task.digest.hex())
        try:
            return client.ask(operations.RUN, asked).record.id, client.ask(operations.SOURCE, asked)
        except NotFound:
            if parent != "@":
                raise
            return "", task.baseline.decode()

    def _parent(self, client: Client, run: RunView) -> RunView | None:
        if not run.parent:
            return None
        try:
            return client.ask(operations.RUN, OneRecord(id=run.parent)).run
        except NotFound:
            return None  # it has not come here yet


class _Waiting:
    """A program that was proposed. It runs also when nobody waits any more."""

    def __init__(self, client: Client, asked: ProposeRequest) -> None:
        self.name = ""
        self._ended: Event | None = None
        self._error: AutoresearchError | None = None
        self._known = threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(client, asked), daemon=True)
        self._thread.start()
        self._known.wait()
        if self._error is not None:
            raise self._error

    def _follow(self, client: Client, asked: ProposeRequest) -> None:
        try:
            self._ended = client.run(asked, proposed=self._proposed)
        except AutoresearchError as error:
            self._error = error
        finally:
            self._known.set()

    def _proposed(self, name: str) -> None:
        self.name = name
        self._known.set()

    def wait(self, seconds: float) -> Event | None:
        """The event that ended it; None when it takes longer."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return self._ended
