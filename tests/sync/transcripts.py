"""Makes the stored transcripts: ``python -m tests.sync.transcripts`` writes them anew. Others must speak like this.

A line is one message in hexadecimal: ``>`` from the initiator or the opener, ``<`` from the other side.
"""

import random
from pathlib import Path

from autoresearch.sync import KeyIndex, Leader, Opener
from tests.sync.driving import NETWORK, Side, reconciled

FOLDER = Path(__file__).parent / "transcripts"


def keys(count, seed, *, step_ms=1_000):
    """Keys with growing times; the ids need no SHA-256 to be reproducible in any language."""
    return {
        (1_800_000_000_000 + step_ms * number, bytes([seed, *number.to_bytes(3, "big")]) * 8) for number in range(count)
    }


CASES = {
    "both-empty": (set(), set()),
    "one-key-missing": (set(), keys(1, 1)),
    "three-against-two": (keys(3, 1), keys(2, 1) | {(1_800_000_001_000, b"\x02" * 32)}),
    "equal-hundred": (keys(100, 1), keys(100, 1)),
    "newest-of-hundred": (keys(100, 1), keys(99, 1)),
    "same-time": (keys(80, 1, step_ms=0), keys(80, 1, step_ms=0) - keys(1, 1) | keys(1, 2)),
    "two-levels": (keys(1_500, 1), keys(1_500, 1) ^ set(random.Random(1).sample(sorted(keys(1_500, 1)), 3))),
}


def reconciliation(name):
    """The messages between an initiator with the first set and a responder with the second."""
    messages = []
    reconciled(*CASES[name], transcript=messages)
    return [f"{'><'[number % 2]} {message.hex()}" for number, message in enumerate(messages)]


def greeting():
    """Hello of the opener; hello and first request of the leader."""
    opening = Opener(NETWORK, KeyIndex(keys(100, 1)), bytes(range(16)), since_ms=1_800_000_050_000)
    leading = Side([], Leader, nonce=bytes(range(16, 32)))
    leading.index.update(keys(90, 1))
    (hello,) = opening.start()
    answer = leading.perform(leading.session.receive(hello.data))
    (reply,) = opening.receive(answer)
    return [f"> {hello.data.hex()}", f"< {answer.hex()}", f"> {reply.data.hex()}"]


def all_transcripts():
    return {name: reconciliation(name) for name in CASES} | {"session": greeting()}


if __name__ == "__main__":
    for title, lines in all_transcripts().items():
        (FOLDER / f"{title}.txt").write_text("\n".join(lines) + "\n")
