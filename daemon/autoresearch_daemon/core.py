"""What all parts of a node share: its files, settings, log, memory, events, service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import AutoresearchError, LogBehind, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.run.sandbox.job import Level
from autoresearch.settings import Settings, load_settings
from autoresearch.words import Why
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.runs.executor_runs import order_of
from autoresearch_daemon.runs.in_hand import Proposals, highest
from autoresearch_daemon.runs.task_folders import TaskFolders
from autoresearch_daemon.service.effects import Happening
from autoresearch_daemon.service.inputs import Blocked
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.service.queue import WorkQueue


class Core:
    """``take`` is given what happened, for the service to decide, and what a part wants to have done.

    ``settings`` are those of now, ``level`` how well runs are walled in here, as soon as that is known.
    """

    def __init__(self, paths: Paths, settings: Settings, take: Callable[[Happening], None]) -> None:
        self.paths, self.settings, self.take = paths, settings, take
        self.started_ms = now_ms()
        self.level: Level | None = None
        self.notebook = Notebook(paths)
        self.local = LocalState(paths.local)
        self.thread = LogThread(self.notebook.log)
        self.failures = self.thread.failures
        self.events = Events(self.local, self.failures)
        self.folders = TaskFolders(lambda: self.settings, paths.home_local)
        self.proposals = Proposals(self.local)
        self.service = NodeService(
            workers_wanted=settings.work.workers,
            queue=WorkQueue(
                agenda=self.local.agenda(),
                resting=order_of(settings.executor),
                counter=highest([run.assignment for run in self.local.in_hand()]),
            ),
            since_ms=self.started_ms,
        )

    def settings_of_file(self) -> Settings:
        """The settings as workers read them, for what is set up while the node runs; a broken file is a condition."""
        try:
            return load_settings(self.paths.settings, os.environ)[0]
        except UsageError:
            return self.settings

    @contextmanager
    def reading(self) -> Iterator[tuple[Log, BlobStore]]:
        """Log and blobs by connections of their own, for a thread beside the event loop."""
        log = self.notebook.log
        with (
            Log.open(log.path, log.network, read_only=True, trust=log.trust) as reader,
            BlobStore(self.paths.blobs, read_only=True) as blobs,
        ):
            yield reader, blobs

    def block(self, error: AutoresearchError | None) -> None:
        """Work cannot go on while nothing can be recorded."""
        if error is not None:
            why = Why.LOG_BEHIND if isinstance(error, LogBehind) else Why.CANNOT_RECORD
            self.take(Blocked(why, error.with_hint))
