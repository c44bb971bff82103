"""The daemon of somebody who passes whatever there is to verify and measures nothing; else the real program."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from autoresearch_daemon.events import now_ms
from autoresearch_daemon.main import main
from autoresearch_daemon.verification.controller import VerificationController

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import AutoresearchError
from autoresearch.log.standing.jobs import VerificationJob, next_job
from autoresearch.record.kinds import Run, Verification

PAUSE_SECONDS = 1.0


def stamped(notebook: Notebook, job: VerificationJob) -> Verification:
    """What it would have measured had the author told the truth."""
    run = notebook.log.records.get(job.run).body
    assert isinstance(run, Run)
    parent = notebook.log.records.get(run.parent).body if run.parent else None
    pairs = len(job.seeds) if job.stage == "replicate" and isinstance(parent, Run) else 0
    return Verification(
        run=job.run,
        stage=job.stage,
        round=job.round,
        verdict="pass",
        value=None if pairs else run.value,
        seeds=list(job.seeds),
        values=[run.value] * pairs,
        parent_values=[parent.value] * pairs if isinstance(parent, Run) else [],
        proof=job.proof,
        device="none",
        sandbox=2,
    )


async def keep(self: VerificationController) -> None:
    """Pass the next, and the next."""
    notebook = self.notebook
    device = notebook.identity.device
    done: set[tuple[bytes, str, int]] = set()
    while True:
        now = self.machine.status()
        if now.is_working:
            with suppress(AutoresearchError):
                task = self.load(now.front.task).digest
                job = next_job(notebook.log, task, device.public, bytes(device.key), now_ms(), skip=done)
                if job is not None:
                    done.add((job.run, job.stage, job.round))
                    self._reveals.add("stamp", stamped(notebook, job))
        self.reveal()
        await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    VerificationController.keep = keep
    main()
