"""A project's own process: takes one order, does it, tells figures and the end on a descriptor of its own.

What components print goes to the run's log. The process ends with the one that started it, however that ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback

from autoresearch.errors import AutoresearchError
from autoresearch.projects import acr
from autoresearch.projects.own_process.episodes import Session, checked
from autoresearch.projects.own_process.messages import ActOrder, Failed, Message, ServeOrder, decode_order, encode

PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Do what standard input asks for; a further line asks to stop, its end to leave at once."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    order = decode_order(sys.stdin.buffer.readline())
    os.chdir(order.project.folder)
    sys.path.append(str(order.project.folder))
    sys.modules["acr"] = acr
    stop = threading.Event()
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    with os.fdopen(descriptor, "wb", buffering=0) as out:

        def tell(message: Message) -> None:
            out.write(encode(message))

        try:
            if isinstance(order, ServeOrder):
                from autoresearch.projects.own_process.hosting import Host  # with ZeroMQ, which runs do without

                Host(order).serve(tell, stop)
            elif isinstance(order, ActOrder):
                from autoresearch.projects.own_process.actor import Actor

                Actor(order).act(tell, stop)
            elif order.episodes:
                tell(Session(order, tell, stop.is_set).run())
            else:
                for message in checked(order):
                    tell(message)
        except AutoresearchError as error:
            traceback.print_exc()
            tell(Failed(str(error), error.hint, error.exit_status))
        except Exception as error:  # noqa: BLE001 - whatever a stranger's code does becomes a sentence
            traceback.print_exc()
            tell(Failed(f"{type(error).__name__}: {error}", "", 1))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a component's own threads must not hold it


def _listen(stop: threading.Event) -> None:
    if not sys.stdin.buffer.readline():
        os._exit(1)
    stop.set()
    sys.stdin.buffer.readline()
    os._exit(1)
