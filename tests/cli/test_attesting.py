"""Codes that are typed or pasted: each is brought to its attestor, whatever the others say."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from autoresearch_cli import home

from autoresearch.ask.people.participants import AttestAnswer, CodeView, ConfirmRequest
from autoresearch.errors import AutoresearchError
from autoresearch.trust.attestation import write_code
from tests.cli.conftest import Cli

TOKEN1 = bytes(range(10))
ATTESTORS = [b"a" * 32, b"b" * 32]


class HalfThere:
    """A daemon that waits for two codes and finds the first one's attestor gone."""

    def __init__(self) -> None:
        self.brought: list[str] = []
        self.awaited = [
            CodeView(
                attestor=attestor.hex(),
                attestor_peer="there",
                peer="here",
                token=(attestor[:16]).hex(),
                until_ms=time.time_ns() // 1_000_000 + 60_000,
            )
            for attestor in ATTESTORS
        ]

    def ask(self, _: Callable[..., AttestAnswer], request: ConfirmRequest | None = None) -> AttestAnswer:
        if request:
            self.brought.append(request.token)
            if len(self.brought) == 1:
                raise AutoresearchError("that peer is not connected")
        return AttestAnswer(
            participant="0" * 64, attested=False, reason="none yet", needed=2, attestors=2, awaited=self.awaited
        )


def test_a_code_is_brought_though_the_attestor_of_another_one_is_gone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("node", "id", "new", "--no-passphrase").exit_code == 0
    daemon = HalfThere()
    monkeypatch.setattr(home, "client", lambda: daemon)
    codes = [write_code(TOKEN1, attestor[:16], attestor) for attestor in ATTESTORS]
    ended = cli("node", "id", "confirm", *codes)
    assert daemon.brought == [code.token for code in daemon.awaited]
    assert (ended.exit_code, "not connected" in ended.stderr) == (1, True)
