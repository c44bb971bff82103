"""The log on this machine, opened to read: works whether a daemon runs or not. Bundles as files beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from autoresearch.ask.desk import Desk
from autoresearch.ask.node import StatusAnswer, VerifyingStatus
from autoresearch.ask.node_acts import Node
from autoresearch.ask.operation import USUAL_SECONDS
from autoresearch.ask.people.own_verification import untold, waiting
from autoresearch.ask.people.verification import verifying_status
from autoresearch.ask.people.voters import with_voter
from autoresearch.ask.requests import FetchRequest
from autoresearch.ask.runs.boards import task_status
from autoresearch.errors import AutoresearchError, DaemonNotRunning, Locked, NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.bundle import BundleContents, Imported, import_bundle, write_bundle
from autoresearch.log.bundle_format import BrokenBundle, BundledBlobs
from autoresearch.log.connection import lock_device
from autoresearch.log.derive.driver import settle
from autoresearch.log.derive.people import is_weighed
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import NOBODY
from autoresearch.log.standing.context import participant_with_key
from autoresearch.paths import Paths, write_refusals
from autoresearch.record.kinds import BlobRef
from autoresearch.text import counted
from autoresearch.trust.identity import load_identity
from autoresearch.trust.invite import Invitations
from autoresearch.trust.manifest_file import load_manifest
from autoresearch_cli import home

T = TypeVar("T")
# A diff needs two sources, a task its harness and baseline; no command needs more blobs.
MISSING_BLOBS = 20
# A person waits so long for a source.
FETCH_SECONDS = 20.0
# A command settles for so long what no daemon has settled.
SETTLE_SECONDS = 2.0


def with_blobs(read: Callable[[], T], *, seconds: float = FETCH_SECONDS) -> T:
    """What ``read`` gives. A blob that it misses on this machine the daemon gets from other nodes, within ``seconds``.

    Raises NotFound when nobody has it, or no daemon runs that could ask; TimedOut.
    """
    for _ in range(MISSING_BLOBS):
        try:
            return read()
        except MissingBlob as error:
            try:
                fetch_blob(error.blob, seconds)
            except DaemonNotRunning as down:
                sentence = f"{error.what} is not on this machine, and the daemon that would fetch it is not running"
                raise NotFound(sentence, hint="autoresearch up") from down
            except NotFound as nowhere:
                raise error.nowhere(nowhere) from nowhere
    return read()


def fetch_blob(blob: BlobRef, seconds: float = FETCH_SECONDS) -> None:
    """Have the daemon get a blob from other nodes. Raises NotFound, TimedOut, DaemonNotRunning."""
    request = FetchRequest(
        sha256=blob.sha256.hex(),
        size=blob.size,
        manifest=blob.manifest.hex() if blob.manifest else None,
        seconds=seconds,
    )
    home.client().ask(Node.fetch, request, seconds=seconds + USUAL_SECONDS)


@contextmanager
def open_desk(task: str | None = None) -> Iterator[Desk]:
    """Open the log of this machine; without one it is empty. ``task`` is the one that is named.

    Nothing is written, but for what follows from records or a trust list that no daemon has taken in.
    """
    paths, own = home.paths(), home.own_device()
    with ExitStack() as stack:
        manifest = home.manifest()
        log = stack.enter_context(Log.open(paths.log, manifest.network, read_only=True, trust=manifest.trust))
        if paths.log.exists() and (log.todo.count() or not is_weighed(log)):
            _settle(paths, log)
        blobs = stack.enter_context(BlobStore(paths.blobs, read_only=True))
        me, seed = (own.public, bytes(own.key)) if own else (None, None)
        yield Desk(log, blobs, me, seed, paths.home_local, home.now_ms, task or "")


def _settle(paths: Paths, log: Log) -> None:
    """Settle for a short time what follows from records, or another trust list than before, where no daemon does so."""
    # Whoever may not write here, or comes while a daemon works, reads what is settled.
    with (
        suppress(Locked, Refused),
        lock_device(paths.keys / "device.key"),
        Log.open(log.path, log.network, trust=log.trust) as writing,
    ):
        settle(writing, seconds=SETTLE_SECONDS)


def with_log(answer: StatusAnswer) -> StatusAnswer:
    """The same with the participant, the task and the records of the log."""
    from autoresearch.ask.challenges.board import contest_end

    with open_desk() as desk:
        try:
            task = task_status(desk.log, desk.task(), author=desk.me)
        except NotFound:
            task = None
        me = desk.me
        root = load_identity(home.paths().keys).root.public if me else b""
        whose = participant_with_key(desk.log, root) if me else NOBODY
        status = msgspec.structs.replace(
            answer,
            participant=whose,
            device_key=me.hex() if me else "",
            network=desk.log.network.name,
            network_id=desk.log.network.id.hex(),
            contest_ends_ms=contest_end(desk.log),
            records=desk.log.records.count(),
            unsettled=desk.log.todo.count(),
            mine=desk.log.records.count(author=me) if me else 0,
            task=task,
            verifying=_verifying(desk.log, me) if me else None,
        )
        joins = Invitations(home.paths().manifest, desk.log.network).kept_join() is not None
        return with_voter(desk.log, status, root, home.now_ms(), joins=joins) if me else status


def _verifying(log: Log, me: bytes) -> VerifyingStatus:
    """This node's part in verification, as its log has it."""
    part = verifying_status(log, me, home.now_ms())
    return msgspec.structs.replace(part, waiting=waiting(log, me, untold(log, me, home.now_ms())))


def write(path: Path, *, task: str, carried: BundledBlobs) -> BundleContents:
    """Write a bundle beside the file and rename it, once all of it is on the disk: sticks are pulled out early."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open_desk() as desk:
        digest = desk.task(task).digest if task else None
        try:
            with write_refusals(path, "name a file elsewhere"):
                with temporary.open("wb") as file:
                    written = write_bundle(desk.log, desk.blobs, file, task=digest, carried=carried)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink()
    return written


def take_in(path: Path) -> Imported:
    """Import a bundle. A daemon that runs meanwhile finds what is new by itself.

    Raises AutoresearchError whose sentence says what was taken in all the same.
    """
    paths = home.paths()
    paths.create()
    imported, manifest = Imported(), load_manifest(paths.manifest)
    with (
        Log.open(paths.log, manifest.network, trust=manifest.trust) as log,
        BlobStore(paths.blobs) as blobs,
        path.open("rb") as file,
    ):
        try:
            import_bundle(file, log, blobs, imported, now_ms=home.now_ms())
        except BrokenBundle as error:
            sentence = f"{path} is not a whole bundle: {error}; {summary(imported)}"
            raise UsageError(sentence, hint="copy it again from where it was written") from error
        except AutoresearchError as error:
            raise type(error)(f"{error}; {summary(imported)}", hint=error.hint) from error
    return imported


def summary(imported: Imported) -> str:
    """What became of the records, in a line."""
    parts = [
        f"{counted(imported.new, 'new record')}",
        f"{imported.present} known",
        f"{imported.refused} refused" + (f" ({imported.reason})" if imported.reason else ""),
        f"{imported.early} ahead of the clock here" if imported.early else "",
        f"{imported.over_quota} more than peers keep" if imported.over_quota else "",
        f"{counted(imported.blobs, 'new blob')}",
    ]
    return ", ".join(part for part in parts if part)
