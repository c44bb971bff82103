"""An export from its beginning to its end: objects first, then references, then the files of main."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from autoresearch.errors import Refused
from autoresearch.git_export.repository import BRANCHES, MAILMAP, NOTES, ROOT, RUNS, TARGET, Repository
from autoresearch.git_export.survey import ancestors, survey
from autoresearch.git_export.work_tree import place_main
from autoresearch.git_export.writing import Objects, Published, objects_in, write
from autoresearch.log import BlobStore, Log
from autoresearch.records import Task, format_id, short_id
from autoresearch.tasks import keep_baseline


class Exported(NamedTuple):
    """What a repository holds now. ``commits`` of its ``runs`` are new. ``main`` is the run where main belongs.

    ``missing`` runs are left out because their source is not here, ``waiting`` ones because a run before them is left
    out or unknown. ``best`` is the best run of the log. ``changed``: something is new, if only a note. ``kept``: why
    main stays where it is, if it does.
    """

    runs: int
    commits: int
    missing: int
    waiting: int
    main: bytes | None
    best: bytes | None
    changed: bool
    kept: Refused | None


def export_task(
    log: Log, blobs: BlobStore, repository: Repository, task: bytes, *, me: bytes | None, now_ms: int
) -> Exported:
    """Bring a repository up to date with the log; ``me`` is the device that asks, ``now_ms`` the time of its notes.

    Raises:
        NotFound: the task, or a file of it (MissingBlob), is not on this machine.
        Refused: what was published is no task, or git fails.
    """
    references = repository.references()
    before = objects_in(references)
    seen = survey(log, task, before.runs, me)
    now = write(Published(log, blobs, task), repository, seen, before, now_ms=now_ms)
    best = [run for run in seen.best if run in now.runs]
    wanted = _references(now, [ancestors(log, run) for run in best])
    made = {*now.runs.values(), wanted[ROOT]}
    moves = _moves(references, wanted, made, repository.held())
    if moves:
        repository.move(moves)
    if ROOT in moves and not repository.is_bare:
        _keep_baseline(repository, log, blobs, task)
    kept = None
    try:
        place_main(repository, wanted[TARGET], made, references.get(TARGET))
    except Refused as error:
        kept = error
    commits = len(now.runs) - len(before.runs)
    return Exported(
        runs=len(now.runs),
        commits=commits,
        missing=now.missing,
        waiting=len(seen.parents) - commits - now.missing,
        main=next(iter(best), None),
        best=next(iter(seen.best), None),
        changed=bool(moves),
        kept=kept,
    )


def _keep_baseline(repository: Repository, log: Log, blobs: BlobStore, task: bytes) -> None:
    """Make the folder a task folder, whose program may be another than the baseline that its task.toml pins."""
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    if isinstance(body, Task) and blobs.has(body.baseline.sha256):
        keep_baseline(repository.folder, blobs.get(body.baseline.sha256))


def _references(now: Objects, lines: Sequence[Sequence[bytes]]) -> dict[str, str]:
    """The references that there should be; ``lines`` are the best runs, each before its ancestors.

    The first is main. Of the others those have a branch that no better one builds on.
    """
    assert now.task
    assert now.mailmap
    found = {RUNS + format_id(run): commit for run, commit in now.runs.items()}
    found |= {ROOT: now.task, MAILMAP: now.mailmap, TARGET: now.runs[lines[0][0]] if lines else now.task}
    if now.notes:
        found[NOTES] = now.notes
    below = {run for line in lines for run in line[1:]}
    leaves = [line[0] for line in lines[1:] if line[0] not in below]
    return found | {BRANCHES + short_id(run): now.runs[run] for run in leaves}


def _moves(
    references: Mapping[str, str], wanted: Mapping[str, str], made: Collection[str], held: Collection[str]
) -> dict[str, str | None]:
    """The references to move. Branches with commits of somebody's own stay, and so does one that is checked out."""

    def is_own(name: str) -> bool:
        return name.startswith(BRANCHES) and name in references and (references[name] not in made or name in held)

    moves: dict[str, str | None] = {name: at for name, at in wanted.items() if references.get(name) != at}
    moves |= {name: None for name in references if name.startswith(BRANCHES) and name not in wanted}
    return {name: at for name, at in moves.items() if not is_own(name)}
