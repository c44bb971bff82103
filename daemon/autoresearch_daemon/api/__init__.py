"""The local HTTP API: what the node offers to the command line, to pages and to other programs."""

from autoresearch_daemon.api.app import make_app
from autoresearch_daemon.api.listen import Tcp, serve
from autoresearch_daemon.api.port import NodePort

__all__ = ["NodePort", "Tcp", "make_app", "serve"]
