"""What is asked: task folders, their digests, when two sources are the same program, which seed a run gets."""

from autoresearch.tasks.contract import has_shipped_harness
from autoresearch.tasks.folder_state import (
    keep_baseline,
    keep_edit,
    kept_baselines,
    remember_start,
    replace_file,
    started_from,
)
from autoresearch.tasks.guessing import PREPARE, fixed_files, guess_recipe
from autoresearch.tasks.loading import (
    MANIFEST,
    MAX_FILE_BYTES,
    check_source,
    load_task,
    program_in,
    program_names,
    shipped_task,
)
from autoresearch.tasks.lock import MAX_PACKAGES, Package, lock_digest, parse_lock, parse_wanted, write_lock
from autoresearch.tasks.model import (
    USUAL,
    Budget,
    Evaluation,
    Evaluator,
    Limits,
    Metric,
    Python,
    Recipe,
    Task,
    evaluation_seed,
    has_chosen_seed,
    seed_for,
)
from autoresearch.tasks.program import (
    ENTRY,
    MAX_PROGRAM_FILES,
    PLAIN_NAME,
    is_lone,
    join_files,
    source_digest,
    split_program,
)
from autoresearch.tasks.rebuilding import is_taken, manifest_text, rebuild_task
from autoresearch.tasks.source import canonical_source
from autoresearch.tasks.summary import guess_direction, guess_metric, parse_summary
from autoresearch.tasks.values import possible_value
from autoresearch.tasks.writing import pin_baseline, write_task

__all__ = [
    "ENTRY",
    "MANIFEST",
    "MAX_FILE_BYTES",
    "MAX_PACKAGES",
    "MAX_PROGRAM_FILES",
    "PLAIN_NAME",
    "PREPARE",
    "USUAL",
    "Budget",
    "Evaluation",
    "Evaluator",
    "Limits",
    "Metric",
    "Package",
    "Python",
    "Recipe",
    "Task",
    "canonical_source",
    "check_source",
    "evaluation_seed",
    "fixed_files",
    "guess_direction",
    "guess_metric",
    "guess_recipe",
    "has_chosen_seed",
    "has_shipped_harness",
    "is_lone",
    "is_taken",
    "join_files",
    "keep_baseline",
    "keep_edit",
    "kept_baselines",
    "load_task",
    "lock_digest",
    "manifest_text",
    "parse_lock",
    "parse_summary",
    "parse_wanted",
    "pin_baseline",
    "possible_value",
    "program_in",
    "program_names",
    "rebuild_task",
    "remember_start",
    "replace_file",
    "seed_for",
    "shipped_task",
    "source_digest",
    "split_program",
    "started_from",
    "write_lock",
    "write_task",
]
