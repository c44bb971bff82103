"""Making two logs equal: range-based set reconciliation over (time, id), and the exchange of records on top. Sans-I/O.

Source of the method: A. Meyer, “Range-Based Set Reconciliation”, SRDS 2023 (arXiv:2212.13567). The messages are
specified in ``docs/protocol.md``.
"""

from autoresearch.sync.effects import Effect, Fetch, Finished, Send, Store
from autoresearch.sync.frames import BATCH_BYTES, FRAME_BYTES, Hello
from autoresearch.sync.index import KEY_BYTES, LOWEST, KeyIndex
from autoresearch.sync.initiator import Difference, Initiator
from autoresearch.sync.leader import Leader
from autoresearch.sync.opener import Opener
from autoresearch.sync.ranges import REPLY_BYTES, REQUEST_BYTES
from autoresearch.sync.responder import Responder
from autoresearch.sync.salt import NONCE_BYTES, SHORT_BYTES, session_salt, short_id
from autoresearch.sync.session import Session
from autoresearch.sync.wire import Violation

__all__ = [
    "BATCH_BYTES",
    "FRAME_BYTES",
    "KEY_BYTES",
    "LOWEST",
    "NONCE_BYTES",
    "REPLY_BYTES",
    "REQUEST_BYTES",
    "SHORT_BYTES",
    "Difference",
    "Effect",
    "Fetch",
    "Finished",
    "Hello",
    "Initiator",
    "KeyIndex",
    "Leader",
    "Opener",
    "Responder",
    "Send",
    "Session",
    "Store",
    "Violation",
    "session_salt",
    "short_id",
]
