"""What a service manager is told: that the node is ready, what it does, and that its event loop goes on.

The protocol is that of ``sd_notify(3)``: datagrams of ``NAME=value`` lines to the socket named in ``NOTIFY_SOCKET``.
Without that variable nobody is told anything.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, MutableMapping
from contextlib import suppress

# Without a watchdog the sentence is looked at so often; with one at half of its time, at most.
USUAL_SECONDS = 10.0
SENTENCE_BYTES = 200


class ServiceManager:
    """The manager that started this process, if one did."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        """Take its variables out of the environment: children of this process are none of its business."""
        address = environment.pop("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        microseconds = environment.pop("WATCHDOG_USEC", "")
        environment.pop("WATCHDOG_PID", None)
        self._seconds = min(int(microseconds) / 2e6, USUAL_SECONDS) if microseconds.isdigit() else USUAL_SECONDS

    def tell(self, *lines: str) -> None:
        """Send lines such as ``READY=1``. A manager that is gone is no reason to fail."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.settimeout(0)
            sender.sendto("\n".join(lines).encode(), self._address)

    async def keep_telling(self, sentence: Callable[[], str]) -> None:
        """Say what the node does and that its loop goes on, until cancelled. The first says that it is ready."""
        if not self._address:
            return
        first = ["READY=1"]
        while True:
            status = " ".join(sentence().split()).encode()[:SENTENCE_BYTES].decode(errors="ignore")
            self.tell(*first, f"STATUS={status}", "WATCHDOG=1")
            first = []
            await asyncio.sleep(self._seconds)
