"""Whole daemons on loopback, a real mail server: a participant becomes attested, and nobody learns the address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from autoresearch.answers import AttestAnswer, AttestorAnswer, confirmations
from autoresearch.attesting import find_codes
from autoresearch.identity import KeyPair, Trust, create_identity, load_identity
from autoresearch.log import Log
from autoresearch.networks import Manifest, load_manifest, save_manifest
from autoresearch.paths import Paths
from autoresearch.records import Network
from autoresearch.views import roster_of
from tests.attesting.postoffice import PASSWORD, PostOffice, post_office
from tests.daemon.daemons import Daemon, wait_for

pytestmark = pytest.mark.slow

NETWORK = Network(name="tea", nonce=bytes(16))
ADDRESS = "ada.lovelace@example.org"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[PostOffice]:
    with post_office(tmp_path / "office") as made:
        yield made


@pytest.fixture
def daemons(tmp_path: Path, office: PostOffice) -> Iterator[list[Daemon]]:
    """Two attestors, and a participant and a stranger who trust them."""
    homes = [tmp_path / "homes" / name for name in ("attestor-0", "attestor-1", "ada", "stranger")]
    identities = []
    for home in homes:
        paths = Paths.from_environment({"AUTORESEARCH_HOME": str(home)})
        paths.create()
        identities.append(create_identity(paths.keys))
    trust = Trust(frozenset(identity.root.public for identity in identities[:2]), 2)
    made: list[Daemon] = []
    try:
        first = ""
        for home in homes:
            save_manifest(Paths.from_environment({"AUTORESEARCH_HOME": str(home)}).manifest, Manifest(NETWORK, trust))
            settings = {
                "AUTORESEARCH_WORK_WORKERS": "0",
                "AUTORESEARCH_LOGGING_LEVEL": "debug",
                "AUTORESEARCH_NETWORK_ENABLED": "true",
                "AUTORESEARCH_NETWORK_LAN": "false",
                "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
                "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
                "AUTORESEARCH_NETWORK_BOOTSTRAP": first,
            }
            if "attestor" in home.name:
                settings |= office.settings(tmp_path / "password")
            made.append(Daemon(home, settings).start())
            wait_for(lambda: bool(get(made[-1], "/v1/peers")["addresses"]))
            first = first or get(made[-1], "/v1/peers")["addresses"][0]  # type: ignore[index]
        wait_for(lambda: get(made[2], "/v1/peers")["network"]["connected"] >= 2)  # type: ignore[call-overload,operator]
        yield made
    finally:
        for daemon in made:
            daemon.stop()


def get(daemon: Daemon, path: str) -> dict[str, object]:
    with daemon.client() as client:
        return client.get(path).json()  # type: ignore[no-any-return]


def answered(response: httpx.Response) -> AttestAnswer:
    assert response.status_code == 200, response.text
    return msgspec.json.decode(response.content, type=AttestAnswer)


def test_a_participant_becomes_attested_and_the_address_is_nowhere(daemons: list[Daemon], office: PostOffice) -> None:
    attestor, _, ada, stranger = daemons
    with ada.client() as client:
        client.timeout = 120
        asked = answered(client.post("/v1/attest", json={"address": ADDRESS}))
    assert (len(asked.awaited), asked.refused) == (2, [])
    texts = office.text_to(ADDRESS)
    identity = load_identity(ada.paths.keys)
    assert isinstance(identity.root, KeyPair)
    ada.stop()  # the daemon forgets nothing
    ada.start()
    wait_for(lambda: get(ada, "/v1/peers")["network"]["connected"] >= 2)  # type: ignore[call-overload,operator]
    for request in confirmations("\n".join(texts), asked.awaited, identity.root, identity.device.public, NETWORK.id):
        done = answered(ada.post("/v1/attest/confirm", token=request.token, signature=request.signature))
    assert done.attested
    assert ada.post("/v1/attest/confirm", token=request.token, signature=request.signature).status_code == 404

    def others_know() -> bool:
        with Log.open(stranger.paths.log, NETWORK, read_only=True, trust=trust_of(stranger)) as log:
            return roster_of(log).voice(identity.device.public, done.attestations[0].since_ms + 60_000).attested

    wait_for(others_know)
    log = msgspec.json.decode(msgspec.json.encode(get(attestor, "/v1/attestor")), type=AttestorAnswer)
    assert (log.attested, log.trusted) == (1, True)
    assert [act.what for act in log.acts] == ["attested", "mailed"]
    assert get(stranger, "/v1/attest")["attested"] is False
    with stranger.client() as client:
        assert client.get("/v1/attestor").status_code == 409
    for daemon in (attestor, ada):
        with daemon.client() as client:
            assert "lovelace" not in client.get("/metrics").text + client.get("/v1/attest").text

    codes = [code for text in texts for code in find_codes(text)]
    for daemon in daemons:
        daemon.stop()
    written = b"".join(path.read_bytes() for path in (ada.home.parent).rglob("*") if path.is_file()).lower()
    for secret in ("lovelace", "example.org", PASSWORD, *codes):
        assert secret.lower().encode() not in written
    assert b'"what": "mailed"' in written or b'"what":"mailed"' in written


def trust_of(daemon: Daemon) -> Trust:
    return load_manifest(daemon.paths.manifest).trust
