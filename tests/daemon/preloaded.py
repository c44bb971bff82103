"""What daemons of tests begin with: their modules, and what an attack on the sandbox of this machine found, once.

Daemons that ``autoresearch up`` starts, or that run elsewhere than here, attack theirs themselves.
"""

from __future__ import annotations

import autoresearch_daemon.main  # noqa: F401 - loaded for those that begin here
from autoresearch_daemon import node

from autoresearch.run.sandbox.probes import detect_level

VERDICT = detect_level()
node.detect_level = lambda *_: VERDICT
