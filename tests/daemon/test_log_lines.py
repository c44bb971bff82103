"""The daemon's log: what others wrote steers no terminal and makes no line of its own."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.nasty import FORGED, NASTY, STEERING, harms
from tests.terminals import on_terminal

LOGGING = """
import json, logging, sys
from pathlib import Path
import structlog
from autoresearch_daemon.events import set_up_logging
from autoresearch_daemon.net.host.child import SanitisedFormatter

nasty = json.loads(sys.argv[2])
set_up_logging(Path(sys.argv[1]), "info", to_terminal=True)
structlog.get_logger().warning(nasty, reason=nasty, peers=[nasty], seconds=1.5)
logging.getLogger("library").warning("%s", nasty)
try:
    raise ValueError(nasty)
except ValueError:
    structlog.get_logger().exception("failed")
    logging.getLogger("library").exception("failed too")
child = logging.StreamHandler()
child.setFormatter(SanitisedFormatter("network process: %(message)s"))
logging.basicConfig(handlers=[child], force=True)
logging.getLogger("child").warning("%s", nasty)
"""


@pytest.mark.slow
def test_lines_on_a_terminal_and_in_the_file_are_harmless(tmp_path: Path) -> None:
    file = tmp_path / "daemon.log"
    text = on_terminal([sys.executable, "-c", LOGGING, str(file), json.dumps(NASTY)])
    assert STEERING not in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not harms(plain)
    assert "network process: \ufffd[5;41m" in plain
    assert "ValueError" in plain, "an exception has its traceback"
    lines = file.read_text().splitlines()
    assert [json.loads(line).get("event")[:6] for line in lines] == ["\ufffd[5;41", "\ufffd[5;41", "failed", "failed"]
    assert json.loads(lines[0])["seconds"] == 1.5
    assert all("ValueError" in json.loads(line)["exception"] for line in lines[2:])
    assert not harms("".join(lines))
    forged = [line for line in plain.splitlines() if line.startswith(FORGED)]
    assert len(forged) <= 2, "only the two tracebacks have lines"
