"""Running strangers' code: the sandbox, its limits, and what came of a run.

``execute`` runs one job at an isolation level and always comes back with an outcome. ``detect_level`` attacks the
sandbox of this machine to find the best level that holds. ``prepare_data`` makes a task's data in the same sandbox.
``sweep`` takes away the temporary folders of those who were killed.
"""

from __future__ import annotations

from autoresearch.running.channel import Progress
from autoresearch.running.data import (
    MOST_TEXT_BYTES,
    data_digest,
    prepare_data,
    without,
    write_fresh,
    write_world,
)
from autoresearch.running.execute import execute, permit
from autoresearch.running.interpreter import Interpreter, interpreter_in, made_interpreter, seeing, site_packages
from autoresearch.running.job import Job, Limits, Outcome, Talk
from autoresearch.running.layout import SEARCHED, package_folders
from autoresearch.running.level import Level
from autoresearch.running.probes import ProbeResult, detect_level, probe_sandbox
from autoresearch.running.removal import remove_tree
from autoresearch.running.scratch import Scratch, scratch_folder, sweep
from autoresearch.running.specification import PYTHON
from autoresearch.running.verdict import KILLED

__all__ = [
    "KILLED",
    "MOST_TEXT_BYTES",
    "PYTHON",
    "SEARCHED",
    "Interpreter",
    "Job",
    "Level",
    "Limits",
    "Outcome",
    "ProbeResult",
    "Progress",
    "Scratch",
    "Talk",
    "data_digest",
    "detect_level",
    "execute",
    "interpreter_in",
    "made_interpreter",
    "package_folders",
    "permit",
    "prepare_data",
    "probe_sandbox",
    "remove_tree",
    "scratch_folder",
    "seeing",
    "site_packages",
    "sweep",
    "without",
    "write_fresh",
    "write_world",
]
