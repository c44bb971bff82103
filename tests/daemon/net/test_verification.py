"""Daemons that verify each other."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import httpx
import msgspec
import pytest

from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer
from autoresearch.paths import Paths
from autoresearch.record.record import Network
from autoresearch.task.folders import pin_baseline
from autoresearch.trust.identity import create_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.scripted_model import by, serving
from tests.daemon.test_minds import nearer
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow

VERIFY_SECONDS = 600


def friends(place: Path, count: int) -> list[Path]:
    """Homes of participants who know each other: a private network names them all."""
    made = [place / f"home{number}" for number in range(count)]
    roots = []
    for home in made:
        paths = Paths.from_environment({"AUTORESEARCH_HOME": str(home)})
        paths.create()
        roots.append(create_identity(paths.keys).root.public)
    manifest = NetworkManifest(Network(name="friends", nonce=bytes(16)), trust=Trust(participants=frozenset(roots)))
    for home in made:
        save_manifest(Paths.from_environment({"AUTORESEARCH_HOME": str(home)}).manifest, manifest)
    return made


def start(daemons: list[Daemon]) -> None:
    """Start them all, connected to the first."""
    begin(daemons[:1], "")
    begin(daemons[1:], answer_of(daemons[0], "/v1/peers", PeersAnswer).addresses[0])


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
        wait_for(lambda daemon=daemon: bool(answer_of(daemon, "/v1/peers", PeersAnswer).addresses))


def answer_of(daemon: Daemon, path: str, answer: type) -> object:
    with daemon.client() as client:
        return msgspec.json.decode(client.get(path).content, type=answer)


def state_of(daemon: Daemon, run: str) -> str:
    with daemon.client() as client:
        response = client.get(f"/v1/runs/{run}")
    return (
        msgspec.json.decode(response.content, type=ShowAnswer).verification.state if response.status_code == 200 else ""
    )


def has_event(daemon: Daemon, kind: str) -> bool:
    """Whether a daemon has told of something of this kind since it was started first."""
    with (
        daemon.client() as client,
        suppress(httpx.ReadTimeout),  # all that was kept is replayed, and nothing happens
        client.stream("GET", "/v1/events?since=0", timeout=1.0) as stream,
    ):
        return f"event: {kind}" in stream.iter_lines()
    return False


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
    best = answer_of(author, "/v1/best", BestAnswer).run
    assert by(best.run) == "llm/scripted"
    assert (best.run.title, best.run.hypothesis) == ("X 0.6 -> 0.45", "nearer")
    assert best.run.value < 0.36 + 0.25

    def measured() -> list[object]:
        verification = answer_of(author, f"/v1/runs/{best.id}", ShowAnswer).verification
        return [measurement for measurement in verification.measured if measurement.counts]

    wait_for(lambda: bool(measured()), VERIFY_SECONDS)
    assert state_of(author, best.id) == state_of(verifier, best.id)
    assert answer_of(verifier, "/v1/best", BestAnswer).run.id == best.id


def test_a_stranger_is_told_that_its_word_does_not_count(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "stranger").start()
    try:
        refused = daemon.post("/v1/work", verify_share=1)
        assert refused.status_code == 409
        assert "nothing for it to verify" in refused.text
    finally:
        daemon.stop()
