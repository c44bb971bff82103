"""Who verifies what, and what it takes to count. Pure."""

from autoresearch.verification import ecvrf
from autoresearch.verification.choosing import Rules, expected, is_chosen, network_rules, question, seeds
from autoresearch.verification.evaluating import GAP_ERRORS, Findings, allowance, gap, is_honest, passes
from autoresearch.verification.interval import margin
from autoresearch.verification.states import EVALUATE, REPLICATE, Judgement, Report, judge
from autoresearch.verification.statistics import ERROR, LOOKS, Finding, judge_pairs

__all__ = [
    "ERROR",
    "EVALUATE",
    "GAP_ERRORS",
    "LOOKS",
    "REPLICATE",
    "Finding",
    "Findings",
    "Judgement",
    "Report",
    "Rules",
    "allowance",
    "ecvrf",
    "expected",
    "gap",
    "is_chosen",
    "is_honest",
    "judge",
    "judge_pairs",
    "margin",
    "network_rules",
    "passes",
    "question",
    "seeds",
]
