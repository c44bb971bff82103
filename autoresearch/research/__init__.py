"""Experiments, from what is to be run to what came of it. Knows no daemon, no keys, no log.

The same path for a proposal, for a hand-written file and for a verification.
"""

from autoresearch.research.bench import (
    Bench,
    command_words,
    device_name,
    environment,
    fault_of_program,
    job_limits,
    missing_command,
    program_files,
    task_data,
)
from autoresearch.research.ceiling import Ceiling, limits_of
from autoresearch.research.evaluating import evaluate, fault_of_artifact
from autoresearch.research.examining import Examined, Model, examine, examine_on_new_text
from autoresearch.research.experiment import Measurement, Plan, abandoned, again, measure, plan_as_it_stands, run_body
from autoresearch.research.imports import missing_imports
from autoresearch.research.preflight import forget_runs, preflight, remember_run, way_to_packages
from autoresearch.research.texts import World, drawn_world

__all__ = [
    "Bench",
    "Ceiling",
    "Examined",
    "Measurement",
    "Model",
    "Plan",
    "World",
    "abandoned",
    "again",
    "command_words",
    "device_name",
    "drawn_world",
    "environment",
    "evaluate",
    "examine",
    "examine_on_new_text",
    "fault_of_artifact",
    "fault_of_program",
    "forget_runs",
    "job_limits",
    "limits_of",
    "measure",
    "missing_command",
    "missing_imports",
    "plan_as_it_stands",
    "preflight",
    "program_files",
    "remember_run",
    "run_body",
    "task_data",
    "way_to_packages",
]
