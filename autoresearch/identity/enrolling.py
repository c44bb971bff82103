"""The two texts that make a second machine a device of the same participant. Pure; neither holds a secret.

The new machine prints its public key; the machine with the root key signs a delegation and prints the record; the new
machine checks that it names this device, and keeps it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from autoresearch.errors import Refused, UsageError
from autoresearch.records import Identity, Network, Record, Refusal, admit

REQUEST = "autoresearch-device:"
ANSWER = "autoresearch-delegation:"
_KEY_BYTES = 32
_CHECK_BYTES = 3
_SIGNATURE_BYTES = 64


def write_request(device: bytes) -> str:
    """What the new machine prints: its device key and a checksum against typing errors."""
    return REQUEST + _text(device + hashlib.sha256(device).digest()[:_CHECK_BYTES])


def read_request(text: str) -> bytes:
    """The device key in a request. Raises UsageError when it is none or was mistyped."""
    content = _bytes(text, REQUEST)
    device = content[:_KEY_BYTES]
    if len(content) != _KEY_BYTES + _CHECK_BYTES or write_request(device) != text.strip():
        raise UsageError("that request is mistyped or cut off", hint="copy it again from the new machine")
    return device


def write_answer(record: Record) -> str:
    """What the machine with the root key prints: the signed delegation."""
    return ANSWER + _text(record.signature + record.raw)


def read_answer(text: str, device: bytes, network: Network, *, now_ms: int) -> Record:
    """The delegation in an answer, checked: of this network, for this device, signed by the root key that it names.

    Raises:
        UsageError: it is no answer, or was mistyped.
        Refused: it is for another device or network, or expired.
    """
    content = _bytes(text, ANSWER)
    record = admit(content[_SIGNATURE_BYTES:], content[:_SIGNATURE_BYTES], network, now_ms=now_ms)
    if isinstance(record, Refusal):
        if record.code == "network":
            raise Refused("That answer is for another network.", hint="autoresearch network join on both machines")
        raise UsageError(f"that answer can't be used: {record.sentence}", hint="copy it again from the other machine")
    body = record.body
    if not isinstance(body, Identity) or body.action != "delegate" or body.root != record.author:
        raise Refused("That record delegates no device.")
    if body.device != device:
        raise Refused("That answer is for another device.", hint="autoresearch id add-device prints this one's request")
    if body.expires is not None and body.expires <= now_ms:
        raise Refused("That answer has expired.", hint="ask for a new one")
    return record


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str, beginning: str) -> bytes:
    code = text.strip().removeprefix(beginning)
    try:
        return base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError("that text is mistyped or cut off", hint="copy it again") from error
