"""What a person sees of a program that runs on a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

from tests.warm import COMMAND, warm_command

AUTORESEARCH = [sys.executable, "-m", "autoresearch_cli"]


def on_terminal(command: list[str], *, typed: str = "", **variables: str) -> str:
    """Run a command on a new terminal to its end: with these variables of the environment, and a person who types.

    Returns:
        Everything that it wrote, with ``\\n`` at the end of lines.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "PAGER": "cat", **variables}
    if command[:3] == AUTORESEARCH:
        streams = dict.fromkeys(range(3), theirs)
        process = warm_command(command[3:]).start(COMMAND, *command[3:], descriptors=streams, environment=environment)
    else:
        process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, typed.encode())
    output = b""
    try:
        while piece := os.read(ours, 65536):
            output += piece
    except OSError:  # Linux says EIO when the last process has closed the terminal
        pass
    finally:
        os.close(ours)
    process.wait()
    return re.sub("\r+\n", "\n", output.decode())
