"""The operations that read the log. What they answer is built in `autoresearch.answers`, as for the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from autoresearch.answers import (
    FoundTask,
    best_answer,
    claims_answer,
    credit_answer,
    diff_answer,
    effects_answer,
    evidence_answer,
    evidence_list_answer,
    find_task,
    lineage_answer,
    log_answer,
    notes_answer,
    parse_conditions,
    release_answer,
    resolve_reference,
    run_log,
    run_source,
    search_answer,
    show_answer,
    tasks_answer,
    top_answer,
    with_headlines,
)
from autoresearch.api import (
    Answer,
    BestAnswer,
    ClaimsAnswer,
    CreditAnswer,
    DiffAnswer,
    Difference,
    EffectsAnswer,
    EvidenceAnswer,
    EvidenceListAnswer,
    EvidenceOf,
    LineageAnswer,
    LogAnswer,
    NotesAnswer,
    NotesOf,
    OfTask,
    OfTaskAndParticipant,
    OneEvidence,
    OneRecord,
    Operation,
    PathAnswer,
    ProgressAnswer,
    ProgressOf,
    Records,
    ReleaseAnswer,
    ReleasesOf,
    RunContextAnswer,
    RunnersAnswer,
    RunsAnswer,
    RunsOf,
    SearchAnswer,
    ShowAnswer,
    StarAnswer,
    StarRequest,
    TasksAnswer,
    TasksOf,
    Text,
    TopAnswer,
    TopOf,
    operations,
)
from autoresearch.choices import Choice, choose
from autoresearch.errors import UsageError
from autoresearch.records import KINDS, format_id
from autoresearch.words import with_article
from autoresearch_daemon.api.readers import Readers
from autoresearch_daemon.clock import now_ms

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
    from autoresearch.run_tables import runs_answer  # with numpy, which the daemon has only once a table is asked for

    task, starred = _task(readers, asked), readers.starred()
    return runs_answer(readers.log, readers.blobs, task, asked, me=readers.author, starred=starred)


def _progress(readers: Readers, asked: ProgressOf) -> ProgressAnswer:
    from autoresearch.run_tables import (
        progress_answer,  # with numpy, which the daemon has only once a table is asked for
    )

    return progress_answer(readers.log, readers.blobs, _task(readers, asked), asked, me=readers.author)


def _run_context(readers: Readers, asked: OneRecord) -> RunContextAnswer:
    from autoresearch.run_tables import (
        run_context_answer,  # with numpy, which the daemon has only once a table is asked for
    )

    run = _id(readers, asked, asked.id)
    return run_context_answer(readers.log, readers.blobs, run, me=readers.author, starred=readers.starred())


def _path(readers: Readers, asked: OneRecord) -> PathAnswer:
    from autoresearch.run_tables import path_answer  # with numpy, which the daemon has only once a table is asked for

    run = _id(readers, asked, asked.id)
    return path_answer(readers.log, readers.blobs, run, me=readers.author, starred=readers.starred())


def _runners(readers: Readers, asked: OfTask) -> RunnersAnswer:
    from autoresearch.run_tables import (
        runners_answer,  # with numpy, which the daemon has only once a table is asked for
    )

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
