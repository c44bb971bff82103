"""Whether records prove what they are said to prove, step by step, from their bytes alone. Pure: believes nobody."""

from autoresearch.proving.forks import check_fork
from autoresearch.proving.lineages import check_lineage
from autoresearch.proving.measuring import close_enough, compared
from autoresearch.proving.seeds import check_run_seed, check_verifier_seeds
from autoresearch.proving.statements import check_statement
from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, opened

__all__ = [
    "NOT_ITS_RECORD",
    "Given",
    "Outcome",
    "Step",
    "check_fork",
    "check_lineage",
    "check_run_seed",
    "check_statement",
    "check_verifier_seeds",
    "close_enough",
    "compared",
    "failed",
    "opened",
]
