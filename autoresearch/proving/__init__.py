"""Checks of evidence, step by step: whether records prove what is stated, by their bytes alone. Pure."""

from autoresearch.proving.forks import check_fork
from autoresearch.proving.lineages import check_lineage
from autoresearch.proving.measuring import close_enough, compared
from autoresearch.proving.seeds import check_run_seed, check_verifier_seeds
from autoresearch.proving.statements import check_statement
from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, nothing_found, opened

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
    "nothing_found",
    "opened",
]
