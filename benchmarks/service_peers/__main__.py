"""A process of the benchmark ``services``: a peer's servers, a client, or a subscriber.

It ends when its standard input ends: with the process that started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

import zmq

from benchmarks.service_peers import peer


def main() -> None:
    """``serve PEER PORTS``, ``ask PEER PORTS`` or ``subscribe PEER PORT REPLY_PORT``."""
    what, name, *given = sys.argv[1:]
    if what == "ask":
        _ask(name, json.loads(given[0]))
        return
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if what == "serve":
        peer(name).serve(json.loads(given[0]))
    else:
        _subscribe(name, int(given[0]), int(given[1]))


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def _ask(name: str, ports: list[int]) -> None:
    """For each line with a number of seconds, print how many small requests a second were answered."""
    client = peer(name).Client(ports)
    client.small()
    print("ready", flush=True)
    for line in sys.stdin:
        count, seconds = 0, float(line)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            client.small()
            count += 1
        print(count / seconds, flush=True)
    os._exit(0)


def _subscribe(name: str, port: int, reply_port: int) -> None:
    """Reply to each weights with their first number."""
    replies: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
    replies.connect(f"tcp://127.0.0.1:{reply_port}")
    peer(name).subscribe(port, lambda weights: replies.send(str(int(weights["0"][0])).encode()))
    threading.Event().wait()


if __name__ == "__main__":
    main()
