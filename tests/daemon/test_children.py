"""The daemon's end of a link: a hostile or broken child is ended and replaced, and nothing waits for it."""

from __future__ import annotations

import asyncio
import itertools
import sys
from dataclasses import replace

import msgspec
import pytest
from autoresearch_daemon.children import ChildLimits, ChildProcess

from autoresearch.link import frame

START = "import os, sys, time; fd = int(sys.argv[1]); "
HASTY = ChildLimits(look_seconds=0.01, grace_seconds=0.1, restart_seconds=3600, restart_seconds_max=3600)
QUIET = ChildLimits(look_seconds=0.01, start_seconds=0.1, silence_seconds=0.1, restart_seconds=3600)


class Message(msgspec.Struct, frozen=True, tag=True):
    text: str


HELLO = frame(Message("hello"))


async def life(program: str, limits: ChildLimits = HASTY) -> tuple[list[Message], str]:
    """What a child says, and why it ended."""
    messages: list[Message] = []
    lost: asyncio.Queue[str] = asyncio.Queue()

    async def on_message(message: Message) -> None:
        if message.text == "refused":
            raise ValueError("a mistake of the daemon's")
        messages.append(message)

    command = (sys.executable, "-S", "-c", START + program)
    child: ChildProcess[Message] = ChildProcess("it", command, Message, limits, on_message=on_message, on_lost=lost.put)
    child.start()
    reason = await lost.get()
    assert child.pid is None
    child.quit(Message("go"))
    await child.stop()
    assert await lost.get() == "was told to go", "also when it waits for its restart"
    return messages, reason


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (f"os.write(fd, {HELLO!r} + b'\\xc1' * 100); time.sleep(3600)", "sent what the daemon could not handle"),
        (f"os.write(fd, {HELLO!r} + b'\\xff' * 4); time.sleep(3600)", "sent what the daemon could not handle"),
        (
            f"os.write(fd, {HELLO + frame(Message('refused')) + HELLO!r}); time.sleep(3600)",
            "sent what the daemon could not handle",
        ),
        (f"os.write(fd, {(HELLO + HELLO[:-1])!r}); sys.exit(3)", "ended with status 3"),
        (f"os.write(fd, {HELLO!r}); os.close(fd); time.sleep(3600)", "closed its link"),
        # Another process in a session of its own holds the link when the child is gone.
        (
            f"os.write(fd, {HELLO!r}); os.fork() and os._exit(4); os.setsid(); os.read(fd, 1)",
            "ended with status 4",
        ),
    ],
)
async def test_what_was_said_is_heard_and_the_end_told(program: str, reason: str) -> None:
    assert await life(program) == ([Message("hello")], reason)


async def test_a_silent_child_is_ended() -> None:
    assert await life("time.sleep(3600)", QUIET) == ([], "did not start in time")
    limits = replace(QUIET, start_seconds=60.0)
    assert await life(f"os.write(fd, {HELLO!r}); time.sleep(3600)", limits) == ([Message("hello")], "hung")


async def test_one_that_is_told_to_go_before_it_could_hear_is_told_then() -> None:
    lost: asyncio.Queue[str] = asyncio.Queue()
    messages: asyncio.Queue[Message] = asyncio.Queue()
    command = (sys.executable, "-S", "-c", START + "os.write(fd, os.read(fd, 100))")
    child: ChildProcess[Message] = ChildProcess(
        "it", command, Message, HASTY, on_message=messages.put, on_lost=lost.put
    )
    child.start()
    await asyncio.sleep(0)  # it is being started
    child.quit(Message("go"))
    assert await lost.get() == "was told to go"
    assert await messages.get() == Message("go")
    await child.stop()


async def test_what_is_sent_to_a_child_that_does_not_listen_holds_up_nobody() -> None:
    lost: asyncio.Queue[str] = asyncio.Queue()
    messages: asyncio.Queue[Message] = asyncio.Queue()
    command = (sys.executable, "-S", "-c", START + f"os.write(fd, {HELLO!r}); time.sleep(3600)")
    child: ChildProcess[Message] = ChildProcess(
        "it", command, Message, HASTY, on_message=messages.put, on_lost=lost.put
    )
    child.start()
    await messages.get()
    for _ in range(8):
        child.send(Message("x" * (1 << 20)))
    child.kill("was of no use")
    assert await lost.get() == "was of no use"
    child.quit(Message("go"))
    await child.stop()


async def test_pauses_between_restarts_grow() -> None:
    lost: asyncio.Queue[str] = asyncio.Queue()
    began: list[float] = []
    limits = ChildLimits(restart_seconds=0.01, restart_seconds_max=0.04)
    command = (sys.executable, "-S", "-c", START + f"os.write(fd, {HELLO!r})")

    async def on_message(_: Message) -> None:
        began.append(child.began)

    child: ChildProcess[Message] = ChildProcess("it", command, Message, limits, on_message=on_message, on_lost=lost.put)
    child.start()
    for _ in range(5):
        assert await lost.get() == "ended with status 0"
    child.quit(Message("go"))
    await child.stop()
    pauses = [after - before for before, after in itertools.pairwise(began[:5])]
    assert all(pause >= least for pause, least in zip(pauses, (0.01, 0.02, 0.04, 0.04), strict=True))
    assert child.failures >= 5


async def test_what_cannot_be_started_is_tried_again_later() -> None:
    lost: asyncio.Queue[str] = asyncio.Queue()
    messages: asyncio.Queue[Message] = asyncio.Queue()
    child: ChildProcess[Message] = ChildProcess(
        "it",
        ("/nowhere/at-all",),
        Message,
        ChildLimits(restart_seconds=0.01),
        on_message=messages.put,
        on_lost=lost.put,
    )
    child.start()
    for _ in range(2):
        assert await lost.get() == "can't be started: No such file or directory"
    child.quit(Message("go"))
    await child.stop()
