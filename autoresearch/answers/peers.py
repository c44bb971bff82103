"""Which participants are behind the peers of a node, and what the log shows of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from autoresearch.api import PeersAnswer, PeerView
from autoresearch.log import Log
from autoresearch.views import (
    TrackRecord,
    banned_until,
    in_snapshot,
    mark_view,
    participant_of,
    records_behind,
    roster_of,
)


@in_snapshot
def with_participants(log: Log, answer: PeersAnswer) -> PeersAnswer:
    """The peers with the participants behind those that have proven their device key."""
    now_ms = log.records.newest_ms()
    devices = [bytes.fromhex(peer.device_key) for peer in answer.peers if peer.device_key]
    found = iter(records_behind(log, [(device, now_ms) for device in devices]))
    peers = [_with_participant(log, peer, next(found), now_ms) if peer.device_key else peer for peer in answer.peers]
    return msgspec.structs.replace(answer, peers=peers)


def _with_participant(log: Log, peer: PeerView, records: Sequence[TrackRecord], now_ms: int) -> PeerView:
    device = bytes.fromhex(peer.device_key)
    return msgspec.structs.replace(
        peer,
        participant=participant_of(log, device, now_ms),
        attested=roster_of(log).voter(device, now_ms).attested,
        marks=[mark_view(mark) for record in records for mark in record.marks],
        banned_until_ms=banned_until(records),
    )
