"""Without the extra ``network`` there is nothing here to test."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("libp2p") else ["test_*.py"]
