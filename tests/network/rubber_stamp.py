"""The daemon of somebody who passes whatever there is to verify and measures nothing; else the real program."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.main import main
from autoresearch_daemon.verifying import Verifying

from autoresearch.errors import AutoresearchError
from autoresearch.notebook import Notebook
from autoresearch.records import Run, Verification
from autoresearch.views import Duty, next_duty

PAUSE_SECONDS = 1.0


def stamped(notebook: Notebook, duty: Duty) -> Verification:
    """What it would have measured had the author told the truth."""
    run = notebook.log.get(duty.run).body
    assert isinstance(run, Run)
    parent = notebook.log.get(run.parent).body if run.parent else None
    pairs = len(duty.seeds) if duty.stage == "replicate" and isinstance(parent, Run) else 0
    return Verification(
        run=duty.run,
        stage=duty.stage,
        round=duty.round,
        verdict="pass",
        value=None if pairs else run.value,
        seeds=list(duty.seeds),
        values=[run.value] * pairs,
        parent_values=[parent.value] * pairs if isinstance(parent, Run) else [],
        proof=duty.proof,
        device="none",
        sandbox=2,
    )


async def keep(self: Verifying) -> None:
    """Pass the next, and the next."""
    notebook = self._notebook
    device = notebook.identity.device
    done: set[tuple[bytes, str, int]] = set()
    while True:
        asked = self._machine.asked
        if asked.working:
            with suppress(AutoresearchError):
                task = self._load(asked.order.task).digest
                duty = next_duty(notebook.log, task, device.public, bytes(device.key), now_ms(), skip=done)
                if duty is not None:
                    done.add((duty.run, duty.stage, duty.round))
                    self._reveals.add("stamp", stamped(notebook, duty))
        self.reveal()
        await asyncio.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    Verifying.keep = keep
    main()
