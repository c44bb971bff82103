"""Attestation by mail in the daemon: this node as one who asks and, with a mail account, as an attestor."""

from autoresearch_daemon.attesting.desk import Desk

__all__ = ["Desk"]
