"""Which participants are behind the peers of a node, and what the log shows of them."""

from __future__ import annotations

import msgspec

from autoresearch.answers.models import PeersAnswer, PeerView
from autoresearch.log import Log
from autoresearch.views import banned_until, mark_view, records_of, roster_of, who


def with_participants(log: Log, answer: PeersAnswer) -> PeersAnswer:
    """The peers with the participants behind those that have proven their device key."""
    now_ms = log.newest_ms()
    return msgspec.structs.replace(answer, peers=[_with_participant(log, peer, now_ms) for peer in answer.peers])


def _with_participant(log: Log, peer: PeerView, now_ms: int) -> PeerView:
    if not peer.device_key:
        return peer
    device = bytes.fromhex(peer.device_key)
    records = records_of(log, device, now_ms)
    return msgspec.structs.replace(
        peer,
        who=who(log, device, now_ms),
        attested=roster_of(log).voice(device, now_ms).attested,
        marks=[mark_view(mark) for record in records for mark in record.marks],
        banned_until_ms=banned_until(records),
    )
