"""Claims and runs of keys that nobody vouches for, and claims that are dated back: they keep nobody from a program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.acts.notebook import CROSSING_MS, Notebook
from autoresearch.paths import Paths
from autoresearch.propose.mind.recall import claims, known_as
from autoresearch.record.kinds import Claim, RunPlan
from autoresearch.record.record import Record
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.trust.identity import create_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.daemon.toy import TRAIN, write_toy_task
from tests.record.making import NETWORK, NOW_MS, key, run_body, sealed

STRANGER, FRIEND = key(66), key(67)
HOUR_MS = 3_600_000


@pytest.fixture
def task(tmp_path: Path) -> Task:
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return load_task(folder)


@pytest.fixture
def plan(task: Task) -> RunPlan:
    return plan_as_it_stands(task, TRAIN.replace("X = 0.9", "X = 0.5"), title="an idea")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Notebook]:
    """A node that trusts its own participant and a friend."""
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    paths.create()
    own = create_identity(paths.keys).root.public
    trust = Trust(participants=frozenset({own, FRIEND.public}))
    save_manifest(paths.manifest, NetworkManifest(NETWORK, trust=trust))
    with Notebook(paths) as notebook:
        notebook.publish_identity(NOW_MS - 1000)
        yield notebook


def comes(node: Notebook, author: KeyPair, body: object, kind: str, time_ms: int, seq: int = 1) -> Record:
    """A record of another participant, whatever time it states."""
    record = sealed(author, body, kind=kind, seq=seq, time_ms=time_ms, network=NETWORK)
    node.log.writer.ingest([(record.raw, record.signature)], now_ms=NOW_MS + HOUR_MS)
    return record


def claim(plan: RunPlan, title: str = "") -> Claim:
    return Claim(task=plan.task, source_digest=plan.source_digest, replicate=plan.replicate, until=2**42, title=title)


def seen(node: Notebook, task: Task, plan: RunPlan, now_ms: int) -> list[bool]:
    """Whether the plan is taken, in the eyes of the node, of its search and of its model."""
    return [
        node.is_tried_elsewhere(plan, now_ms),
        any(
            open_claim.source_digest == plan.source_digest
            for open_claim in claims(node.log, task.digest, now_ms, node.author)
        ),
        bool(known_as(node.log, task, plan.source_digest, now_ms, me=node.author)),
    ]


def test_a_stranger_s_claim_binds_nobody_and_a_friend_s_does(node: Notebook, task: Task, plan: RunPlan) -> None:
    comes(node, STRANGER, claim(plan), "claim", NOW_MS - 60_000)
    assert seen(node, task, plan, NOW_MS) == [False, False, False]
    comes(node, FRIEND, claim(plan), "claim", NOW_MS - 60_000)
    assert seen(node, task, plan, NOW_MS) == [True, True, True]


def test_a_stranger_s_run_does_not_say_that_a_program_was_run(node: Notebook, task: Task, plan: RunPlan) -> None:
    run = msgspec.structs.replace(
        run_body(1.0), task=plan.task, source_digest=plan.source_digest, replicate=plan.replicate
    )
    comes(node, STRANGER, run, "run", NOW_MS - 1)
    assert not node.is_tried_elsewhere(plan, NOW_MS)
    comes(node, FRIEND, run, "run", NOW_MS - 1)
    assert node.is_tried_elsewhere(plan, NOW_MS)


@pytest.mark.parametrize("back_ms", [-1000, 1, 60_000, 12 * HOUR_MS])
def test_the_time_that_a_claim_states_wins_nothing(node: Notebook, plan: RunPlan, back_ms: int) -> None:
    own = node.publish_claim(plan, NOW_MS, seconds=60)
    crossing, later = NOW_MS + CROSSING_MS - 1, NOW_MS + CROSSING_MS
    won = []
    for number in range(1, 9):
        jumper = comes(node, FRIEND, claim(plan, f"mine {number}"), "claim", NOW_MS - back_ms, seq=number)
        won.append(node.is_outrun(jumper, crossing))
        assert won[-1] is (jumper.id < own.id), "of claims that cross, chance alone decides"
        assert not node.is_outrun(jumper, later), "ours was here first"
    for number in range(1, 9):
        stranger = comes(node, STRANGER, claim(plan, f"mine {number}"), "claim", NOW_MS - back_ms, seq=number)
        assert not node.is_outrun(stranger, crossing)
