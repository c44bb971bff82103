"""Peers that lie need libp2p: without the extra ``network`` there are none."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("libp2p") else ["test_exchange.py", "test_wire.py"]
