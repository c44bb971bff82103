"""Objects of an export: commits of new runs, notes that say something else than before, the table of participants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from autoresearch.answers import published_task
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.git_export.commits import Files, run_commit, task_commit
from autoresearch.git_export.fast_import import Stream
from autoresearch.git_export.notes import blob_id, mailmap
from autoresearch.git_export.ordering import parents_first
from autoresearch.git_export.repository import NOTES, ROOT, RUNS, Import, Repository
from autoresearch.git_export.survey import Survey
from autoresearch.log import BlobStore, Log
from autoresearch.records import Record, Run, parse_id
from autoresearch.tasks import MANIFEST, manifest_text, source_digest

# A run with a larger source is left out, with all that build on it.
MAX_SOURCE_BYTES = 8 << 20


class Published(NamedTuple):
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

        def name(one: str | None) -> str | None:
            return ids.get(one, one) if one else None

        runs = {run: ids.get(commit, commit) for run, commit in self.runs.items()}
        return Objects(name(self.task), runs, name(self.notes), name(self.mailmap), self.missing)


def objects_in(references: Mapping[str, str]) -> Objects:
    """What a repository with these references has already."""
    runs = {parse_id(name.removeprefix(RUNS)): at for name, at in references.items() if name.startswith(RUNS)}
    return Objects(references.get(ROOT), runs, references.get(NOTES))


def write(known: Published, repository: Repository, seen: Survey, before: Objects, *, now_ms: int) -> Objects:
    """Write what is new; no reference names it yet. Raises as :func:`export_task`."""
    name, files = task_files(known) if seen.parents or not before.task else ("", {})
    noted = repository.noted()
    with repository.importing() as importing:
        found = _Writer(known, name, files, importing).write(seen, before, noted, now_ms)
    return found.named(importing.ids)


class _Writer:
    """Writes objects to one import."""

    def __init__(self, known: Published, name: str, files: Files, importing: Import) -> None:
        self._known, self._name, self._files, self._importing = known, name, files, importing
        self._stream = Stream()
        self._missing = 0

    def write(self, seen: Survey, before: Objects, noted: Mapping[str, str], now_ms: int) -> Objects:
        """All objects, parents first."""
        log, task = self._known.log, self._known.task
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
        record = self._known.log.records.find(run)
        source = _source(record, self._known.blobs) if record else None
        if record is None or source is None:
            self._missing += 1
            return None
        return record, source


def _source(run: Record, blobs: BlobStore) -> bytes | None:
    assert isinstance(run.body, Run)
    kept = blobs.find(run.body.source.sha256)
    if kept is None or kept.size > MAX_SOURCE_BYTES:
        return None
    try:
        return blobs.get(kept.sha256)
    except (NotFound, Refused):
        return None


def task_files(known: Published) -> tuple[str, Files]:
    """The name of a task; its fixed files, checked against its digest, and its ``task.toml``.

    Raises as :func:`export_task`.
    """
    with TemporaryDirectory(prefix="autoresearch-") as folder:
        try:
            task = published_task(known.log, known.blobs, known.task, Path(folder) / "task")
        except (Refused, UsageError) as error:
            raise Refused(f"the task {known.task.hex()[:12]} is not what its digest says: {error}") from error
    # Without the summary, which each publisher may word anew.
    text = manifest_text(task.definition(), baseline=source_digest(task.baseline.decode()))
    return task.name, dict(task.harness) | {MANIFEST: text.encode()}
