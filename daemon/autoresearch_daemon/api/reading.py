"""The operations that read the log, as aiohttp calls them: decode strictly, ask the log or the node, encode.

What they answer is built in `autoresearch.ask`, as for the command line.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from autoresearch.ask import operations
from autoresearch.ask.ideas import ClaimsAnswer, NotesAnswer
from autoresearch.ask.lookup import FoundTask, find_task
from autoresearch.ask.node import Health
from autoresearch.ask.notes import notes_answer
from autoresearch.ask.operations import Operation, Text
from autoresearch.ask.people.claims import claims_answer
from autoresearch.ask.people.evidence import credit_answer, evidence_answer, evidence_list_answer
from autoresearch.ask.people.participants import EvidenceAnswer, EvidenceListAnswer
from autoresearch.ask.records import LogAnswer, ShowAnswer, StarAnswer
from autoresearch.ask.registry.components import ReleaseAnswer, SearchAnswer
from autoresearch.ask.registry.releases import release_answer, search_answer
from autoresearch.ask.requests import (
    Difference,
    EvidenceOf,
    NotesOf,
    Nothing,
    OfTask,
    OfTaskAndParticipant,
    OneEvidence,
    OneRecord,
    ProgressOf,
    Records,
    ReleasesOf,
    RunsOf,
    StarRequest,
    TasksOf,
    TopOf,
)
from autoresearch.ask.runs.answers import (
    BestAnswer,
    DiffAnswer,
    EffectsAnswer,
    LineageAnswer,
    PathAnswer,
    ProgressAnswer,
    RunContextAnswer,
    RunnersAnswer,
    RunsAnswer,
    TasksAnswer,
    TopAnswer,
)
from autoresearch.ask.runs.boards import best_answer, resolve_reference, tasks_answer, top_answer
from autoresearch.ask.runs.diffs import diff_answer, effects_answer, lineage_answer, run_log, run_source
from autoresearch.ask.runs.headlines import with_headlines
from autoresearch.ask.show import log_answer, parse_conditions, show_answer
from autoresearch.errors import NotFound, UsageError
from autoresearch.log.blobs import MissingBlob
from autoresearch.log.local import Choice, choose
from autoresearch.log.standing.answers import Answer, CreditAnswer
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import KINDS
from autoresearch.words import with_article
from autoresearch_daemon.api.port import NODE, THREADS, NodePort, Readers, answer, readers
from autoresearch_daemon.events import now_ms

KEY_BYTES = 32
A = TypeVar("A", ShowAnswer, BestAnswer, TopAnswer, LineageAnswer, LogAnswer)
Reading = Callable[[Readers, Any], Answer | Text]


def _best(readers: Readers, asked: OfTask) -> BestAnswer:
    task, archived = _task(readers, asked), readers.archived()
    return _told(readers, best_answer(readers.log, task, author=readers.author, archived=archived))


def _top(readers: Readers, asked: TopOf) -> TopAnswer:
    task, archived = _task(readers, asked), readers.archived()
    return _told(readers, top_answer(readers.log, task, limit=asked.limit, author=readers.author, archived=archived))


def _runs(readers: Readers, asked: RunsOf) -> RunsAnswer:
    from autoresearch.ask.runs.rows import runs_answer

    task, starred = _task(readers, asked), readers.starred()
    return runs_answer(readers.log, readers.blobs, task, asked, me=readers.author, starred=starred)


def _progress(readers: Readers, asked: ProgressOf) -> ProgressAnswer:
    from autoresearch.ask.runs.progress import progress_answer

    return progress_answer(readers.log, readers.blobs, _task(readers, asked), asked, me=readers.author)


def _run_context(readers: Readers, asked: OneRecord) -> RunContextAnswer:
    from autoresearch.ask.runs.rows import run_context_answer

    run = _id(readers, asked, asked.id)
    return run_context_answer(readers.log, readers.blobs, run, me=readers.author, starred=readers.starred())


def _path(readers: Readers, asked: OneRecord) -> PathAnswer:
    from autoresearch.ask.runs.rows import path_answer

    run = _id(readers, asked, asked.id)
    return path_answer(readers.log, readers.blobs, run, me=readers.author, starred=readers.starred())


def _runners(readers: Readers, asked: OfTask) -> RunnersAnswer:
    from autoresearch.ask.runs.rows import runners_answer

    return runners_answer(readers.log, readers.blobs, _task(readers, asked))


def _star(readers: Readers, asked: StarRequest) -> StarAnswer:
    record = readers.log.records.get(_id(readers, OfTask(), asked.id))
    changed = choose(readers.choices, Choice.STARRED, record.id, wanted=asked.starred)
    return StarAnswer(id=format_id(record.id), starred=asked.starred, changed=changed)


def _tasks(readers: Readers, asked: TasksOf) -> TasksAnswer:
    return tasks_answer(readers.log, archived=readers.archived(), all_tasks=asked.archived)


def _credit(readers: Readers, asked: OfTaskAndParticipant) -> CreditAnswer:
    task = (
        find_task(readers.log, asked.task, author=readers.author, archived=readers.archived()) if asked.task else None
    )
    return credit_answer(readers.log, asked.participant, author=readers.author, task=task)


def _evidence_list(readers: Readers, asked: EvidenceOf) -> EvidenceListAnswer:
    return evidence_list_answer(readers.log, asked.participant, kind=asked.kind, author=readers.author)


def _evidence(readers: Readers, asked: OneEvidence) -> EvidenceAnswer:
    return evidence_answer(readers.log, readers.blobs, _id(readers, asked, asked.id), asked.kind)


def _records(readers: Readers, asked: Records) -> LogAnswer:
    if asked.kind is not None and asked.kind not in KINDS:
        raise UsageError(f"there is no kind of record “{asked.kind}”", hint=f"kinds: {', '.join(KINDS)}")
    found = log_answer(
        readers.log,
        kind=asked.kind,
        author=_author(readers, asked.author),
        task=_task(readers, asked) if asked.task else None,
        limit=asked.limit,
        before=readers.log.records.resolve(asked.before) if asked.before else None,
        since_ms=asked.since_ms,
        where=parse_conditions([asked.where] if asked.where else []),
        starred=readers.starred(),
        only_starred=asked.starred,
    )
    return _told(readers, found)


def _record(readers: Readers, asked: OneRecord) -> ShowAnswer:
    return _told(readers, show_answer(readers.log, _id(readers, asked, asked.id), starred=readers.starred()))


def _run(readers: Readers, asked: OneRecord) -> ShowAnswer:
    shown = _record(readers, asked)
    if shown.run is None:
        raise UsageError(
            f"{shown.record.id} is {with_article(shown.record.kind)}, not a run.", hint="GET /v1/records/{id}"
        )
    return shown


def _source(readers: Readers, asked: OneRecord) -> Text:
    return Text(run_source(readers.log, readers.blobs, _id(readers, asked, asked.id)))


def _training_log(readers: Readers, asked: OneRecord) -> Text:
    return Text(run_log(readers.log, readers.blobs, _id(readers, asked, asked.id)))


def _lineage(readers: Readers, asked: OneRecord) -> LineageAnswer:
    return _told(readers, lineage_answer(readers.log, _id(readers, asked, asked.id)))


def _diff(readers: Readers, asked: Difference) -> DiffAnswer:
    return diff_answer(readers.log, readers.blobs, _id(readers, asked, asked.old), _id(readers, asked, asked.new))


def _effects(readers: Readers, asked: OfTask) -> EffectsAnswer:
    return effects_answer(readers.log, _task(readers, asked), me=readers.author)


def _notes(readers: Readers, asked: NotesOf) -> NotesAnswer:
    return notes_answer(readers.log, _task(readers, asked), query=asked.query, limit=asked.limit, me=readers.author)


def _claims(readers: Readers, asked: OfTask) -> ClaimsAnswer:
    return claims_answer(readers.log, _task(readers, asked), now_ms=now_ms(), me=readers.author)


def _releases(readers: Readers, asked: ReleasesOf) -> SearchAnswer:
    return search_answer(
        readers.log,
        query=asked.query,
        kind=asked.type,
        limit=asked.limit,
        yanked=asked.yanked,
        me=readers.author,
    )


def _release(readers: Readers, asked: OneRecord) -> ReleaseAnswer:
    return release_answer(readers.log, _id(readers, asked, asked.id), me=readers.author)


def _told(readers: Readers, answer: A) -> A:
    """An answer whose runs have headlines."""
    return with_headlines(readers.log, readers.blobs, answer, me=readers.author)


def _task(readers: Readers, asked: OfTask) -> FoundTask:
    return find_task(readers.log, asked.task, author=readers.author, archived=readers.archived())


def _id(readers: Readers, asked: OfTask, reference: str) -> bytes:
    task = _task(readers, asked) if asked.task else None
    return resolve_reference(readers.log, reference, task=task, author=readers.author, archived=readers.archived())


def _author(readers: Readers, text: str | None) -> bytes | None:
    if text is None or text == "me":
        return readers.author if text else None
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError("an author is a key of 64 hexadecimal digits, or me")
    return key


READERS: dict[Operation[Any], Reading] = {
    operations.BEST: _best,
    operations.TOP: _top,
    operations.TASKS: _tasks,
    operations.RUNS: _runs,
    operations.PROGRESS: _progress,
    operations.RUN_CONTEXT: _run_context,
    operations.PATH: _path,
    operations.RUNNERS: _runners,
    operations.STAR: _star,
    operations.CREDIT: _credit,
    operations.EVIDENCE_LIST: _evidence_list,
    operations.EVIDENCE: _evidence,
    operations.RECORDS: _records,
    operations.RECORD: _record,
    operations.RUN: _run,
    operations.SOURCE: _source,
    operations.TRAINING_LOG: _training_log,
    operations.LINEAGE: _lineage,
    operations.DIFF: _diff,
    operations.EFFECTS: _effects,
    operations.NOTES: _notes,
    operations.RELEASES: _releases,
    operations.RELEASE: _release,
    operations.CLAIMS: _claims,
}


P = TypeVar("P", bound=msgspec.Struct)
NOT_READY = "not ready"
_TOO_LONG = re.compile(r"Expected `str` of length <= (\d+) - at `\$\.(\w+)`")
# A diff needs two sources; no answer needs more blobs.
MISSING_BLOBS = 2
# A page waits so long for a source.
FETCH_SECONDS = 20.0


def handler(name: str, operation: Operation[Any]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The operation as aiohttp wants it: the log answers what it reads, a method of the node everything else."""
    reading = READERS.get(operation)

    async def handle(request: web.Request) -> web.StreamResponse:
        asked = await taken(operation, request)
        if reading:
            given = await read(request, reading, asked)
        else:
            given = await ask(request.app[NODE], name, asked)
        if isinstance(given, Text):
            return text_response(given, operation.media)
        return answer(given, status=503 if isinstance(given, Health) and given.status == NOT_READY else 200)

    return handle


async def taken(operation: Operation[Any], request: web.Request) -> msgspec.Struct:
    """What a request says, as the model that the operation takes. Raises UsageError."""
    return decode(operation.takes, await request.read()) if operation.has_body else parameters(operation.takes, request)


async def ask(node: NodePort, name: str, asked: msgspec.Struct) -> Answer | Text:
    """What the node's method of an operation's name answers."""
    method = getattr(node, name)
    given = method() if isinstance(asked, Nothing) else method(asked)
    return await given if inspect.isawaitable(given) else given  # type: ignore[no-any-return]  # a test compares the types


async def read(request: web.Request, function: Reading, asked: msgspec.Struct) -> Answer | Text:
    """Ask the log, in a thread. A blob that is not here is fetched from other nodes first."""
    loop = asyncio.get_running_loop()
    for _ in range(MISSING_BLOBS):
        try:
            return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)
        except MissingBlob as error:
            try:
                await request.app[NODE].fetch_blob(error.blob, FETCH_SECONDS)
            except NotFound as nowhere:
                raise error.nowhere(nowhere) from nowhere
    return await loop.run_in_executor(request.app[THREADS], function, readers(request.app), asked)


def text_response(text: str, media: str) -> web.Response:
    """Text as a response."""
    return web.Response(body=text.encode("utf-8", "replace"), headers={"Content-Type": f"{media}; charset=utf-8"})


def decode(model: type[msgspec.Struct], body: bytes) -> msgspec.Struct:
    """The body as its model; an empty one has all defaults.

    Raises:
        UsageError: it is not JSON, or not what the model says.
    """
    try:
        return msgspec.json.decode(body or b"{}", type=model)
    # RecursionError: thousands of nested brackets; UnicodeDecodeError: bytes that are no text.
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _wrong("the body is not what this address takes", error) from error


def parameters(model: type[P], request: web.Request) -> P:
    """The path's parts and the query string as their model.

    Raises:
        UsageError: one is unknown, given twice, or out of range.
    """
    found = dict(request.match_info)
    for name, value in request.query.items():
        if name in found:
            raise UsageError(f"the parameter {name} is given twice")
        found[name] = value
    try:
        return msgspec.convert(found, model, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong("a parameter is wrong", error) from error


def _wrong(what: str, error: Exception) -> UsageError:
    """What a person may have typed too long is said in words; the rest concerns who wrote the program."""
    if found := _TOO_LONG.fullmatch(str(error)):
        return UsageError(f"{found[2]} is too long", hint=f"{found[1]} characters at most")
    return UsageError(f"{what}: {error}", hint="GET /openapi.json")
