"""Own runs of another network of this home, brought into the one in use, by the daemon where one runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from autoresearch.answers import record_view
from autoresearch.api import BringRequest, BroughtAnswer, RecordView, operations
from autoresearch.bringing import bring, runs_to_bring
from autoresearch.errors import AutoresearchError, DaemonNotRunning, Refused
from autoresearch.figures import counted
from autoresearch.home_networks import HomeNetwork
from autoresearch.log import Log
from autoresearch.notebook import Notebook
from autoresearch_cli import here
from autoresearch_cli.reading import open_notebook

# At a time: how often a person sees how far it is.
RUNS_AT_ONCE = 20


def still_to_bring(origin: HomeNetwork) -> list[RecordView]:
    """The finished runs that the network in use lacks, parents before their children. Reads only."""
    network = origin.manifest.network
    with open_notebook() as notebook, Log.open(origin.paths.log, network, read_only=True) as log:
        if notebook.me is None:
            return []
        return [record_view(log, run) for run in runs_to_bring(log, notebook.log, notebook.me, here.now_ms()).runs]


def bring_all(origin: HomeNetwork, *, progress: Callable[[int, int], None]) -> BroughtAnswer:
    """Publish them. ``progress`` is told how many are done, and of how many.

    Raises:
        AutoresearchError: it can't go on now; the sentence says how many were brought.
    """
    if origin.in_use:
        raise Refused(f"{origin.name} is the network in use: its runs are here", hint="autoresearch network list")
    brought = 0
    while True:
        try:
            found = _some(origin)
        except AutoresearchError as error:
            done = f"; {counted(brought, 'run')} brought before that" if brought else ""
            raise type(error)(f"{str(error).rstrip('.')}{done}", hint=error.hint) from error
        brought += found.brought
        if not found.left:
            return BroughtAnswer(brought=brought, skipped=found.skipped, repeated=found.repeated, left=0)
        progress(brought, brought + found.left)


def _some(origin: HomeNetwork) -> BroughtAnswer:
    try:
        return here.client().ask(operations.BRING, BringRequest(network=origin.id, most=RUNS_AT_ONCE))
    except DaemonNotRunning:
        with Notebook(here.paths()) as notebook:
            found = bring(origin, notebook, here.now_ms, most=RUNS_AT_ONCE)
        return BroughtAnswer(**asdict(found))
