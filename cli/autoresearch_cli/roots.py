"""This machine's keys as a command needs them: read, and with the root key at hand."""

from __future__ import annotations

from autoresearch.errors import NotFound
from autoresearch.identity import ROOT_FILE, Identity, KeyPair, load_identity, unlock
from autoresearch_cli import here
from autoresearch_cli.passphrases import passphrase


def loaded() -> Identity:
    """The keys. Raises NotFound when there are none yet."""
    try:
        return load_identity(here.paths().keys)
    except NotFound as error:
        if here.paths().keys.joinpath(ROOT_FILE).exists():
            sentence = "the device key of this machine is missing; the daemon makes a new one for the root key"
            raise NotFound(sentence, hint="put the old one back, or: autoresearch up") from error
        raise NotFound("there are no keys yet", hint="autoresearch id new, or start the daemon") from error


def unlocked(mine: Identity) -> Identity:
    """With the root key at hand; asks for the passphrase where it needs one. Raises Refused, UsageError."""
    if isinstance(mine.root, KeyPair):
        return mine
    return unlock(here.paths().keys, mine, passphrase("of the root key") if mine.root.here else "")
