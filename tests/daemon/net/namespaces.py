"""Network namespaces of Linux: two halves of a network that can be cut apart. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


def run(*words: str) -> bool:
    """Run a command; whether it worked."""
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def available() -> bool:
    """Whether namespaces with links between them can be made here."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"ar{os.getpid()}try"
    try:
        return run("ip", "netns", "add", name) and run("ip", "-n", name, "link", "add", "name", "try", "type", "bridge")
    finally:
        run("ip", "netns", "del", name)


class Halves:
    """``places`` are the namespaces of the nodes, each with its address; the first half of them is on one side."""

    def __init__(self, size: int) -> None:
        self._hub = f"ar{os.getpid()}hub"
        self.places = [(f"ar{os.getpid()}n{number}", f"10.87.0.{number + 1}") for number in range(size)]

    def build(self) -> None:
        """Two bridges in a namespace of their own, a cable between them, a cable to every node."""
        assert run("ip", "netns", "add", self._hub)
        for side in ("left", "right"):
            self._in_hub("link", "add", "name", side, "type", "bridge")
            self._in_hub("link", "set", side, "up")
        self._in_hub("link", "add", "name", "cutl", "type", "veth", "peer", "name", "cutr")
        self._in_hub("link", "set", "cutl", "master", "left", "up")
        self._in_hub("link", "set", "cutr", "master", "right", "up")
        for number, (name, ip) in enumerate(self.places):
            side = "left" if number < len(self.places) / 2 else "right"
            assert run("ip", "netns", "add", name)
            self._in_hub("link", "add", "name", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            self._in_hub("link", "set", f"v{number}", "master", side, "up")
            for words in (
                ("addr", "add", f"{ip}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                assert run("ip", "-n", name, *words)

    def cut(self) -> None:
        """Nothing goes from one half to the other."""
        self._in_hub("link", "set", "cutl", "down")

    def mend(self) -> None:
        """The cable is back."""
        self._in_hub("link", "set", "cutl", "up")

    def remove(self) -> None:
        """Take everything away."""
        for name in (self._hub, *(name for name, _ in self.places)):
            run("ip", "netns", "del", name)

    def _in_hub(self, *words: str) -> None:
        assert run("ip", "-n", self._hub, *words), words


@contextmanager
def halves(size: int) -> Iterator[Halves]:
    """Two halves for as long as the context lasts."""
    made = Halves(size)
    try:
        made.build()
        yield made
    finally:
        made.remove()
