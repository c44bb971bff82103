"""Attestation by mail in the daemon: this node as one who asks and, with a mail account, as an attestor."""

from autoresearch_daemon.attesting.mailer import PASSWORD_VARIABLE
from autoresearch_daemon.attesting.service import AttestationService

__all__ = ["PASSWORD_VARIABLE", "AttestationService"]
