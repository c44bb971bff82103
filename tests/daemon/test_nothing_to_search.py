"""A program in which the search finds nothing to change: the node waits and says so, and publishes nothing."""

from __future__ import annotations

import pytest
from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.effects import Assign
from autoresearch_daemon.service.inputs import Failed, JobReady, WorkAsked, WorkerReady
from autoresearch_daemon.service.machine import NodeService
from autoresearch_daemon.workers import protocol

from autoresearch.words import WorkState
from tests.daemon.test_below_the_wall import Machine, machine, own_task  # noqa: F401 - machine is a fixture

SENTENCE = (
    "train.py has no number that the search can change: "
    "add `# 0.01 .. 0.1` behind a constant in its own line, or run your own ideas with `autoresearch run`"
)
PLAIN = "import prepare\nSEED = 3\nprepare.report(0.5 + 0 * SEED)\n"


def test_a_worker_proposes_nothing_and_says_what_to_do(machine: Machine) -> None:  # noqa: F811
    talk = machine.carry_out(own_task(machine, PLAIN))

    assert talk.proposed == []
    assert talk.messages[-1] == protocol.Failed(assignment="a", sentence=SENTENCE)


def test_the_node_waits_with_that_sentence_until_it_is_asked_again() -> None:
    node = NodeService(workers_wanted=1)
    node.handle(WorkAsked(Order()), 0)
    node.handle(JobReady(None), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)

    effects = node.handle(Failed("w1", SENTENCE), 1)

    assert (node.status().state, node.status().reason) == (WorkState.WAITING, SENTENCE)
    assert not any(isinstance(effect, Assign) for effect in effects)
    node.handle(WorkAsked(Order()), 2)
    again = node.handle(JobReady(None), 3)
    assert any(isinstance(effect, Assign) for effect in again)


@pytest.mark.slow
def test_a_run_by_hand_and_a_range_in_a_comment_both_work(machine: Machine) -> None:  # noqa: F811
    folder = own_task(machine, PLAIN)
    assert isinstance(machine.carry_out(folder, planned=True).messages[-1], protocol.Ended)
    (folder / "train.py").write_text(PLAIN.replace("SEED = 3", "SEED = 3  # 1 .. 9"))
    assert isinstance(machine.carry_out(folder).messages[-1], protocol.Ended)
