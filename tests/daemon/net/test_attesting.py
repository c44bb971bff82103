"""Whole daemons on loopback, a real mail server: a participant becomes attested, and nobody learns the address."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from autoresearch.ask.people.participants import AttestAnswer, AttestorAnswer
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.paths import Paths
from autoresearch.record.record import Network
from autoresearch.trust.attestation import find_codes
from autoresearch.trust.identity import create_identity, load_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.trust.roster import Trust
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.trust.attesting.postoffice import PASSWORD, PostOffice, post_office
from tests.warm import run_command

pytestmark = pytest.mark.slow

NETWORK = Network(name="tea", nonce=bytes(16))
WORDS = "correct horse battery staple"
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
        identities.append(create_identity(paths.keys, passphrase=WORDS if home.name == "ada" else None))
    trust = Trust(frozenset(identity.root.public for identity in identities[:2]), 2)
    made: list[Daemon] = []
    try:
        first = ""
        for home in homes:
            save_manifest(
                Paths.from_environment({"AUTORESEARCH_HOME": str(home)}).manifest, NetworkManifest(NETWORK, trust)
            )
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
            made.append(Daemon(home, settings))
            if home.name == "ada":
                assert command(made[-1], "node", "id", "renew").returncode == 0
            made[-1].launch()
            if not first:
                made[0].ready()
                wait_for(lambda: bool(get(made[0], "/v1/peers")["addresses"]))
                first = get(made[0], "/v1/peers")["addresses"][0]
        for daemon in made:
            daemon.ready()
        wait_for(lambda: is_connected(made[2]))
        yield made
    finally:
        stop_all(made)


def get(daemon: Daemon, path: str) -> dict[str, Any]:
    with daemon.client() as client:
        return client.get(path).json()  # type: ignore[no-any-return]


def is_connected(daemon: Daemon) -> bool:
    return bool(get(daemon, "/v1/peers")["network"]["connected"] >= 2)


def command(daemon: Daemon, *words: str, text: str = "", passphrase: str = WORDS) -> subprocess.CompletedProcess[str]:
    """The command line on a daemon's machine."""
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home), "AUTORESEARCH_PASSPHRASE": passphrase}
    return run_command(*words, environment=environment, stdin=text)


def answered(ended: subprocess.CompletedProcess[str]) -> AttestAnswer:
    assert ended.returncode == 0, ended.stderr
    return msgspec.json.decode(ended.stdout, type=AttestAnswer)


def test_a_participant_with_an_encrypted_key_becomes_attested_and_the_address_is_nowhere(
    daemons: list[Daemon], office: PostOffice
) -> None:
    attestor, _, ada, stranger = daemons
    answer = answered(command(ada, "node", "id", "attest", ADDRESS, "--json"))
    assert (len(answer.awaited), answer.refused, answer.attested) == (2, [], False)
    mails = [mail.as_string() for to, mail in office.mails if to == ADDRESS]
    assert "2 mails on the way" in command(ada, "node", "id", "attest", "--status").stderr

    ada.stop()  # the daemon forgets nothing
    assert "the daemon is not running" in command(ada, "node", "id", "confirm", mails[0]).stderr
    assert answered(command(ada, "node", "id", "attest", "--status", "--json")).reason.startswith("0 of 2")
    ada.start()
    wait_for(lambda: is_connected(ada))

    assert "wrong" in command(ada, "node", "id", "confirm", text=mails[0], passphrase="guess").stderr
    mistyped = command(ada, "node", "id", "confirm", "K7QXM-3PDTF-A2WZN-6HRYB")
    assert (mistyped.returncode, "no attestor waits for this code" in mistyped.stderr) == (2, True)
    first = command(ada, "node", "id", "confirm", *find_codes(mails[0])[0].lower().split("-"), "--json")
    assert answered(first).reason == "1 of 2 attestors have seen a mailbox"
    done = answered(command(ada, "node", "id", "confirm", "--json", text=mails[0] + mails[1]))
    assert done.attested
    assert command(ada, "node", "id", "confirm", text=mails[1]).returncode == 4

    device = load_identity(ada.paths.keys).device.public

    def others_know() -> bool:
        trust = load_manifest(stranger.paths.manifest).trust
        with Log.open(stranger.paths.log, NETWORK, read_only=True, trust=trust) as log:
            return roster_of(log).voter(device, done.attestations[-1].since_ms + 60_000).attested

    wait_for(others_know)
    log = msgspec.json.decode(command(attestor, "network", "attestor", "log", "--json").stdout, type=AttestorAnswer)
    assert (log.attested, log.trusted) == (1, True)
    assert [act.what for act in log.acts] == ["attested", "mailed"]
    assert "1 mail, 1 attestation, 0 refusals" in command(attestor, "network", "attestor", "log").stderr
    assert command(stranger, "network", "attestor", "log").returncode == 6
    assert PASSWORD not in command(attestor, "node", "config", "show", "--json").stdout

    attest_at_a_terminal(stranger, office)
    for daemon in (attestor, ada):
        with daemon.client() as client:
            assert "lovelace" not in client.get("/metrics").text + client.get("/v1/attest").text
    codes = [code for mail in mails for code in find_codes(mail)]
    assert len(codes) == 2
    stop_all(daemons)
    written = b"".join(path.read_bytes() for path in ada.home.parent.rglob("*") if path.is_file()).lower()
    for secret in ("lovelace", "example.org", "bob@example", PASSWORD, WORDS, *codes):
        assert secret.lower().encode() not in written
    assert b'"what": "mailed"' in written


def attest_at_a_terminal(stranger: Daemon, office: PostOffice) -> None:
    """Type the command and, one after the other, the codes that it asks for."""
    wait_for(lambda: is_connected(stranger))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "AUTORESEARCH_HOME": str(stranger.home), "TERM": "dumb"}
    words = (sys.executable, "-m", "autoresearch_cli", "node", "id", "attest", "bob@example.com")
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        output = read_until(ours, "Enter: later")
        first, second = (find_codes(text)[0] for text in office.text_to("bob@example.com"))
        os.write(ours, b"00000-00000-00000-00000\n")
        assert "no attestor waits for this code" in read_until(ours, "Enter: later")
        os.write(ours, first.encode() + b"\n")
        assert "1 of 2 attestors" in read_until(ours, "Enter: later")
        os.write(ours, second.lower().encode() + b"\n")
        output = read_until(ours, "until")
        assert process.wait() == 0
    os.close(ours)
    assert "2 attestors saw control of a mailbox" in output
    assert get(stranger, "/v1/attest")["attested"]


def read_until(terminal: int, words: str) -> str:
    """What a terminal shows, up to some words and what comes with them."""
    output = ""
    while words not in output:
        output += os.read(terminal, 65_536).decode(errors="replace")
    return output
