"""What attacks on the sandbox of this machine find, once for each process that runs tests: a machine's walls stay."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from autoresearch.run.sandbox import probes
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import ProbeResult

_probe_sandbox = probes.probe_sandbox


@functools.cache
def _attacked(level: Level) -> tuple[ProbeResult, ...]:
    return _probe_sandbox(level)


def attacked_once(level: Level, secrets: Sequence[Path] = ()) -> tuple[ProbeResult, ...]:
    """What an attack found here; in place of ``probe_sandbox`` where another thing is tested."""
    return _attacked(level)


def best_level() -> Level:
    """The best level that holds on this machine."""
    levels = (Level.BUBBLEWRAP, Level.LANDLOCK)
    return next((level for level in levels if all(probe.blocked for probe in _attacked(level))), Level.NONE)
