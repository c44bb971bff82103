"""The addresses that ask the node itself: what it does, and what it shall do."""

from __future__ import annotations

from autoresearch.api import (
    AllowRequest,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    BlockRequest,
    ConfirmRequest,
    DialRequest,
    FetchRequest,
    Health,
    NameRequest,
    PauseRequest,
    PeersAnswer,
    RunAccepted,
    RunRequest,
    StatusAnswer,
    TrustAnswer,
    VerifyRequest,
    WithdrawnAnswer,
    WithdrawRecordRequest,
    WithdrawRequest,
    WorkRequest,
)
from autoresearch.records import BlobRef
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.requests import Nothing, OneProof


def get_status(node: NodePort, _: Nothing) -> StatusAnswer:
    """What the node does, and why."""
    return node.status()


def post_work(node: NodePort, asked: WorkRequest) -> StatusAnswer:
    """Work until told otherwise, for a number of runs, or until a time."""
    return node.work(asked)


def post_pause(node: NodePort, asked: PauseRequest) -> StatusAnswer:
    """Pause, for ever or until a time."""
    return node.pause(asked)


def post_resume(node: NodePort, _: Nothing) -> StatusAnswer:
    """End a pause."""
    return node.resume()


def post_finish(node: NodePort, _: Nothing) -> StatusAnswer:
    """End the run in hand, then stop working."""
    return node.finish()


def post_run(node: NodePort, asked: RunRequest) -> RunAccepted:
    """Run a task folder once as it stands."""
    return node.run(asked)


async def get_peers(node: NodePort, _: Nothing) -> PeersAnswer:
    """This node on the network, and its peers."""
    return await node.peers()


async def post_peers(node: NodePort, asked: DialRequest) -> PeersAnswer:
    """Begin to connect to another node, and stay connected."""
    return await node.dial(asked)


async def post_verify(node: NodePort, asked: VerifyRequest) -> RunAccepted:
    """Measure a run of somebody else here."""
    return await node.verify(asked)


async def post_proof_check(node: NodePort, asked: OneProof) -> RunAccepted:
    """Measure once more here what a verifier states that it measured; nothing is published."""
    return await node.check_proof(asked.id, asked.kind)


async def post_block(node: NodePort, asked: BlockRequest) -> PeersAnswer:
    """Refuse a peer from now on, or no longer."""
    return await node.block(asked)


async def post_fetch(node: NodePort, asked: FetchRequest) -> Health:
    """Get a blob from other nodes, unless it is here."""
    blob = BlobRef(
        sha256=bytes.fromhex(asked.sha256),
        size=asked.size,
        manifest=bytes.fromhex(asked.manifest) if asked.manifest else None,
    )
    await node.fetch(blob, asked.seconds)
    return Health(status="here")


def post_name(node: NodePort, asked: NameRequest) -> StatusAnswer:
    """Publish what this participant calls itself; with an empty name that it has none any more."""
    return node.call(asked)


def post_withdraw_record(node: NodePort, asked: WithdrawRecordRequest) -> WithdrawnAnswer:
    """Withdraw a run or a note of this node: it stays in the log and ranks nowhere."""
    return node.withdraw(asked)


def post_trust(node: NodePort, _: Nothing) -> TrustAnswer:
    """Trust whom the network's file trusts by now."""
    return node.take_trust()


def get_attest(node: NodePort, _: Nothing) -> AttestAnswer:
    """How this participant stands with the attestors."""
    return node.attesting.standing()


async def post_attest(node: NodePort, asked: AttestRequest) -> AttestAnswer:
    """Have attestors write to an address, which is kept nowhere."""
    return await node.attesting.ask(asked)


async def post_confirm(node: NodePort, asked: ConfirmRequest) -> AttestAnswer:
    """Bring an attestor the root key's answer to its code."""
    return await node.attesting.confirm(asked)


def get_attestor(node: NodePort, _: Nothing) -> AttestorAnswer:
    """What this node mailed, attested and refused as an attestor."""
    return node.attesting.log()


def post_withdraw(node: NodePort, asked: WithdrawRequest) -> AttestorAnswer:
    """Take back what this attestor said of a participant, and attest its mailbox no more."""
    return node.attesting.withdraw(asked)


def post_allow(node: NodePort, asked: AllowRequest) -> AttestorAnswer:
    """Attest a mailbox again of which this attestor took its word back."""
    return node.attesting.allow(asked)


def post_stop(node: NodePort, _: Nothing) -> Health:
    """End the daemon."""
    node.ask_stop()
    return Health(status="stopping")
