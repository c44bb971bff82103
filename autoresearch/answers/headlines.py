"""Fills answers with what a run changed, in a line, and why it was tried."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from autoresearch.answers.summaries import summary
from autoresearch.answers.teller import SEARCH, Teller, Told, described, teller_of
from autoresearch.api import (
    BestAnswer,
    LineageAnswer,
    LogAnswer,
    ProgramView,
    RecordView,
    RunView,
    ShowAnswer,
    TopAnswer,
)
from autoresearch.log import BlobStore, Log
from autoresearch.records import Record, Run, parse_id

A = TypeVar("A", ShowAnswer, BestAnswer, TopAnswer, LineageAnswer, LogAnswer)
# In a longer list of records runs have their titles.
RECORDS_TOLD = 200
_BEST_PROGRAMS = ("confirmed", "provisional", "reported", "demoted")


def with_headlines(log: Log, blobs: BlobStore, answer: A, *, me: bytes | None = None) -> A:
    """An answer whose runs have headlines; ``me`` is the device that asks.

    In a list of records the line of a run of the search begins with it.
    """
    with log.reader.snapshot():
        return _Headlines(log, blobs, me).fill(answer)


class _Headlines:
    """Tells runs of any task."""

    def __init__(self, log: Log, blobs: BlobStore, me: bytes | None) -> None:
        self._log, self._blobs, self._me = log, blobs, me
        self._tellers: dict[bytes, Teller] = {}

    def fill(self, answer: A) -> A:
        replace = msgspec.structs.replace
        match answer:
            case ShowAnswer(run=RunView() as run):
                told = self._told(self._log.records.get(parse_id(run.id)))
                shown = replace(run, headline=told.headline)
                return replace(answer, run=shown, because=told.because, changes=told.changes)
            case BestAnswer():
                programs = {name: self._program(getattr(answer, name)) for name in _BEST_PROGRAMS}
                task = replace(answer.task, best=self._program(answer.task.best))
                return replace(answer, task=task, run=self._run(answer.run), **programs)
            case TopAnswer():
                task = replace(answer.task, best=self._program(answer.task.best))
                return replace(answer, task=task, programs=[self._program(one) for one in answer.programs])
            case LineageAnswer():
                return replace(answer, steps=[replace(step, run=self._run(step.run)) for step in answer.steps])
            case LogAnswer() if len(answer.records) <= RECORDS_TOLD:
                return replace(answer, records=[self._record(one) for one in answer.records])
        return answer

    def _run(self, view: RunView | None) -> RunView | None:
        if view is None:
            return None
        told = self._told(self._log.records.get(parse_id(view.id)))
        return msgspec.structs.replace(view, headline=told.headline)

    def _program(self, view: ProgramView | None) -> ProgramView | None:
        if view is None:
            return None
        record = self._log.records.get(parse_id(view.id))
        told, body = self._told(record), record.body
        by = body.proposer.name if isinstance(body, Run) and body.proposer else ""
        return msgspec.structs.replace(view, headline=told.headline, proposer=by)

    def _record(self, view: RecordView) -> RecordView:
        if view.kind != "run":
            return view
        record = self._log.records.get(parse_id(view.id))
        body = record.body
        if not isinstance(body, Run) or body.proposer is None or body.proposer.name != SEARCH:
            return view
        named = msgspec.structs.replace(body, title=self._told(record).headline)
        return msgspec.structs.replace(view, summary=summary(named))

    def _told(self, record: Record) -> Told:
        body = record.body
        assert isinstance(body, Run)
        if body.task not in self._tellers:
            self._tellers[body.task] = teller_of(self._log, self._blobs, body.task, me=self._me)
        above = self._log.records.find(body.parent) if body.parent else None
        parent = described(above.body, above.time) if above and isinstance(above.body, Run) else None
        return self._tellers[body.task].tell(described(body, record.time), parent)
