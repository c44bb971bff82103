"""The interface of attestors, which are extensions: ``docs/reference/extending.md``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.participants import AttestorAnswer
from autoresearch.errors import NotFound
from autoresearch.paths import Paths
from autoresearch.record.kinds import Attestation
from autoresearch.settings import Settings


class AttestorNode(NamedTuple):
    """The node of an attestor. ``environment`` is that of its start, ``peer()`` its id in the network."""

    notebook: Notebook
    paths: Paths
    settings: Settings
    environment: Mapping[str, str]
    peer: Callable[[], str]
    now_ms: Callable[[], int]


class AttestorExtension:
    """An attestor without any rules. ``problem``: why it can't attest now; empty where it can."""

    problem = ""

    def __init__(self, node: AttestorNode) -> None:
        self.node = node

    async def keep(self) -> None:
        """What it does besides, until cancelled. Like ``answer`` it shares the node's loop, which it must not block."""

    async def answer(self, peer: str, data: bytes) -> bytes | None:  # noqa: ARG002 - for those that answer
        """The reply to what a peer asks, such as :class:`autoresearch.trust.attestation.Request`; None: no reply."""
        return None

    def log(self) -> AttestorAnswer:
        """What it did."""
        notebook = self.node.notebook
        root = notebook.identity.root.public
        trusted = root in notebook.log.trust.attestors
        return AttestorAnswer(attestor=root.hex(), trusted=trusted, mailed=0, attested=0, refused=0, acts=[])

    def withdraw(self, participant: bytes, reason: str) -> list[Attestation]:
        """Take back what it said of a participant, its root key. Raises NotFound."""
        attestations = self.node.notebook.withdraw_attestations(participant, self.node.now_ms(), reason=reason)
        if not attestations:
            raise NotFound(
                "this attestor has said nothing of that participant", hint="autoresearch network attestor log"
            )
        return attestations

    def allow(self, participant: bytes) -> None:  # noqa: ARG002 - for those that refuse some
        """Attest a participant again whose attestation was withdrawn. Raises NotFound."""
        raise NotFound("this attestor refuses no participant", hint="autoresearch network attestor log")

    def close(self) -> None:
        """Close what it has open."""
