"""What ``doctor network`` says of peers that this node itself refuses."""

from __future__ import annotations

import pytest
from autoresearch_cli.acts.network_checks import beginning, connections

from autoresearch.ask.node import PeerView

PEER = "12D3KooWCg5y8QhiE4NmZKhjFM3cFT4EBt6EPmAP5V8sT6co7cuh"


@pytest.mark.parametrize("peer", [PeerView(peer=PEER, blocked=True), PeerView(peer=PEER, shut_out="sent rubbish")])
def test_who_is_refused_here_is_not_said_to_refuse_us(peer: PeerView) -> None:
    check = beginning(f"/ip4/127.0.0.1/tcp/1/p2p/{PEER}", {PEER: peer})
    assert (check.result, check.fix) == ("warning", f"autoresearch network peers unblock {PEER}")
    alone = connections([peer])
    assert "1 peer may not connect: blocked or shut out here" in alone.detail
    assert "autoresearch network peers unblock" in alone.fix
    assert "unblock" not in connections([PeerView(peer=PEER)]).fix
