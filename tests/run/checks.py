"""Checks of somebody's run, as a verifier's worker is given them and carries them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autoresearch.judging import ecvrf
from autoresearch.judging.states import EVALUATE
from autoresearch.run.bench import Bench
from autoresearch.run.checking import VerificationPlan, Verified, carry_out_check
from autoresearch.run.evaluating import Model
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest

PROOF = ecvrf.prove(bytes(32), b"")


def check_of(task: Task, source: str, **fields: Any) -> VerificationPlan:
    """A check of the number of a run of this program; ``fields`` are fields that are other than usual."""
    if "source_digest" not in fields:
        fields["source_digest"] = source_digest(source)
    usual: dict[str, Any] = {"run": bytes(32), "stage": EVALUATE, "round": 0, "proof": PROOF, "seeds": [99]}
    usual |= {"parent_source": None, "checkpoint": None, "parent_checkpoint": None, "replicate": 0, "claim": 1.0}
    return VerificationPlan(task=task.digest, source=source, **(usual | fields))


def carried_out(check: VerificationPlan, task: Task, bench: Bench, model: Path | None = None) -> Verified:
    """What a worker comes to; ``model`` is what the author's run left, where it is here."""
    return carry_out_check(
        check,
        task,
        bench,
        model=None if model is None else Model(check.source, model),
        parent=None,
        on_progress=lambda *_: None,
    )
