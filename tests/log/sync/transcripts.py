"""Makes the stored transcripts: ``python -m tests.log.sync.transcripts`` writes them anew. Others must speak like this.

A line is one message in hexadecimal: ``>`` from the initiator or the opener, ``<`` from the other side. ``keys.json``
beside them has the salt and the keys of both sides; ``docs/protocol.md`` says how to read it.
"""

import json
from pathlib import Path

from autoresearch.log.sync.index import KeyIndex
from autoresearch.log.sync.session import Leader, Opener
from tests.log.sync.driving import NETWORK, Side, reconciled

FOLDER = Path(__file__).parent / "transcripts"


GIVEN = json.loads((FOLDER / "keys.json").read_text())
SALT = bytes.fromhex(GIVEN["salt"])


def keys(parts):
    """The keys of one side. A part is a row of keys with growing times, or one key."""
    return {
        key
        for part in parts
        for key in (row(**part) if "count" in part else [(part["time"], bytes.fromhex(part["id"]))])
    }


def row(seed, count, step_ms, without=()):
    """So many keys; the ids need no SHA-256 to be reproducible in any language."""
    return [
        (1_800_000_000_000 + step_ms * number, bytes([seed, *number.to_bytes(3, "big")]) * 8)
        for number in range(count)
        if number not in without
    ]


CASES = {name: (keys(case["initiator"]), keys(case["responder"])) for name, case in GIVEN["reconciliations"].items()}


def reconciliation(name):
    """The messages between an initiator with the first set and a responder with the second."""
    messages = []
    reconciled(*CASES[name], salt=SALT, transcript=messages)
    return [f"{'><'[number % 2]} {message.hex()}" for number, message in enumerate(messages)]


def greeting():
    """Hello of the opener; hello and first request of the leader."""
    mine, theirs = GIVEN["session"]["opener"], GIVEN["session"]["leader"]
    nonces = [bytes.fromhex(side["nonce"]) for side in (mine, theirs)]
    opening = Opener(NETWORK, KeyIndex(sorted(keys(mine["keys"]))), nonces[0], since_ms=mine["since"])
    leading = Side([], Leader, nonce=nonces[1], since_ms=theirs["since"])
    leading.index.update(sorted(keys(theirs["keys"])))
    (hello,) = opening.start()
    answer = leading.perform(leading.session.receive(hello.data))
    (reply,) = opening.receive(answer)
    return [f"> {hello.data.hex()}", f"< {answer.hex()}", f"> {reply.data.hex()}"]


def all_transcripts():
    return {name: reconciliation(name) for name in CASES} | {"session": greeting()}


if __name__ == "__main__":
    for title, lines in all_transcripts().items():
        (FOLDER / f"{title}.txt").write_text("\n".join(lines) + "\n")
