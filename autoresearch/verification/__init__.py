"""The rules of verification: committees, commitments, evaluations, pairs, the state of a run. Pure."""

from autoresearch.verification import ecvrf
from autoresearch.verification.choosing import (
    Rules,
    challenge_draw,
    expected,
    is_audited,
    is_chosen,
    is_replicated,
    network_rules,
    question,
    seeds,
    text_seeds,
)
from autoresearch.verification.commitments import SALT_BYTES, commitment_digest, in_time
from autoresearch.verification.evaluating import (
    GAP_ERRORS,
    MEAN_NATS,
    MISMATCHES,
    STANDARD_ERROR,
    Findings,
    allowance,
    difference_error,
    gap,
    has_learned_nothing,
    is_honest,
    passes,
)
from autoresearch.verification.interval import margin, student
from autoresearch.verification.reports import EVALUATE, REPLICATE, ROUNDS, Report
from autoresearch.verification.states import CONFIRMING_VOTERS, Judgement, Lineage, judge
from autoresearch.verification.statistics import ERROR, LOOKS, MOST_VOTERS, PAIRS, Finding, judge_pairs

__all__ = [
    "CONFIRMING_VOTERS",
    "ERROR",
    "EVALUATE",
    "GAP_ERRORS",
    "LOOKS",
    "MEAN_NATS",
    "MISMATCHES",
    "MOST_VOTERS",
    "PAIRS",
    "REPLICATE",
    "ROUNDS",
    "SALT_BYTES",
    "STANDARD_ERROR",
    "Finding",
    "Findings",
    "Judgement",
    "Lineage",
    "Report",
    "Rules",
    "allowance",
    "challenge_draw",
    "commitment_digest",
    "difference_error",
    "ecvrf",
    "expected",
    "gap",
    "has_learned_nothing",
    "in_time",
    "is_audited",
    "is_chosen",
    "is_honest",
    "is_replicated",
    "judge",
    "judge_pairs",
    "margin",
    "network_rules",
    "passes",
    "question",
    "seeds",
    "student",
    "text_seeds",
]
