"""The notebook on this machine, opened to read: works whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from autoresearch.answers import (
    FoundTask,
    find_task,
    resolve_reference,
    run_log,
    run_source,
    show_answer,
    with_headlines,
)
from autoresearch.api import FetchRequest, ShowAnswer, operations
from autoresearch.choices import Choice, chosen
from autoresearch.errors import AutoresearchError, DaemonNotRunning, NotFound
from autoresearch.identity import KeyPair, load_identity
from autoresearch.log import BlobStore, Log, MissingBlob
from autoresearch.records import BlobRef
from autoresearch_cli import here

if TYPE_CHECKING:
    from autoresearch.prompts import Known
    from autoresearch.tasks import Task

T = TypeVar("T")
# A diff needs two sources, a task its harness and baseline; no command needs more blobs.
MISSING_BLOBS = 20
# A person waits so long for a source.
FETCH_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class NotebookReader:
    """The log and the blobs of this machine, and what a person chose here; ``me`` is its device key, if it has one.

    ``named`` is the task that the command line names: what ``@`` and ``@mine`` are about.
    """

    log: Log
    blobs: BlobStore
    me: bytes | None
    starred: frozenset[bytes] = frozenset()
    archived: frozenset[bytes] = frozenset()
    named: str = ""

    def resolve(self, reference: str) -> bytes:
        """The record that a person means: an id, a unique beginning of one, ``@``, ``@mine``, ``@~1``."""
        task = self.task() if self.named else None
        return resolve_reference(self.log, reference, task=task, author=self.me, archived=self.archived)

    def show(self, reference: str) -> ShowAnswer:
        """One record, whole."""
        found = show_answer(self.log, self.resolve(reference), starred=self.starred)
        return with_headlines(self.log, self.blobs, found, me=self.me)

    def task(self, reference: str = "") -> FoundTask:
        """A task by name or digest; without one, the task that this machine, or else anybody, worked on last."""
        return find_task(self.log, reference or self.named or None, author=self.me, archived=self.archived)

    def known(self, task: Task) -> Known:
        """What the log knows of a task, for who invents the next change."""
        from autoresearch.prompts import gather  # most commands start without it

        return gather(self.log, self.blobs, task, now_ms=here.now_ms(), me=self.me)

    def source(self, reference: str) -> str:
        """The program of a run as one text."""
        return with_blobs(lambda: run_source(self.log, self.blobs, self.resolve(reference)))

    def training_log(self, reference: str) -> str:
        """What a run printed."""
        return with_blobs(lambda: run_log(self.log, self.blobs, self.resolve(reference)))


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
    here.client().ask(operations.FETCH, request, seconds=seconds + operations.FETCH.seconds)


@contextmanager
def open_notebook(task: str = "") -> Iterator[NotebookReader]:
    """Open the notebook; a machine without one has an empty one. Nothing is written. ``task`` is the one named."""
    paths = here.paths()
    with ExitStack() as stack:
        manifest = here.manifest()
        log = stack.enter_context(Log.open(paths.log, manifest.network, read_only=True, trust=manifest.trust))
        blobs = stack.enter_context(BlobStore(paths.blobs, read_only=True))
        starred, archived = (chosen(paths.choices, choice) for choice in (Choice.STARRED, Choice.ARCHIVED))
        yield NotebookReader(log, blobs, device_key(), starred, archived, task)


def device_key() -> bytes | None:
    """This machine's public key, or None when it has none that can be read."""
    own = own_device()
    return own.public if own else None


def own_device() -> KeyPair | None:
    """This machine's key, or None when it has none that can be read."""
    try:
        return load_identity(here.paths().keys).device
    except AutoresearchError:
        return None
