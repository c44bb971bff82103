"""A run of a program of several files on another participant's machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autoresearch.ask.node import PeersAnswer, StatusAnswer
from autoresearch.ask.records import Measured, ShowAnswer
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.task.folders import pin_baseline
from tests.cli.programs import cpp_task, evaluated_task
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.test_verification import answer_of, begin, friends

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("write", [cpp_task, evaluated_task])
def test_another_daemon_gets_the_task_and_measures_the_run_again(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    folder = write(tmp_path / "task")
    pin_baseline(folder)
    author, verifier = (Daemon(home) for home in friends(tmp_path, 2))
    try:
        begin([author], "")
        begin([verifier], answer_of(author, "/v1/peers", PeersAnswer).addresses[0])
        author.post("/v1/work", task=str(folder), runs=3, verify_share=0)
        wait_for(lambda: answer_of(author, "/v1/status", StatusAnswer).state == "idle")
        best = answer_of(author, "/v1/top", TopAnswer).programs[0]
        wait_for(lambda: verifier.post("/v1/verify", run=best.id).status_code in (200, 202))

        def measured() -> list[Measured]:
            verification = answer_of(verifier, f"/v1/runs/{best.id}", ShowAnswer).verification
            return verification.measured if verification else []

        wait_for(lambda: bool(measured()), 120)
        measurement = measured()[0]
        assert (measurement.verdict, measurement.value) == ("pass", pytest.approx(best.reported))
        assert measurement.metrics == ({"evaluated": 1.0} if write is evaluated_task else {})
    finally:
        stop_all([author, verifier])
