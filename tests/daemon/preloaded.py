"""What daemons of tests begin with: their modules, and what an attack on the sandbox of this machine found, once.

Their children begin with these modules too, and so do commands that start a daemon. Daemons of a Python that was
started for them, or that run elsewhere than here, attack their sandbox themselves.
"""

from __future__ import annotations

from contextlib import suppress

import autoresearch_daemon.main
import autoresearch_daemon.workers.assignment

from autoresearch.face.pages.rendering import compile_templates
from autoresearch.run.sandbox import probes
from tests.walls import attacked_once
from tests.warm import COMMAND_MODULES, load

with suppress(ImportError):  # without libp2p no daemon starts its network process
    import autoresearch_daemon.net.host.child  # noqa: F401
load(*COMMAND_MODULES)
compile_templates()
probes.probe_sandbox = attacked_once
probes.detect_level()
