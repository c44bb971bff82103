"""Workers: processes that propose and run, one a device, on a ZeroMQ link to the daemon."""

from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.pool import Pool

__all__ = ["Pool", "protocol"]
