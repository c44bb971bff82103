"""An export as a git repository, from one snapshot of the log.

First objects: new commits, notes that changed, the table of participants. Then references, then the branch main and its
files, which are moved only where nobody has changed them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from autoresearch.ask.desk import Desk
from autoresearch.ask.people.claims import published_task
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.face.exports.result import UpdateResult
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.rows import SignedRun
from autoresearch.log.standing.answers import Answer, ParticipantView
from autoresearch.log.standing.bases import buildable
from autoresearch.log.standing.context import participant_of, trust_context
from autoresearch.log.standing.verification import judgements
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import Run, Task
from autoresearch.record.record import Record
from autoresearch.task.folder_state import keep_baseline, remember_start
from autoresearch.task.folders import manifest_text
from autoresearch.task.loading import MANIFEST
from autoresearch.task.program import source_digest
from autoresearch.text import counted, one_line
from autoresearch_exports.git_commits import Files, blob_id, mailmap, note, parents_first, run_commit, task_commit
from autoresearch_exports.git_repository import (
    BRANCHES,
    MAILMAP,
    MAIN,
    NOTES,
    ROOT,
    RUNS,
    TARGET,
    Import,
    Repository,
    Stream,
    exported_task,
    open_repository,
)

# So many of the best programs may have a branch.
BEST = 10


class Survey(NamedTuple):
    """The runs of a task that are not hidden here, by id, the oldest first, each with the text of its note.

    ``parents`` has those without a commit, each with its parent run, or None where the task itself comes before it.
    ``best`` are the best runs, the best first. ``people`` are the participants behind devices.
    """

    notes: Mapping[bytes, str]
    parents: Mapping[bytes, bytes | None]
    best: Sequence[bytes]
    people: Mapping[bytes, ParticipantView]


def survey(log: Log, task: bytes, done: Collection[bytes], me: bytes | None) -> Survey:
    """Read a task's runs; ``done`` have a commit already, ``me`` is the device that asks."""
    with log.reader.snapshot():
        runs = {run.id: run for run in log.runs.signed(task)}
        hidden = log.hidden.of(runs)
        visible = {run: signed for run, signed in runs.items() if run not in hidden}
        people = {(run.author, run.time): participant_of(log, run.author, run.time) for run in runs.values()}
        best = islice(buildable(log, task, trust_context(log, me)), BEST)
        return Survey(
            notes=_notes(log, visible, people),
            parents={run: _parent(log, run, runs, hidden) for run in visible if run not in done},
            best=[placed.row.first for placed in best],
            people={device: who for (device, _), who in people.items()},
        )


def ancestors(log: Log, run: bytes | None) -> list[bytes]:
    """A run and the runs before it that are in the log, the newest first."""
    runs: list[bytes] = []
    while run is not None and (record := log.records.find(run)) and isinstance(record.body, Run):
        runs.append(run)
        run = record.body.parent
    return runs


def _parent(log: Log, run: bytes, runs: Mapping[bytes, SignedRun], hidden: Collection[bytes]) -> bytes | None:
    """The parent run, past those that are hidden here.

    None also for a parent that is known and no run on this task: it will never be one.
    """
    parent: bytes | None = run
    while parent is not None and (parent == run or parent in hidden):
        body = log.records.get(parent).body
        assert isinstance(body, Run)
        parent = body.parent
    is_other = parent not in runs and parent is not None and bool(log.records.has([parent]))
    return None if is_other else parent


def _notes(
    log: Log,
    runs: Mapping[bytes, SignedRun],
    people: Mapping[tuple[bytes, int], ParticipantView],
) -> dict[bytes, str]:
    judged = judgements(log, runs)
    texts = {}
    for run in runs.values():
        judgement = judged[run.id]
        person = people[run.author, run.time]
        texts[run.id] = note(judgement, judgement.margin, person, withdrawn=run.withdrawn)
    return texts


def place_main(git: Repository, target: str, made: Collection[str], before: str | None) -> None:
    """Move main to a commit, and its files where it is checked out.

    ``made`` are the commits that export made. ``before`` is where main was going the last time: that move may have been
    interrupted, with some files there already.

    Raises:
        Refused: main has somebody's own commits, or a file has edits. Both stay as they are.
    """
    at, place = git.references(MAIN).get(MAIN), quote(str(git.folder))
    if at is not None and at not in made:
        hint = f"git -C {place} branch -m main mine"
        raise Refused(f"main in {git.folder} stays where it is: it has commits that export did not make", hint=hint)
    if at == target:
        return
    if git.is_bare or git.head() != MAIN:
        git.run("update-ref", MAIN, target)
        return
    is_first = not (git.git_dir / "index").exists()
    changed = set() if is_first else _changed(git, at or target) | _changed(git, "--cached", at or target)
    # What an interrupted move wrote is as one of the two commits has it.
    edited = changed and changed & _changed(git, target) & (_changed(git, before) if before else changed)
    if edited:
        hint = f"git -C {place} switch -c mine"
        raise Refused(f"main in {git.folder} stays where it is: {min(edited)} has edits", hint=hint)
    # Unlike --hard, --keep overwrites no file that git does not know.
    git.run("reset", "--quiet", "--hard" if changed or at is None else "--keep", target)


def _changed(git: Repository, *against: str) -> set[str]:
    """The files that are not as a commit has them."""
    out = git.run("diff", "--name-only", "--no-ext-diff", "--no-renames", "-z", *against)
    return set(out.split("\0")) - {""}


# A run with a larger source is left out, with all that build on it.
MAX_SOURCE_BYTES = 8 << 20


class PublishedTask(NamedTuple):
    """A task as the log and the blobs of this machine have it."""

    log: Log
    blobs: BlobStore
    task: bytes


@dataclass(slots=True)
class Objects:
    """What git calls the objects of an export; while they are written, new ones by their marks.

    ``task`` is the first commit, ``runs`` are the commits of runs. ``missing`` counts the sources that are not here.
    """

    task: str | None
    runs: dict[bytes, str]
    notes: str | None
    mailmap: str | None = None
    missing: int = 0

    def named(self, ids: Mapping[str, str]) -> Objects:
        """The same with ids in place of marks."""

        def name(mark: str | None) -> str | None:
            return ids.get(mark, mark) if mark else None

        runs = {run: ids.get(commit, commit) for run, commit in self.runs.items()}
        return Objects(name(self.task), runs, name(self.notes), name(self.mailmap), self.missing)


def write(published: PublishedTask, repository: Repository, seen: Survey, before: Objects, *, now_ms: int) -> Objects:
    """Write what is new; no reference names it yet. Raises as :meth:`GitExport.update`."""
    name, files = task_files(published) if seen.parents or not before.task else ("", {})
    noted = repository.noted()
    with repository.importing() as importing:
        objects = _GitWriter(published, name, files, importing).write(seen, before, noted, now_ms)
    return objects.named(importing.ids)


class _GitWriter:
    """Writes objects to one import."""

    def __init__(self, published: PublishedTask, name: str, files: Files, importing: Import) -> None:
        self._published, self._name, self._files, self._importing = published, name, files, importing
        self._stream = Stream()
        self._missing = 0

    def write(self, seen: Survey, before: Objects, noted: Mapping[str, str], now_ms: int) -> Objects:
        """All objects, parents first."""
        log, task = self._published.log, self._published.task
        root = before.task or self._put(self._stream.commit(task_commit(self._name, task, self._files), None))
        runs = dict(before.runs)
        for run, (record, source) in parents_first(seen.parents, runs.keys() & seen.notes.keys(), self._load):
            parent = seen.parents[run]
            commit = run_commit(record, log.records.find(parent) if parent else None, source, self._files)
            runs[run] = self._put(self._stream.commit(commit, runs[parent] if parent else root))
        texts = {runs[run]: text for run, text in seen.notes.items() if run in runs}
        fresh = {commit: text for commit, text in texts.items() if noted.get(commit) != blob_id(text)}
        notes = self._put(self._stream.notes(fresh, before.notes, now_ms // 1000)) if fresh else before.notes
        people = mailmap(sorted(seen.people.items()))
        return Objects(root, runs, notes, self._put(self._stream.blob(people.encode())), self._missing)

    def _put(self, encoded: tuple[bytes, str]) -> str:
        data, mark = encoded
        self._importing.write(data)
        return mark

    def _load(self, run: bytes) -> tuple[Record, bytes] | None:
        """A run with its source; None where that is not here, too large or damaged."""
        record = self._published.log.records.find(run)
        source = _source(record, self._published.blobs) if record else None
        if record is None or source is None:
            self._missing += 1
            return None
        return record, source


def _source(run: Record, blobs: BlobStore) -> bytes | None:
    assert isinstance(run.body, Run)
    blob = blobs.find(run.body.source.sha256)
    if blob is None or blob.size > MAX_SOURCE_BYTES:
        return None
    try:
        return blobs.get(blob.sha256)
    except (NotFound, Refused):
        return None


def task_files(published: PublishedTask) -> tuple[str, Files]:
    """The name of a task; its fixed files, checked against its digest, and its ``task.toml``.

    Raises as :meth:`GitExport.update`.
    """
    with TemporaryDirectory(prefix="autoresearch-") as folder:
        try:
            task = published_task(published.log, published.blobs, published.task, Path(folder) / "task")
        except (Refused, UsageError) as error:
            raise Refused(f"the task {published.task.hex()[:12]} is not what its digest says: {error}") from error
    # Without the summary, which each publisher may word anew.
    text = manifest_text(task.definition(), baseline=source_digest(task.baseline.decode()))
    return task.name, dict(task.harness) | {MANIFEST: text.encode()}


class GitExportAnswer(Answer, frozen=True, kw_only=True):
    """The runs of a task are in a git repository: ``runs`` together, ``commits`` of them new.

    ``missing`` runs are left out because their source is not here, ``waiting`` ones because a run before them is left
    out or unknown. ``main`` is the run at the end of the branch main. ``kept``: why that branch was not moved there.
    """

    schema: str = "autoresearch.git_export/1"
    folder: str
    task: str
    runs: int
    commits: int
    missing: int
    waiting: int
    main: str | None
    refusal: str = msgspec.field(name="kept")


@dataclass(frozen=True, slots=True)
class GitExport:
    """A task as a git repository; ``bare`` without a work tree."""

    bare: bool = False

    def task(self, place: Path) -> bytes | None:
        """As :meth:`UpdatedExport.task`."""
        return exported_task(place)

    def update(self, desk: Desk, task: bytes, place: Path) -> UpdateResult:
        """As :meth:`UpdatedExport.update`.

        Raises:
            NotFound: the task, or a file of it (MissingBlob), is not on this machine.
            Refused: what was published is no task, the folder is another repository, or git fails.
        """
        with open_repository(place, task, desk.log.network.id, bare=self.bare) as repository:
            return export_task(desk, repository, task)


def export_task(desk: Desk, repository: Repository, task: bytes) -> UpdateResult:
    """Bring a repository up to date with the log. Raises as :meth:`GitExport.update`."""
    log, blobs = desk.log, desk.blobs
    references = repository.references()
    runs = {parse_id(name.removeprefix(RUNS)): at for name, at in references.items() if name.startswith(RUNS)}
    before = Objects(references.get(ROOT), runs, references.get(NOTES))
    seen = survey(log, task, before.runs, desk.me)
    now = write(PublishedTask(log, blobs, task), repository, seen, before, now_ms=desk.now_ms())
    best = [run for run in seen.best if run in now.runs]
    targets = _references(now, [ancestors(log, run) for run in best])
    made = {*now.runs.values(), targets[ROOT]}
    moves = _moves(references, targets, made, repository.held())
    if moves:
        repository.move(moves)
    if ROOT in moves and not repository.is_bare:
        _keep_baseline(repository, log, blobs, task)
    refusal = None
    try:
        place_main(repository, targets[TARGET], made, references.get(TARGET))
    except Refused as error:
        refusal = error
    commits = len(now.runs) - len(before.runs)
    answer = GitExportAnswer(
        folder=str(repository.folder),
        task=task.hex(),
        runs=len(now.runs),
        commits=commits,
        missing=now.missing,
        waiting=len(seen.parents) - commits - now.missing,
        main=format_id(best[0]) if best else None,
        refusal=str(refusal or ""),
    )
    git = f"git -C {quote(str(repository.folder))}"
    steps = [f"{git} runs, or how the best run came about: {git} log -p main"]
    name = one_line(str((log.tasks.definition(task) or {}).get("name")), 64)
    return UpdateResult(answer, _lines(answer, name, best[:1], seen.best[:1]), bool(moves), refusal, steps)


def _lines(answer: GitExportAnswer, name: str, main: Sequence[bytes], best: Sequence[bytes]) -> list[str]:
    """The answer for a person. ``main`` and ``best`` have the run there, and the best run of the log, if any."""
    at = f"main is {short_id(main[0])}" if main else "no run has a value yet"
    runs = f"{counted(answer.runs, 'run')} of {name}"
    lines = [f"{counted(answer.commits, 'new commit')}, {runs} in {answer.folder}; {at}"]
    if answer.missing:
        after = f", nor {counted(answer.waiting, 'run')} after them" if answer.waiting else ""
        lines.append(f"{counted(answer.missing, 'run')} left out, whose source is not on this machine{after}")
    elif answer.waiting:
        lines.append(f"{counted(answer.waiting, 'run')} left out, whose parent run is not in the log")
    if best != main and best:
        lines.append(f"the best run, {short_id(best[0])}, is among those")
    return lines


def _keep_baseline(repository: Repository, log: Log, blobs: BlobStore, task: bytes) -> None:
    """Make the folder a task folder, whose program may be another than the baseline that its task.toml pins."""
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    if isinstance(body, Task) and blobs.has(body.baseline.sha256):
        keep_baseline(repository.folder, blobs.get(body.baseline.sha256))
        remember_start(repository.folder, "")  # git checks out the program of any run


def _references(now: Objects, lines: Sequence[Sequence[bytes]]) -> dict[str, str]:
    """The references that there should be; ``lines`` are the best runs, each before its ancestors.

    The first is main. Of the others those have a branch that no better one builds on.
    """
    assert now.task
    assert now.mailmap
    references = {RUNS + format_id(run): commit for run, commit in now.runs.items()}
    references |= {ROOT: now.task, MAILMAP: now.mailmap, TARGET: now.runs[lines[0][0]] if lines else now.task}
    if now.notes:
        references[NOTES] = now.notes
    below = {run for line in lines for run in line[1:]}
    leaves = [line[0] for line in lines[1:] if line[0] not in below]
    return references | {BRANCHES + short_id(run): now.runs[run] for run in leaves}


def _moves(
    references: Mapping[str, str], targets: Mapping[str, str], made: Collection[str], held: Collection[str]
) -> dict[str, str | None]:
    """The references to move. Branches with commits of somebody's own stay, and so does one that is checked out."""

    def is_own(name: str) -> bool:
        return name.startswith(BRANCHES) and name in references and (references[name] not in made or name in held)

    moves: dict[str, str | None] = {name: at for name, at in targets.items() if references.get(name) != at}
    moves |= {name: None for name in references if name.startswith(BRANCHES) and name not in targets}
    return {name: at for name, at in moves.items() if not is_own(name)}


# What entry points name.
WITH_FILES, BARE = GitExport(), GitExport(bare=True)
