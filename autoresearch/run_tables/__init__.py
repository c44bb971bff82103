"""The runs of a task as tables, charts and lineages: columns in numpy arrays, and the answers that are made of them.

A room of its own because numpy takes 25 MB and a tenth of a second: the daemon and commands load it when a table is
asked for.
"""

from autoresearch.run_tables.columns import MARKS, STATES, RunTable, run_table
from autoresearch.run_tables.progress import progress_answer
from autoresearch.run_tables.rows import path_answer, run_context_answer, runners_answer, runs_answer

__all__ = [
    "MARKS",
    "STATES",
    "RunTable",
    "path_answer",
    "progress_answer",
    "run_context_answer",
    "run_table",
    "runners_answer",
    "runs_answer",
]
