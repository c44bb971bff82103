"""What is asked: task folders, their digests, when two sources are the same program, which seed a run gets."""

from autoresearch.tasks.contract import has_shipped_harness
from autoresearch.tasks.folder_state import (
    keep_baseline,
    keep_edit,
    kept_baseline,
    remember_start,
    replace_file,
    started_from,
)
from autoresearch.tasks.loading import MANIFEST, MAX_FILE_BYTES, PLAIN_NAME, check_source, load_task, shipped_task
from autoresearch.tasks.lock import MAX_PACKAGES, Package, lock_digest, parse_lock, parse_wanted, write_lock
from autoresearch.tasks.model import ENTRY, Budget, Evaluation, Limits, Metric, Python, Task, has_chosen_seed, seed_for
from autoresearch.tasks.rebuilding import is_taken, manifest_text, rebuild_task
from autoresearch.tasks.source import canonical_source, source_digest
from autoresearch.tasks.summary import guess_direction, guess_metric, parse_summary
from autoresearch.tasks.values import possible_value
from autoresearch.tasks.writing import PREPARE, fixed_files, pin_baseline, write_task

__all__ = [
    "ENTRY",
    "MANIFEST",
    "MAX_FILE_BYTES",
    "MAX_PACKAGES",
    "PLAIN_NAME",
    "PREPARE",
    "Budget",
    "Evaluation",
    "Limits",
    "Metric",
    "Package",
    "Python",
    "Task",
    "canonical_source",
    "check_source",
    "fixed_files",
    "guess_direction",
    "guess_metric",
    "has_chosen_seed",
    "has_shipped_harness",
    "is_taken",
    "keep_baseline",
    "keep_edit",
    "kept_baseline",
    "load_task",
    "lock_digest",
    "manifest_text",
    "parse_lock",
    "parse_summary",
    "parse_wanted",
    "pin_baseline",
    "possible_value",
    "rebuild_task",
    "remember_start",
    "replace_file",
    "seed_for",
    "shipped_task",
    "source_digest",
    "started_from",
    "write_lock",
    "write_task",
]
