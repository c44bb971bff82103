"""A network process that does what a broken one might: says it is ready, then spins, eats memory or talks rubbish."""

import os
import sys
import threading
import time

from autoresearch_daemon.net import link
from autoresearch_daemon.net.model import Figures

from autoresearch.link import Link, keep_link

how, _, text = sys.argv[1:]
descriptor = keep_link(int(text))
talk = Link(descriptor, descriptor, link.FromDaemon)
talk.send(link.HostReady(peer="peer", addresses=()))
held = []


def misbehave() -> None:
    while how == "spin":
        pass
    while how == "eat":
        held.append(os.urandom(8 << 20))
        time.sleep(0.02)


if how == "rubbish":
    os.write(descriptor, b"\xc1 no message")
threading.Thread(target=misbehave, daemon=True).start()
while True:
    talk.send(link.Beat(peers=(), figures=Figures()))
    time.sleep(0.2)
