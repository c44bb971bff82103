"""Who signs: keys, their files, and the delegation of a device key by a root key."""

from autoresearch.identity.identity import Identity, create_identity, delegation, load_identity
from autoresearch.identity.keys import KeyPair
from autoresearch.identity.roster import Roster, Voice
from autoresearch.identity.trust import Trust

__all__ = ["Identity", "KeyPair", "Roster", "Trust", "Voice", "create_identity", "delegation", "load_identity"]
