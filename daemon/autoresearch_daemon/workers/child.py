"""A worker process: hears the daemon on the ZeroMQ link while a thread carries out the assignment in hand."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import queue
import signal
import sys
import threading
from dataclasses import dataclass, field

import zmq
import zmq.asyncio

from autoresearch.paths import Paths
from autoresearch.running import sweep
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.assignment import Workplace, carry_out

ALIVE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Conversation:
    """What the thread with the assignment says to the daemon, and hears from it."""

    assignment: str
    loop: asyncio.AbstractEventLoop
    outbox: asyncio.Queue[protocol.FromWorker]
    stop: threading.Event = field(default_factory=threading.Event)
    answers: queue.SimpleQueue[bool] = field(default_factory=queue.SimpleQueue)

    def say(self, message: protocol.FromWorker) -> None:
        """Send a message."""
        self.loop.call_soon_threadsafe(self.outbox.put_nowait, message)

    def ask(self, proposal: protocol.Proposal) -> bool:
        """Propose something: may it be run? What comes first counts: an approval, a refusal or the end of it all.

        What was approved is a run, and has a record of how it ended, also when it is cancelled before it begins.
        """
        self.say(proposal)
        return self.answers.get()

    def cancelled(self) -> bool:
        """Whether the daemon wants the assignment stopped."""
        return self.stop.is_set()


class Worker:
    """The process's main loop."""

    def __init__(self, socket: zmq.asyncio.Socket, place: Workplace) -> None:
        self._socket = socket
        self._place = place
        self._outbox: asyncio.Queue[protocol.FromWorker] = asyncio.Queue()
        self._talk: Conversation | None = None
        self._job: asyncio.Task[None] | None = None

    async def serve(self) -> None:
        """Work until told to quit; the assignment in hand is ended first."""
        sender = asyncio.create_task(self._send())
        heart = asyncio.create_task(self._beat())
        self._outbox.put_nowait(protocol.Ready(pid=os.getpid(), device=self._place.device))
        while not isinstance(message := protocol.decode_from_daemon(await self._socket.recv()), protocol.Quit):
            self._hear(message)
        if self._job:
            # It may still wait for the answer to what it proposed.
            hearing = asyncio.create_task(self._go_on_hearing())
            await self._job
            hearing.cancel()
        await self._outbox.join()
        sender.cancel()
        heart.cancel()

    async def _go_on_hearing(self) -> None:
        while True:
            message = protocol.decode_from_daemon(await self._socket.recv())
            if not isinstance(message, protocol.Work):
                self._hear(message)

    def _hear(self, message: protocol.FromDaemon) -> None:
        if isinstance(message, protocol.Work):
            self._talk = Conversation(message.assignment, asyncio.get_running_loop(), self._outbox)
            self._job = asyncio.create_task(asyncio.to_thread(carry_out, message, self._talk, self._place))
        elif self._talk and not isinstance(message, protocol.Quit) and message.assignment == self._talk.assignment:
            if isinstance(message, protocol.Cancel):
                self._talk.stop.set()
            self._talk.answers.put(isinstance(message, protocol.Approve))

    async def _send(self) -> None:
        while True:
            message = await self._outbox.get()
            await self._socket.send(protocol.encode(message))
            self._outbox.task_done()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS)
            self._outbox.put_nowait(protocol.Alive())


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the daemon ends, however it ends (Linux: prctl(2))."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)


def give_way(nice: int) -> None:
    """Have this process and the runs that it starts give way to other programs; never less than they do already."""
    least = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(least, nice))


async def connect(link: str, name: str, place: Workplace) -> None:
    """Open the link and work."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, name.encode())
    socket.setsockopt(zmq.LINGER, 1000)
    socket.connect(link)
    try:
        await Worker(socket, place).serve()
    finally:
        socket.close()
        context.term()


def main() -> None:
    """Entry of the process; started by the daemon's pool only."""
    parser = argparse.ArgumentParser()
    for option in ("--link", "--name", "--device", "--parent"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    die_with_parent(int(options.parent))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the daemon's to handle
    place = Workplace.from_environment(Paths.from_environment(os.environ), options.name, options.device)
    give_way(place.nice)
    for folder in (None, place.paths.task_data):  # of a worker before this one, that was killed
        sweep(folder)
    asyncio.run(connect(options.link, options.name, place))


if __name__ == "__main__":
    main()
