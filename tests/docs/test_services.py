"""The page about services can be followed: its programs run in processes of their own."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, played, section, steps

PAGE = (ROOT / "docs/how-to/services.md").read_text()
PORTS = ("5588", "5589", "5590", "5591")


@pytest.mark.slow
@pytest.mark.parametrize(
    "heading",
    ["A robot as a server", "A learner and its actors", "A policy on another machine", "Other machines and keys"],
)
def test_the_programs_of_the_page_run(heading: str, tmp_path: Path) -> None:
    text = section(PAGE, heading)
    with ExitStack() as stack:  # other tests may use the page's ports
        free = [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in PORTS]
    for port, other in zip(PORTS, free, strict=True):
        text = text.replace(port, str(other))
    program = list(steps(text))
    assert program

    assert played(program, tmp_path) == program
