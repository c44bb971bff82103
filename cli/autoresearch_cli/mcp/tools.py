"""The tools for coding agents: each asks the daemon over its API and answers with small plain values.

What only reads is answered from the log on this machine where no daemon runs, as by the command line.

What others wrote stands apart from what this node computed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from typing_extensions import TypedDict

from autoresearch.ask import publishing, questions, requests
from autoresearch.ask.acts.edited_program import Idea
from autoresearch.ask.acts.suggesting import suggest as suggestions
from autoresearch.ask.asking import ask_answer
from autoresearch.ask.client import Client
from autoresearch.ask.node import Event
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import SUGGESTIONS_MOST
from autoresearch.errors import AutoresearchError, CannotRunHere, DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.propose.mind.history import gather
from autoresearch.propose.mind.writing import HISTORY_BYTES, history_text
from autoresearch.propose.program.edits import EditBlock, EditError, apply_blocks
from autoresearch.record.encoding import short_id
from autoresearch.task.folder_state import BASELINE, kept_baselines
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.text import MAXIMIZE, QUESTION_CHARACTERS, brief, one_line, sanitised
from autoresearch_cli import home, ideas, outcomes
from autoresearch_cli.acts.edits import place_edit
from autoresearch_cli.commands.work import stopped
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.mcp.facts import (
    Facts,
    change_facts,
    claim_facts,
    effect_facts,
    experiment_facts,
    filled,
    listed_facts,
    note_facts,
    outcome_facts,
    page_facts,
    program_facts,
    queued,
    quoted,
    record_facts,
    row_facts,
    run_facts,
    status_facts,
    task_facts,
)


def _bounded(seconds: float) -> float:
    return max(0.0, min(seconds, WAIT_SECONDS_MAX))


ROWS_MAX = 50
CLAIM_MINUTES = 1440
# Clients give up after a minute.
WAIT_SECONDS = 45.0
WAIT_SECONDS_MAX = 3600.0
SEEDS_MAX = 100
RUNS_NAMED = 6


class Edit(TypedDict):
    """Text that stands exactly once in the parent's program, and what to put in its place."""

    search: str
    replace: str


class _Base(NamedTuple):
    """A run with the id of its parent, and its program."""

    id: str
    parent: str
    source: str


class Tools:
    """The tools of one server. ``client`` finds the daemon, ``folder`` the task folder that it works on."""

    def __init__(self, client: Callable[[], Client], folder: Callable[[], Path]) -> None:
        self._client = client
        self._folder = folder

    def status(self) -> Facts:
        """What this node does now, what waits for a worker, what others try, how far the network is with the task."""
        try:
            status = self._client().ask(Node.status)
        except DaemonNotRunning as down:
            status = msgspec.structs.replace(stopped(), reason=f"{down}, reading works → {down.hint}")
        facts = status_facts(status) | {"folder": str(self._folder())}
        try:
            digest = self._about("") or (status.task.digest if status.task else None)
        except NotFound as error:
            return facts | {"task": {"runs": 0, "next": [{"tool": "run", "arguments": {}}], "state": str(error)}}
        if digest is None:
            return facts
        about = self._ask(questions.top, requests.TopOf(task=digest, limit=1)).task
        claims = self._ask(questions.claims, requests.OfTask(task=digest)).claims
        return facts | {"task": task_facts(about)} | filled(trying=[claim_facts(each) for each in claims])

    def best(self, task: str = "") -> Facts:
        """The program to build on: the best confirmed one, else the best known. `show_run` has its source."""
        answer = self._ask(questions.best, requests.OfTask(task=self._about(task)))
        leading = {"run": run_facts(answer.run)} if answer.run else {}
        programs = {"confirmed": answer.confirmed, "provisional": answer.provisional, "reported": answer.reported}
        return {
            "task": task_facts(answer.task),
            **leading,
            **{name: program_facts(program) for name, program in programs.items() if program},
        }

    def search_runs(
        self,
        where: str = "",
        order: Literal["best", "newest"] = "newest",
        limit: int = 20,
        before: str = "",
        page: int = 1,
        task: str = "",
    ) -> Facts:
        """Runs of a task: the leaderboard (`order` best), or the newest. `where` selects by the value and by settings.

        Such as `value<1.1,LR>=0.01`. `next_before` is what to give as `before` for the next page of the newest; with
        `where` it is `next_page`, to be given as `page`.
        """
        if limit < 1:
            raise UsageError(f"limit is {limit}", hint=f"1 to {ROWS_MAX}")
        if before and (order == "best" or where):
            raise UsageError("before is for the newest without where", hint="leave it out; with where give page")
        if page < 1:
            raise UsageError(f"page is {page}", hint="1 and more")
        if page != 1 and not where:
            raise UsageError("page goes with where", hint="leave page out; of the newest give before")
        limit = min(limit, ROWS_MAX)
        if where:
            return self._found(where, order, limit, page, self._about(task))
        if order == "best":
            top = self._ask(questions.top, requests.TopOf(task=self._about(task), limit=limit))
            return listed_facts([program_facts(each) for each in top.programs], limit=limit + 1)
        question = requests.RecordsOf(task=self._about(task), kind="run", limit=limit, before=before or None)
        records = self._ask(questions.records, question).records
        return listed_facts([record_facts(each) for each in records], limit=limit)

    def _found(self, where: str, order: str, limit: int, page: int, task: str | None) -> Facts:
        """The runs that meet a condition."""
        question = requests.RunsOf(task=task, where=where, size=limit, page=page)
        answer = self._ask(questions.runs, question)
        if order == "best":
            sort = "-value" if answer.task.direction == MAXIMIZE else "value"
            answer = self._ask(questions.runs, msgspec.structs.replace(question, sort=sort))
        go_on = {"next_page": page + 1} if page < answer.pages else {}
        return {"rows": [row_facts(row) for row in answer.runs], **go_on}

    def show_run(
        self, run: str, part: Literal["facts", "source", "log", "lineage"] = "facts", offset: int = 0
    ) -> Facts:
        """One run by its id, `@` (best) or `@mine`: its facts, a page of its source, or a page of what it printed.

        `lineage` are the steps from the baseline to it: which change brought what.
        """
        reference = self._reference(run)
        if part == "lineage":
            return {
                "steps": [run_facts(each.run) for each in self._ask(questions.lineage, reference).steps if each.run]
            }
        if part != "facts":
            operation = questions.source if part == "source" else questions.training_log
            return {"run": run, **page_facts(self._ask(operation, reference), max(offset, 0))}
        answer = self._ask(questions.run, reference)
        assert answer.run is not None  # the operation answers with runs only
        facts = run_facts(answer.run)
        if answer.verification is not None:
            facts["verification"] = {"state": answer.verification.state, "reason": answer.verification.reason}
        return facts

    def diff(self, old: str, new: str) -> Facts:
        """What changed from one run's program to another's, and their numbers. `@~1` is the parent of the best run."""
        task = self._about("") if "@" in (old[:1], new[:1]) else None
        diff = self._ask(questions.diff, requests.Difference(old=old, new=new, task=task))
        return change_facts(diff)

    def effects(self, suggest: int = 0, settings: dict[str, float | str | bool] | None = None, task: str = "") -> Facts:
        """What each setting did, over all pairs of a run and its parent: the surest help first.

        `median` is the change of the value when it is raised or the +part is added, `low` and `high` its 95 % interval.
        `dead_ends` were tried often enough without a gain, or failed each time: `run` refuses a change that goes there
        once more, unless its hypothesis names one of the runs and says why it differs.
        With `suggest` also so many changes that the search would try, with the value that it expects; with `settings`
        what it expects of the best program with these. Both are about the task folder and run nothing.
        """
        answer = self._ask(questions.effects, requests.OfTask(task=self._about(task)))
        ends = msgspec.to_builtins(answer.dead_ends[:ROWS_MAX])
        rows = {"rows": [effect_facts(each) for each in answer.effects[:ROWS_MAX]]}
        extra = {"dead_ends": [filled(**end) for end in ends], "notes": answer.notes}
        if suggest < 1 and not settings:
            return rows | quoted(**extra)
        folder, count = self._task(), max(1, min(suggest, SUGGESTIONS_MOST))
        with open_desk() as desk:
            made = suggestions(desk.log, desk.blobs, folder, count, settings or {}, me=desk.me, now_ms=home.now_ms())
        return rows | quoted(suggestions=msgspec.to_builtins(made.suggestions), **extra)

    def history(self) -> str:
        """What is known of the task on some pages: programs, effects, failures, notes, what is tried now."""
        task = self._task()
        with open_desk() as desk:
            history = gather(desk.log, desk.blobs, task, now_ms=home.now_ms(), me=desk.me)
        return history_text(history, task, HISTORY_BYTES)

    def program(self, run: str) -> str:
        """The program of a run by its id, `@` (best) or `@mine`."""
        return sanitised(self._ask(questions.source, self._reference(run)), lines=True)

    def run(  # noqa: PLR0913, PLR0917 - arguments of a tool have names
        self,
        hypothesis: str = "",
        edits: list[Edit] | None = None,
        program: str = "",
        parent: str = "@",
        seeds: int = 1,
        replicate: int = 0,
        wait_seconds: float = WAIT_SECONDS,
        vary: dict[str, list[float | str | bool]] | None = None,
        anyway: bool = False,
    ) -> Facts:
        """Run a changed program here: claimed, trained in the sandbox, measured, compared with its parent, published.

        Give `edits` of the parent's program (each search text must stand there exactly once), or the whole `program`.
        `hypothesis` says why it should help; everybody reads it. `outcome` in the answer says keep or discard, and
        `next` what to call then. Without edits the parent itself is measured again: `parent` "@" with `replicate` 1,
        the number of the first seed, which was not run yet. Before the first run that is the baseline.
        `vary` names settings with several values each: every combination is run with `seeds` seeds, and each value is
        compared with the first, which may be the parent's own. Ask again with the same where `to_go` is left.
        A run that takes longer than `wait_seconds` goes on: `result` waits for its name, or for several names.
        `wait_seconds` 0 only hands it over. `anyway` runs what goes into a dead end again.
        """
        client, folder = self._client(), self._folder()
        task = self._task()
        is_changed = bool(edits or program)
        if (is_changed or vary) and not hypothesis.strip():
            raise UsageError("hypothesis is empty", hint="say in a sentence why the change should help")
        if not 1 <= seeds <= SEEDS_MAX:
            raise UsageError(f"seeds is {seeds}", hint=f"a whole number from 1 to {SEEDS_MAX}")
        if is_changed:
            parent, program = self._program(client, task, edits, program, parent)
        else:
            base = self._source(client, task, parent)
            parent, program = (base.id if vary else base.parent), base.source
        idea = Idea(task, program, parent, hypothesis, replicate)
        if vary:
            begun = ideas.vary(idea, vary, seeds, client)
            latest = ideas.wait_for_runs(idea, vary, seeds, client, _bounded(wait_seconds))
            again = {"hypothesis": hypothesis, "vary": vary, "seeds": seeds, "parent": parent or "@"}
            return experiment_facts(msgspec.structs.replace(latest, proposed=begun.proposed), again)
        for number in range(seeds):
            if previous := ideas.repetition(replace(idea, replicate=replicate + number)):
                raise Refused(
                    f"this program was run with this seed before: {short_id(previous[0])}",
                    hint=f"show_run has it; replicate {previous[2]} measures it with another seed",
                )
        if is_changed and not anyway and (end := ideas.dead_end(idea)):
            about = f" of {end.region.setting}" if end.region else ""
            raise Refused(
                f"this goes into a dead end{about} again: runs {', '.join(map(short_id, end.runs[:RUNS_NAMED]))}",
                hint="effects tells it under dead_ends; name one of the runs in hypothesis and say why yours differs, "
                "or give anyway: true",
            )
        names = client.ask(Node.propose, ideas.request(idea, seeds=seeds, once=True)).proposed
        stays = place_edit(folder, program, hypothesis) if is_changed and outcomes.is_own(folder) else ""
        return self.result(names if seeds > 1 else names[0], wait_seconds) | filled(folder=stays)

    def result(self, name: str | list[str], wait_seconds: float = WAIT_SECONDS, first: bool = False) -> Facts:
        """What came of a `run` that took longer than its `wait_seconds`, by the name that it answered with.

        Also of one of an earlier session, or of `autoresearch run propose`. Several names wait for all of them, with
        `first` until one has ended: `ended` has these, `left` goes on.
        """
        names = list(dict.fromkeys([name] if isinstance(name, str) else name))
        if not names:
            raise UsageError("name is an empty list", hint="status lists what waits")
        end, left, ended = time.monotonic() + _bounded(wait_seconds), list(names), list[Facts]()
        while left and not (first and ended):
            try:
                event = self._client().ended(*left, seconds=max(0.0, end - time.monotonic()))
            except CannotRunHere:
                if not ended:
                    raise
                break
            if event is None:
                break
            left.remove(str(event.data["assignment"]))
            try:
                ended.append({"name": event.data["assignment"], **self._ended(event)})
            except AutoresearchError as error:
                if isinstance(name, str):
                    raise
                ended.append({"name": event.data["assignment"], "lost": one_line(str(error))})
        following = (
            [{"tool": "result", "arguments": {"name": left if isinstance(name, list) else left[0]}}] if left else []
        )
        if isinstance(name, list):
            return {"ended": ended, **filled(left=left, next=following)}
        return ended[0] if ended else {"state": "queued", "name": name, "next": following}

    def _ended(self, event: Event) -> Facts:
        """What came of a run, by the event that ended it."""
        record = event.data.get("id")
        if not isinstance(record, str) or not record:
            raise AutoresearchError(f"the run did not take place: {event.data.get('reason') or event.text}")
        answer, lines = outcomes.ended_run(record, str(event.data["folder"] or self._folder()))
        assert answer.outcome is not None
        assert answer.run is not None
        return {"outcome": outcome_facts(answer.outcome), **run_facts(answer.run), **filled(folder=lines)}

    def progress(self) -> tuple[float, str]:
        """How far the run is that somebody proposed here and that a worker does now, from 0 to 1, and words for it."""
        for worker in self._client().ask(Node.status).workers:
            if worker.proposal and worker.run is not None:
                loss = "" if worker.run.loss is None else f", loss {brief(worker.run.loss)}"
                return worker.run.fraction, f"{worker.proposal}: {worker.run.fraction:.0%}{loss}"
        return 0.0, "it waits for a worker"

    def cancel(self, name: str) -> Facts:
        """Take a `run` out of the queue by its name, or stop it where it has begun."""
        left = self._client().ask(Node.drop_proposal, requests.DropRequest(name=name)).queue
        return {"state": "cancelled", "name": name, "queue": [queued(each) for each in left]}

    def notes(self, query: str = "", limit: int = 20, task: str = "") -> Facts:
        """What participants found out or suppose about a task: the newest, or the best fit to the words of `query`.

        Read these before you propose: `better` and `worse` count what became of the runs that cite a note.
        A `query` may be a question: what is the best value, what failed and why, how much noise, what helped, what has
        nobody tried, which values of a setting. Then `facts` and `tried` answer it from the numbers of all runs.
        """
        limit, about = max(1, min(limit, ROWS_MAX)), self._about(task)
        notes = self._ask(questions.notes, requests.NotesOf(task=about, query=query, limit=limit)).notes
        rows = {"rows": [note_facts(each) for each in notes]}
        if not re.search(r"\w", query):
            return rows
        with open_desk(about) as desk:
            words, now_ms = query[:QUESTION_CHARACTERS], home.now_ms()
            answer = ask_answer(desk.log, desk.blobs, desk.task(), words, now_ms=now_ms, me=desk.me)
        facts = [{"sentence": fact.sentence, "runs": list(map(short, fact.ids))} for fact in answer.facts]
        return rows | quoted(facts=facts, tried=msgspec.to_builtins(answer.parameters))

    def note(
        self, text: str, evidence: list[str] | None = None, topic: Literal["insight", "hypothesis"] = "insight"
    ) -> Facts:
        """Publish a note for everybody: an insight with the runs that show it, or a hypothesis to try.

        `evidence` are ids of runs. One or two sentences; it cannot be changed, only withdrawn.
        """
        task = "" if evidence else self._task().digest.hex()
        request = requests.NoteRequest(text=text, evidence=evidence or [], topic=topic, task=task)
        return note_facts(self._client().ask(publishing.note, request).note)

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
        if not 1 <= minutes <= CLAIM_MINUTES:
            raise UsageError(f"minutes is {minutes}", hint=f"1 to {CLAIM_MINUTES}; a claim can be renewed")
        client, folder = self._client(), self._folder()
        parent, program = self._program(client, self._task(), edits, program, parent)
        request = requests.ClaimRequest(
            task=str(folder), program=program, parent=parent, hypothesis=hypothesis, minutes=minutes
        )
        return claim_facts(client.ask(Node.claim, request).claim)

    def _ask(self, question: Callable[..., home.A], request: msgspec.Struct) -> home.A:
        return home.ask(question, request, self._client)

    def _task(self) -> Task:
        """The task of the folder, whatever is wrong with the program there. Raises UsageError where it is no task's."""
        folder = self._folder()
        try:
            return load_task(folder)
        except UsageError:
            if (baseline := next(kept_baselines(folder), None)) is None:
                raise
            return load_task(folder, program=baseline)

    def _about(self, task: str) -> str | None:
        """The task that a question is about: the folder's where none is named; None for a folder that is no task's.

        Raises NotFound before its first run.
        """
        if task:
            return task
        try:
            own = self._task()
        except UsageError:
            return None
        digest = own.digest.hex()
        try:
            self._ask(questions.top, requests.TopOf(task=digest, limit=1))
        except NotFound as error:
            # What to do stands in the sentence: a caller sees no hint of what is not there.
            sentence = f"no run on the task {own.name} is in this log yet: run without edits runs its baseline"
            raise NotFound(sentence, hint="the tool run") from error
        return digest

    def _reference(self, run: str) -> requests.OneRecord:
        """A run that a caller names; `@` and such are about the folder's task."""
        return requests.OneRecord(id=run, task=self._about("") if run.startswith(("@", "#")) else None)

    def _program(
        self, client: Client, task: Task, edits: list[Edit] | None, program: str, parent: str
    ) -> tuple[str, str]:
        """The parent run's id, and the program that edits of its program make, or the whole one that was given."""
        if bool(edits) == bool(program):
            raise UsageError("both edits and a whole program, or neither", hint="give either edits or a whole program")
        base = self._source(client, task, parent)
        if edits:
            try:
                program = apply_blocks(base.source, [EditBlock(edit["search"], edit["replace"]) for edit in edits])
            except EditError as error:
                run = short(base.id) or BASELINE
                raise UsageError(
                    f"the program of {run}: {error}", hint=f"show_run {run}, part source, has it"
                ) from error
        if source_digest(program) == source_digest(base.source) and base.id:
            raise UsageError(
                "this changes nothing but comments or spacing",
                hint="without edits and program, run measures the parent itself with another replicate",
            )
        return base.id, program

    def _source(self, client: Client, task: Task, parent: str) -> _Base:
        """A run with its program; before the first run the baseline and no parent."""
        reference = requests.OneRecord(id=parent, task=task.digest.hex())
        try:
            run = client.ask(questions.run, reference).run
            assert run is not None, "the operation answers with runs only"
            return _Base(run.id, run.run.parent or "", str(client.ask(questions.source, reference)))
        except NotFound:
            if parent not in ("@", BASELINE):
                raise
            return _Base("", "", task.baseline.decode())
