"""``python -m benchmarks`` lists the benchmarks; ``python -m benchmarks NAME [--quick] [--json]`` runs one.

A benchmark is a module with ``measure(*, quick) -> dict[str, float]`` and ``COMPARED``, what it was compared with.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys

BENCHMARKS = {
    "ingest": "verify, decode and store records, in batches of 1,000",
    "queries": "best and newest records in a large log",
    "idle": "the daemon without work: memory, processor, start",
    "reconcile": "bytes and round trips to find how two sets of records differ",
    "catchup": "how fast an empty node takes over the log of another",
    "blobs": "a large blob from one peer and from three",
    "gossip": "how fast records spread among 10, 30 and 60 nodes",
    "peers_idle": "the network process with 10 peers and nothing to say",
    "hostile": "a daemon under attack: memory, processor, what still arrives of an honest peer",
    "attestation": "how fast it is known whose word a record carries",
    "standing": "how long it takes to say how far others stand behind runs",
    "null": "how often luck is taken for progress by the rule of verification",
    "collusion": "what colluding participants get past the rule of verification",
    "overhead": "sandbox and referee over plain `python train.py`",
    "contamination": "whether new text gives away who trained on the validation text",
    "proposer": "the built-in search against random search and Optuna",
}


def main() -> int:
    """Entry; the exit status is 2 for an unknown name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("name", nargs="?", help="which benchmark; without one, list them")
    parser.add_argument("--quick", action="store_true", help="smaller, within 30 seconds on two cores")
    parser.add_argument("--json", action="store_true", help='print {"name": …, "figures": {…}}')
    options = parser.parse_args()
    if options.name is None:
        for name, what in BENCHMARKS.items():
            print(f"{name:13} {what}")
        return 0
    if options.name not in BENCHMARKS:
        print(f"there is no benchmark {options.name}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"benchmarks.{options.name}")
    figures: dict[str, float] = module.measure(quick=options.quick)
    if options.json:
        print(json.dumps({"name": options.name, "figures": figures}))
        return 0
    print(f"{options.name}: {BENCHMARKS[options.name]}{' (quick)' if options.quick else ''}")
    for figure, value in figures.items():
        print(f"  {figure:24} {value:>14,.4g}")
    print(f"compared with: {module.COMPARED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
