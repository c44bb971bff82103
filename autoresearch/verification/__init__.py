"""Who verifies what, and what it takes to count. Pure."""

from autoresearch.verification import ecvrf
from autoresearch.verification.choosing import Rules, expected, is_chosen, network_rules, question, seeds
from autoresearch.verification.interval import margin
from autoresearch.verification.states import EVALUATE, REPLICATE, Judgement, Report, judge
from autoresearch.verification.statistics import ERROR, LOOKS, Finding, judge_pairs

__all__ = [
    "ERROR",
    "EVALUATE",
    "LOOKS",
    "REPLICATE",
    "Finding",
    "Judgement",
    "Report",
    "Rules",
    "ecvrf",
    "expected",
    "is_chosen",
    "judge",
    "judge_pairs",
    "margin",
    "network_rules",
    "question",
    "seeds",
]
