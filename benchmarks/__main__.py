"""``python -m benchmarks`` lists the benchmarks; ``python -m benchmarks NAME [--quick] [--json]`` runs one.

A benchmark is a module with ``measure(*, quick) -> dict[str, float]`` and ``COMPARED``, what it was compared with.
``python -m benchmarks --all --quick`` runs those that no test runs, each in a process of its own. A benchmark that
ends with an error, takes too long or measures what is impossible makes the exit status 1; no figure is too slow.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from autoresearch.errors import AutoresearchError
from benchmarks.plausible import impossible

BENCHMARKS = {
    "ingest": "verify, decode and store records, in batches of 1,000",
    "queries": "best and newest records in a large log",
    "command_start": "processor time of commands on a new machine",
    "idle": "the daemon without work: memory, processor, start",
    "reconcile": "bytes and round trips to find how two sets of records differ",
    "catchup": "how fast an empty node takes over the log of another",
    "blobs": "a large blob from one peer and from three",
    "gossip": "how fast records spread among 10, 30 and 60 nodes",
    "peers_idle": "the network process with 10 peers and nothing to say",
    "hostile": "a daemon under attack: memory, processor, what still arrives of an honest peer",
    "soak": "three nodes left alone with crashes, a full disk, a wrong clock: what is lost, what grows",
    "attestation": "how fast it is known whose word a record carries",
    "standing": "how long it takes to say how far others stand behind runs",
    "scale": "how answers grow with the log, from 10,000 records to a million",
    "null": "how often luck is taken for progress by the rule of verification",
    "collusion": "what colluding participants get past the rule of verification",
    "cards": "a graphics card: what it needs of the sandbox, runs on it, changes of known worth",
    "overhead": "sandbox and referee over plain `python train.py`",
    "contamination": "whether new text gives away who trained on the validation text",
    "proposer": "the built-in search against random search and Optuna",
    "search": "the built-in search beside TPE, CMA-ES, NGOpt and random search, on functions and models",
    "unseen": "the built-in search beside seven others, on problems drawn from a seed that nobody tuned it to",
    "strangers": "programs as one finds them: what is understood of them, what the search finds, how far it gets",
    "sharing": "peers that share a log against peers that are alone",
    "pages": "the answers behind the pages in a large log",
    "hiding": "what it costs to hide 1,000 participants: lists, charts, prompts, storing",
    "projects": "components: found among many, installed; steps of training; agents published and fetched",
    "services": "requests, arrays, rows and weights between processes, over raw pyzmq; what survives faults",
    "long_history": "what the search proposes from a part of a long history",
}

# Their quick version is a slow test, which also says what the figures must be.
TESTED = {"contamination"}
# A quick version that takes longer hangs, however busy the machine is.
QUICK_SECONDS = 600


def main() -> int:
    """Entry; the exit status is 2 for an unknown name, 1 for what can't be measured here and for impossible figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("name", nargs="?", help="which benchmark; without one, list them")
    parser.add_argument("--quick", action="store_true", help="smaller, within seconds on two cores")
    parser.add_argument("--all", action="store_true", help="every benchmark, with --quick those that no test runs")
    parser.add_argument("--json", action="store_true", help='print {"name": …, "figures": {…}}')
    options = parser.parse_args()
    if options.all:
        return run_all(quick=options.quick)
    if options.name is None:
        for name, what in BENCHMARKS.items():
            print(f"{name:13} {what}")
        return 0
    if options.name not in BENCHMARKS:
        print(f"there is no benchmark {options.name}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"benchmarks.{options.name}")
    try:
        figures: dict[str, float] = module.measure(quick=options.quick)
    except AutoresearchError as error:
        print(f"{error} {error.hint}".strip(), file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"name": options.name, "figures": figures}))
        return tell(impossible(options.name, figures))
    print(f"{options.name}: {BENCHMARKS[options.name]}{' (quick)' if options.quick else ''}")
    for figure, value in figures.items():
        print(f"  {figure:24} {value:>14,.4g}")
    print(f"compared with: {module.COMPARED}")
    return tell(impossible(options.name, figures))


def tell(faults: list[str]) -> int:
    """Say what is impossible; the exit status."""
    for fault in faults:
        print(f"impossible: {fault}", file=sys.stderr)
    return 1 if faults else 0


def run_all(*, quick: bool) -> int:
    """Run every benchmark, whatever became of the one before; 1 when one of them failed."""
    failed = []
    names = [name for name in BENCHMARKS if not (quick and name in TESTED)]
    for name in names:
        began = time.monotonic()
        command = [sys.executable, "-m", "benchmarks", name, *(["--quick"] if quick else [])]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            good = process.wait(QUICK_SECONDS if quick else None) == 0
        except subprocess.TimeoutExpired:
            good = False
        finally:  # also what it started, and also when a person stops it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        failed += [] if good else [name]
        print(f"{name}: {'done' if good else 'failed'} after {time.monotonic() - began:.0f} s\n", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(names)} benchmarks ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
