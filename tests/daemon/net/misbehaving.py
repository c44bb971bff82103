"""A network process that does what a broken one might: says it is ready, then spins, eats memory or talks rubbish."""

import argparse
import os
import threading
import time

import zmq
from autoresearch_daemon.net import link
from autoresearch_daemon.net.model import Figures

parser = argparse.ArgumentParser()
parser.add_argument("how")
for option in ("--link", "--name", "--parent", "--memory", "--options"):
    parser.add_argument(option)
given = parser.parse_args()
socket = zmq.Context().socket(zmq.DEALER)
socket.setsockopt(zmq.IDENTITY, given.name.encode())
socket.connect(given.link)
socket.send(link.encode(link.Ready(peer="peer", addresses=())))
held = []


def misbehave() -> None:
    while given.how == "spin":
        pass
    while given.how == "eat":
        held.append(os.urandom(8 << 20))
        time.sleep(0.02)


if given.how == "rubbish":
    socket.send(b"\xc1 no message")
if given.how == "exit":
    raise SystemExit(3)
threading.Thread(target=misbehave, daemon=True).start()
while given.how != "silent":
    socket.send(link.encode(link.Beat(peers=(), figures=Figures())))
    time.sleep(0.2)
time.sleep(3600)
