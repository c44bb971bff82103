"""Ask one node which network it is in: a short-lived libp2p host (trio). Prints the manifest in hexadecimal.

``python -m autoresearch_daemon.net.asking FOLDER ADDRESS``, started by the command line, which imports no libp2p. It
has the key of this node, so that the other one knows a single peer, and keeps nothing else: no address book, no port.
"""

from __future__ import annotations

import logging
import resource
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import trio

from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch_daemon.net.host.dialling import Unreachable
from autoresearch_daemon.net.host.guards import split_address
from autoresearch_daemon.net.host.host import Host, host_key
from autoresearch_daemon.net.host.streams import FrameStream, StreamBroken
from autoresearch_daemon.net.model import HostOptions, Topic

MEMORY_BYTES = 1536 << 20


class Nobody:
    """Handlers of a host that serves nothing."""

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:  # noqa: ARG002 - the protocol's names
        """No record is taken."""
        return False

    async def on_sync(self, stream: FrameStream) -> None:
        """No exchange."""
        await stream.reset()

    async def on_blob(self, peer: str, digest: bytes, offset: int, length: int) -> bytes | None:  # noqa: ARG002
        """No blob."""
        return None

    async def on_question(self, peer: str, topic: Topic, data: bytes) -> bytes | None:  # noqa: ARG002
        """No answer."""
        return None

    def on_change(self) -> None:
        """Nothing."""


async def ask(folder: Path, address: str) -> bytes:
    """The manifest's bytes as the node gives them. Raises Unreachable, StreamBroken, TooSlowError, ValueError."""
    own = HostOptions(folder=str(folder), network=DEFAULT_NETWORK)
    host_key(own)
    with scratch_folder() as scratch:
        place = str(scratch.folder)
        shutil.copy2(own.key_file, place)
        options = HostOptions(folder=place, network=DEFAULT_NETWORK, listen=("/ip4/127.0.0.1/tcp/0",), lan=False)
        async with Host(options, Nobody()).run() as host:
            await host.dial(address)
            split = split_address(address, names=True)
            assert split is not None
            return await host.ask_network(split[1])


def main() -> None:
    """Entry of the program: the answer on standard output, or a sentence on standard error and exit status 1."""
    folder, address = sys.argv[1:]
    logging.basicConfig(level=logging.ERROR)
    with suppress(ValueError, OSError):  # a stricter limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        answer = trio.run(ask, Path(folder), address)
    except* (Unreachable, StreamBroken, trio.TooSlowError, ValueError) as group:
        print(next(sentences(group)), file=sys.stderr)  # noqa: T201 - the program's answer
        sys.exit(1)
    print(answer.hex())  # noqa: T201


def sentences(group: BaseExceptionGroup[BaseException]) -> Iterator[str]:
    """The texts of the errors in a group."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from sentences(error)
        else:
            yield str(error) or "it took too long"


if __name__ == "__main__":
    main()
