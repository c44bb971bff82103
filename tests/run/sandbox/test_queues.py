"""Memory that no process has counts as the run's: in sockets, pipes, files in memory, page tables."""

from __future__ import annotations

import mmap
import threading
from dataclasses import replace

import pytest

from autoresearch.run.sandbox.job import Level
from tests.run.sandbox.support import MIB, SMALL, run

LIMITS = replace(SMALL, memory_bytes=96 * MIB, disk_bytes=256 * MIB)
# Each holds 150 MiB and more, and little of it is resident. It then waits to be seen.
PREAMBLE = """
import array, ctypes, fcntl, mmap, select, socket
kept = []
def fill(one, size=65536, flags=0):
    one.setblocking(False)
    try:
        while True: one.send(bytes(size), flags)
    except BlockingIOError: pass
def fill_pipe(descriptor):
    os.set_blocking(descriptor, False)
    try:
        while True: os.write(descriptor, bytes(65536))
    except BlockingIOError: pass
def listen(family, address):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(1000)
    kept.append(listener)
    return listener.getsockname()
def pair(kind=socket.SOCK_STREAM, size=65536):
    both = socket.socketpair(socket.AF_UNIX, kind)
    for one in both: fill(one, size)
    return both
def rest(): time.sleep(30)
"""
AT_BOTH_LEVELS = {
    "pairs": "for _ in range(480): kept.append(pair())",
    "pairs of packets": "for _ in range(480): kept.append(pair(socket.SOCK_SEQPACKET))",
    "messages of a byte": "for _ in range(480): kept.append(pair(size=1))",
    "senders that are gone": """
        for _ in range(900):
            sender, receiver = socket.socketpair()
            fill(sender)
            sender.close()
            kept.append(receiver)
        """,
    "sockets in flight": """
        left, right = socket.socketpair()
        for _ in range(18):
            both = [one.detach() for _ in range(25) for one in pair()]
            left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", both))])
            for one in both: os.close(one)
        """,
    "pipes": """
        for _ in range(3):
            if os.fork() == 0:
                for _ in range(480): fill_pipe(os.pipe()[1])
                rest()
        """,
    "page tables": """
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        size = 1 << 38
        start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15)
        for place in range(0, size, 1 << 21): ctypes.c_char.from_address(start + place).value
        """,
    "shared memory that was let go": """
        memory = mmap.mmap(-1, 1 << 30)  # what the machine loses is seen beside what others give back
        for start in range(0, len(memory), 1 << 24):
            for place in range(start, start + (1 << 24), 4096): memory[place] = 1
            memory.madvise(mmap.MADV_DONTNEED, start, 1 << 24)
        """,
}
IN_A_NETWORK = {
    "a backlog": """
        place = listen(socket.AF_UNIX, "waiting")
        for _ in range(900):
            client = socket.socket(socket.AF_UNIX)
            client.connect(place)
            fill(client)
        """,
    "datagrams of senders that are gone": """
        for number in range(90):
            kept.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            kept[-1].bind(f"at-{number}")
            for _ in range(10):
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                    sender.sendto(bytes(200_000), f"at-{number}")
        """,
    "TCP": """
        place = listen(socket.AF_INET, ("127.0.0.1", 0))
        for _ in range(400):
            kept.append(socket.create_connection(place))
            fill(kept[-1])
        """,
    "TCP of clients that are gone, by IPv6": """
        place = listen(socket.AF_INET6, ("::1", 0))
        for _ in range(400):
            client = socket.create_connection(place[:2])
            fill(client)
            client.close()
        """,
    "TCP in pieces": """
        place = listen(socket.AF_INET, ("127.0.0.1", 0))
        for _ in range(400):
            kept.append(socket.create_connection(place))
            fill(kept[-1], 1000, socket.MSG_EOR)
        """,
    "UDP": """
        for _ in range(900):
            receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
            receiver.bind(("127.0.0.1", 0))
            for _ in range(40): sender.sendto(bytes(8192), receiver.getsockname())
            kept.append(receiver)
        """,
    "files in memory": """
        for place in (".", "/dev/shm"):
            with open(f"{place}/large", "wb") as file:
                for _ in range(100): file.write(bytes(1 << 20))
        """,
}


def _holds(source: str, level: Level) -> None:
    lines = "\n".join(line.removeprefix("        ") for line in source.splitlines())
    outcome = run(f"{PREAMBLE}\n{lines}\nrest()", level, limits=LIMITS)
    assert outcome.status == "out_of_memory", (outcome.reason, outcome.log)


@pytest.mark.slow
@pytest.mark.parametrize("what", AT_BOTH_LEVELS)
def test_memory_that_no_process_has_is_the_runs(level: Level, what: str) -> None:
    _holds(AT_BOTH_LEVELS[what], level)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["page tables", "shared memory that was let go"])
def test_it_is_the_runs_though_others_give_more_back_meanwhile(level: Level, what: str) -> None:
    memory = mmap.mmap(-1, 1200 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for place in range(0, len(memory), mmap.PAGESIZE):
        memory[place] = 1
    letting_go = threading.Timer(0.4, memory.close)
    letting_go.start()
    _holds(AT_BOTH_LEVELS[what], level)
    letting_go.join()


@pytest.mark.parametrize("what", IN_A_NETWORK)
def test_so_is_what_waits_in_a_network_of_its_own(level: Level, what: str) -> None:
    if level is not Level.BUBBLEWRAP:
        pytest.skip("it has no sockets there, and its files lie on disk")
    _holds(IN_A_NETWORK[what], level)


def test_queues_cannot_be_made_larger_or_filled_past_their_count(level: Level) -> None:
    source = """
    import ctypes, fcntl, socket
    left, right = socket.socketpair()
    before = left.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    assert left.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before
    left.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    read, write = os.pipe()
    file = open("file", "wb+")
    file.write(b"x" * 4096)
    file.flush()
    libc = ctypes.CDLL(None, use_errno=True)
    tries = [
        lambda: fcntl.fcntl(write, 1031, 1 << 20),
        lambda: os.sendfile(left.fileno(), file.fileno(), 0, 1),
        lambda: os.sendfile(write, file.fileno(), 0, 1),
    ]
    if hasattr(os, "splice"):
        tries.append(lambda: os.splice(file.fileno(), write, 1, 0))
    for attempt in tries:
        try:
            attempt()
        except OSError:
            continue
        raise SystemExit("it worked")
    assert libc.prctl(22, 2, 0, 0, 0) == -1 and ctypes.get_errno() == 1
    import shutil
    shutil.copyfile("file", "copy")
    assert open("copy", "rb").read() == b"x" * 4096
    succeed()
    """
    outcome = run(source, level)
    assert outcome.status == "ok", outcome.log


def test_full_queues_below_the_limit_are_no_failure(level: Level) -> None:
    source = """
    import socket
    kept = [socket.socketpair() for _ in range(200)] + [os.pipe() for _ in range(250)]
    for left, right in kept[:40]: left.send(bytes(100_000))
    for read, write in kept[200:]: os.write(write, b"x")
    time.sleep(0.4)
    succeed()
    """
    outcome = run(source, level, limits=replace(SMALL, memory_bytes=64 * MIB))
    assert outcome.status == "ok", (outcome.reason, outcome.log)
    assert outcome.peak_memory_bytes > 4 * MIB
