"""What daemons of tests begin with: their modules, and what an attack on the sandbox of this machine found, once.

Their children begin with these modules too, and so do commands that start a daemon. Daemons of a Python that was
started for them, or that run elsewhere than here, attack their sandbox themselves.
"""

from __future__ import annotations

from contextlib import suppress

import autoresearch_daemon.main
import autoresearch_daemon.workers.assignment
from autoresearch_daemon import node

from autoresearch.face.pages.rendering import compile_templates
from autoresearch.run.sandbox.probes import detect_level
from tests.warm import COMMAND_MODULES, load

with suppress(ImportError):  # without libp2p no daemon starts its network process
    import autoresearch_daemon.net.host.child  # noqa: F401
load(*COMMAND_MODULES)
compile_templates()
VERDICT = detect_level()
node.detect_level = lambda *_: VERDICT
