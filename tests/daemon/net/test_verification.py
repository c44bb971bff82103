"""Daemons that verify each other: an honest best is confirmed, an invented number is refuted, and the board says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec
import pytest
from autoresearch_daemon.events import now_ms

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer, TopAnswer
from autoresearch.log.standing.answers import CreditAnswer
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import RunOutcome
from autoresearch.record.record import Network
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.trust.identity import create_identity
from autoresearch.trust.manifest import Manifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import RunStatus
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.scripted_model import serving
from tests.daemon.test_minds import nearer
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow

PARTICIPANTS = 5
VERIFY_SECONDS = 600


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    return friends(tmp_path, PARTICIPANTS)


def friends(place: Path, count: int) -> list[Path]:
    """Homes of participants who know each other: a private network names them all."""
    made = [place / f"home{number}" for number in range(count)]
    roots = []
    for home in made:
        paths = Paths.from_environment({"AUTORESEARCH_HOME": str(home)})
        paths.create()
        roots.append(create_identity(paths.keys).root.public)
    manifest = Manifest(Network(name="friends", nonce=bytes(16)), trust=Trust(participants=frozenset(roots)))
    for home in made:
        save_manifest(Paths.from_environment({"AUTORESEARCH_HOME": str(home)}).manifest, manifest)
    return made


@pytest.fixture
def daemons(homes: list[Path]) -> Iterator[list[Daemon]]:
    """Daemons that are not started yet; stopped at the end."""
    made = [Daemon(home) for home in homes]
    yield made
    stop_all(made)


def start(daemons: list[Daemon]) -> None:
    """Start them all, connected to the first."""
    begin(daemons[:1], "")
    begin(daemons[1:], asked(daemons[0], "/v1/peers", PeersAnswer).addresses[0])


def begin(daemons: list[Daemon], first: str) -> None:
    """Start these at a time; ``first`` is the address of one that they know."""
    for daemon in daemons:
        daemon.settings |= {
            "AUTORESEARCH_NETWORK_ENABLED": "true",
            "AUTORESEARCH_NETWORK_LAN": "false",
            "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
            "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
            "AUTORESEARCH_NETWORK_BOOTSTRAP": first,
        }
        daemon.launch()
    for daemon in daemons:
        daemon.ready()
        wait_for(lambda daemon=daemon: bool(asked(daemon, "/v1/peers", PeersAnswer).addresses))


def asked(daemon: Daemon, path: str, answer: type) -> object:
    with daemon.client() as client:
        return msgspec.json.decode(client.get(path).content, type=answer)


def state_of(daemon: Daemon, run: str) -> str:
    with daemon.client() as client:
        response = client.get(f"/v1/runs/{run}")
    return (
        msgspec.json.decode(response.content, type=ShowAnswer).verification.state if response.status_code == 200 else ""
    )


def told(daemon: Daemon, kind: str) -> bool:
    """Whether a daemon has told of something of this kind since it was started first."""
    with (
        daemon.client() as client,
        suppress(httpx.ReadTimeout),  # all that was kept is replayed, and nothing happens
        client.stream("GET", "/v1/events?since=0", timeout=1.0) as stream,
    ):
        return f"event: {kind}" in stream.iter_lines()
    return False


def fabricate(home: Path, folder: Path) -> str:
    """Publish a run with a number that nobody measured."""
    task = load_task(folder)
    source = task.baseline.decode().replace("0.", "0.1", 1)
    measurement = RunOutcome(
        status=RunStatus.OK,
        value=0.0,
        duration_ms=1000,
        cpu_ms=1000,
        peak_memory_bytes=1,
        sandbox=2,
        device="cpu",
    )
    with Notebook(Paths.from_environment({"AUTORESEARCH_HOME": str(home)})) as notebook:
        notebook.publish_identity(now_ms())
        notebook.publish_task(task, now_ms())
        plan = plan_as_it_stands(task, source, title="too good to be true")
        return format_id(notebook.publish_run(plan, measurement, now_ms()).record.id)


def test_the_honest_best_is_confirmed_and_the_invented_number_refuted(
    homes: list[Path], daemons: list[Daemon], tmp_path: Path
) -> None:
    folder = write_toy_task(tmp_path / "task")
    invented = fabricate(homes[4], folder)
    start(daemons)
    author, verifiers = daemons[0], daemons[1:4]
    author.post("/v1/work", task=str(folder), runs=6, verify_share=0)
    wait_for(lambda: author.status().state == "idle")
    for verifier in verifiers:
        verifier.post("/v1/work", task=str(folder), verify_share=1)

    wait_for(lambda: all(state_of(daemon, invented) == "refuted" for daemon in daemons), VERIFY_SECONDS)

    def confirmed(daemon: Daemon) -> str:
        best = asked(daemon, "/v1/best", BestAnswer).confirmed
        return best.id if best else ""

    wait_for(lambda: all(confirmed(daemon) for daemon in daemons), VERIFY_SECONDS)
    wait_for(lambda: len({confirmed(daemon) for daemon in daemons}) == 1)
    best = asked(author, "/v1/best", BestAnswer)
    assert best.confirmed.author == author.status().device_key
    assert best.confirmed.id != invented
    shown = asked(author, f"/v1/runs/{best.confirmed.id}", ShowAnswer).verification
    assert best.confirmed.verifiers >= 3
    assert best.confirmed.verified == pytest.approx(best.confirmed.reported)
    assert all(found.counts for found in shown.measured)
    assert best.run.id == best.confirmed.id
    assert asked(author, "/v1/top", TopAnswer).programs[0].id == best.confirmed.id
    wait_for(lambda: all(told(daemon, "confirmed") for daemon in daemons))
    assert all(told(verifier, "check_started") for verifier in verifiers)
    assert not told(author, "check_started")

    accounts = asked(verifiers[0], "/v1/credit", CreditAnswer).participants
    named = [asked(verifiers[0], f"/v1/credit?participant={row.keys[0]}", CreditAnswer) for row in accounts]
    facts = [answer.participants[0] for answer in named]
    earned = next(row for row in facts if best.confirmed.id in row.confirmed.newest)
    assert earned.cpu_ms > 0
    assert earned.improvements[0].total > 0
    caught = next(row for row in facts if invented in row.refuted.newest)
    assert [mark.mark for mark in caught.marks] == ["fabricator"]
    assert any(row.refutations.count for row in accounts)
    assert verifiers[0].status().verifying.today > 0


def test_what_a_model_finds_is_verified_by_a_second_node(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    author, verifier = (Daemon(home) for home in friends(tmp_path, 2))
    request.addfinalizer(lambda: stop_all([author, verifier]))
    folder = write_toy_task(tmp_path / "task")
    pin_baseline(folder)
    with serving(nearer) as model:
        author.settings |= {"AUTORESEARCH_LLM_URL": model.url, "AUTORESEARCH_LLM_MODEL": "scripted"}
        author.settings |= {"OPENAI_API_KEY": "sk-nothing"}
        start([author, verifier])
        author.post("/v1/work", task=str(folder), runs=3, verify_share=0, proposer="llm")
        wait_for(lambda: author.status().state == "idle")
    verifier.post("/v1/work", task=str(folder), verify_share=1)
    best = asked(author, "/v1/best", BestAnswer).run
    assert best.run.proposed_by == "llm/scripted"
    assert (best.run.title, best.run.hypothesis) == ("X 0.6 -> 0.45", "nearer")
    assert best.run.value < 0.36 + 0.25

    def measured() -> list[object]:
        shown = asked(author, f"/v1/runs/{best.id}", ShowAnswer).verification
        return [found for found in shown.measured if found.counts]

    wait_for(lambda: bool(measured()), VERIFY_SECONDS)
    assert state_of(author, best.id) == state_of(verifier, best.id)
    assert asked(verifier, "/v1/best", BestAnswer).run.id == best.id


def test_a_stranger_is_told_that_its_word_does_not_count(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "stranger").start()
    try:
        refused = daemon.post("/v1/work", verify_share=1)
        assert refused.status_code == 409
        assert "nothing for it to verify" in refused.text
    finally:
        daemon.stop()
