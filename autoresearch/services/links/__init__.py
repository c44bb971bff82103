"""How values travel between processes and machines: questions and answers, and newest values, over ZeroMQ.

Each server's sockets are touched by one thread alone. Other threads wake it through a socket inside the process.
"""

from autoresearch.services.links.asking import RequestClient
from autoresearch.services.links.keys import ClientKeys, KeyPair, ServerKeys
from autoresearch.services.links.publishing import Publisher
from autoresearch.services.links.serving import Counts, RequestServer
from autoresearch.services.links.subscribing import Subscriber

__all__ = [
    "ClientKeys",
    "Counts",
    "KeyPair",
    "Publisher",
    "RequestClient",
    "RequestServer",
    "ServerKeys",
    "Subscriber",
]
