"""What a node does with claims: its own are out for a moment, and an older one of another node wins."""

from __future__ import annotations

import pytest
from autoresearch_daemon.service import machine
from autoresearch_daemon.service.effects import (
    Announce,
    Approve,
    Cancel,
    Decline,
    Effect,
    LeaveToOther,
    WithdrawClaim,
)
from autoresearch_daemon.service.inputs import (
    Assignment,
    Dropped,
    Finished,
    Input,
    Outrun,
    PauseAsked,
    Proposed,
    RunAsked,
    Settled,
    StopAsked,
    WorkerLost,
    WorkerReady,
)
from autoresearch_daemon.service.machine import NodeService

from autoresearch.words import WorkKind
from tests.daemon.service_nodes import RUN, assignment_of, key, of, started


def test_what_another_node_tries_is_proposed_anew_and_a_person_gets_what_was_asked_for() -> None:
    node = started(1)
    search = assignment_of(node, "w1")
    effects = node.handle(Proposed("w1", search, key(1), RUN, taken=True), 0)
    assert effects == [Decline("w1", search)]
    assert of(Approve, node.handle(Proposed("w1", search, key(2), RUN), 0))
    node.handle(Finished("w1"), 1)

    person_node = NodeService(workers_wanted=1)
    person_node.handle(RunAsked(Assignment("given", "folder", WorkKind.PERSON)), 0)
    person_node.handle(WorkerReady("w1", "cpu"), 0)
    assert of(Approve, person_node.handle(Proposed("w1", "given", key(1), RUN, taken=True), 0))
    assert person_node.handle(Outrun(key(1)), 1) == []


def test_a_run_that_another_node_began_earlier_gives_way_early_and_never_twice_in_a_row() -> None:
    node = started(2)
    assignment = assignment_of(node, "w1")
    node.handle(Proposed("w1", assignment, key(1), RUN), 1000)
    assert node.handle(Outrun(key(9)), 1001) == []
    assert node.handle(Outrun(key(1)), 1002) == [Cancel("w1", assignment)]
    assert node.handle(Outrun(key(1)), 1003) == []

    node.handle(Finished("w1", counted=False), 1004)
    again = assignment_of(node, "w1")
    node.handle(Proposed("w1", again, key(2), RUN), 1005)
    assert node.handle(Outrun(key(2)), 1006) == []

    node.handle(Finished("w1"), 2000)
    third = assignment_of(node, "w1")
    node.handle(Proposed("w1", third, key(3), RUN), 3000)
    assert node.handle(Outrun(key(3)), 60_000) == []


def with_peers(node: NodeService, number: int, now_ms: int) -> list[Effect]:
    name = assignment_of(node, "w1")
    return node.handle(Proposed("w1", name, key(number), RUN, has_peers=True), now_ms)


def test_with_peers_a_claim_is_out_for_a_moment_before_its_run_begins() -> None:
    node = started(1)
    name = assignment_of(node, "w1")
    assert with_peers(node, 1, 0) == [Announce("w1", name, key(1), machine.SETTLE_MS)]
    assert node.handle(Settled("w1", key(2)), 999) == []
    assert node.handle(Settled("w1", key(1)), 1000) == [Approve("w1", name)]
    assert node.handle(Settled("w1", key(1)), 1001) == []
    assert machine.SETTLE_MS <= 1000


def test_what_another_node_claimed_earlier_is_left_to_it_before_it_costs_anything() -> None:
    node = started(1)
    name = assignment_of(node, "w1")
    for number in range(machine.PROPOSALS_PER_ASSIGNMENT):
        with_peers(node, number, number)
        gone = [WithdrawClaim(name), Decline("w1", name)]
        assert node.handle(Outrun(key(number)), number) == gone
        assert node.handle(Settled("w1", key(number)), number) == []
    # Who always claims the same earlier is a liar: no more waiting.
    assert with_peers(node, 9, 10) == [Approve("w1", name)]


@pytest.mark.parametrize("event", [PauseAsked(), StopAsked()])
def test_what_is_stopped_while_its_claim_is_out_leaves_no_claim(event: Input) -> None:
    node = started(1)
    name = assignment_of(node, "w1")
    with_peers(node, 1, 0)
    assert Cancel("w1", name) in node.handle(event, 500)
    assert node.handle(Settled("w1", key(1)), 1000) == []
    assert WithdrawClaim(name) in node.handle(Dropped("w1"), 1001)


def test_a_worker_lost_while_its_claim_is_out_leaves_no_claim() -> None:
    node = started(1)
    name = assignment_of(node, "w1")
    with_peers(node, 1, 0)
    assert of(WithdrawClaim, node.handle(WorkerLost("w1"), 1)) == [WithdrawClaim(name)]


def test_what_a_person_asked_for_does_not_wait_for_others() -> None:
    node = NodeService(workers_wanted=1)
    node.handle(RunAsked(Assignment("given", "folder", WorkKind.PERSON)), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)
    assert with_peers(node, 1, 0) == [Approve("w1", "given")]


def test_a_shared_proposal_is_left_to_the_node_that_was_faster() -> None:
    gone = [LeaveToOther("given"), Cancel("w1", "given")]
    for pauses in (False, True):
        node = NodeService(workers_wanted=1)
        node.handle(RunAsked(Assignment("given", "folder", WorkKind.PERSON, shared=True)), 0)
        node.handle(WorkerReady("w1", "cpu"), 0)
        if pauses:  # it is crossed by another claim while its own is out
            assert with_peers(node, 1, 0) == [Announce("w1", "given", key(1), machine.SETTLE_MS)]
            assert node.handle(Outrun(key(1)), 1) == [WithdrawClaim("given"), *gone]
            node.handle(PauseAsked(), 2)
        else:
            assert node.handle(Proposed("w1", "given", key(1), RUN, taken=True), 0) == gone
        assert node.handle(Settled("w1", key(1)), 1000) == []
        assert of(WithdrawClaim, node.handle(Dropped("w1"), 1001)) == []
        assert not node.queue.proposals, "nothing of it waits"


def test_a_shared_proposal_that_began_is_run_to_its_end() -> None:
    node = NodeService(workers_wanted=1)
    node.handle(RunAsked(Assignment("given", "folder", WorkKind.PERSON, shared=True)), 0)
    node.handle(WorkerReady("w1", "cpu"), 0)
    with_peers(node, 1, 0)
    assert node.handle(Settled("w1", key(1)), 1000) == [Approve("w1", "given")]
    assert node.handle(Outrun(key(1)), 1001) == []


def test_what_two_workers_are_asked_for_is_run_by_one_and_the_other_proposal_ends() -> None:
    node = NodeService(workers_wanted=2)
    for number in (1, 2):
        node.handle(RunAsked(Assignment(f"given-{number}", "folder", WorkKind.PERSON)), 0)
        node.handle(WorkerReady(f"w{number}", "cpu"), 0)
    assert of(Approve, node.handle(Proposed("w1", "given-1", key(1), RUN), 1))
    same = node.handle(Proposed("w2", "given-2", key(1), RUN), 2)
    assert same == [LeaveToOther("given-2"), Cancel("w2", "given-2")]
    node.handle(Dropped("w2"), 3)
    assert not node.queue.proposals
