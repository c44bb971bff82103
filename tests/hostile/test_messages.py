"""A short message that would need gigabytes is refused before it is made."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from msgspec.msgpack import Ext

from autoresearch.errors import BadMessage
from autoresearch.services.messages import MAX_VALUES, SET, TUPLE, decode, encode, has_too_many_values

COUNT = 16 << 20
LIST = b"\xdd" + COUNT.to_bytes(4, "big")
# Of each some 16 MiB, made when it is sent: they became up to 4 GiB.
BOMBS: dict[str, Callable[[], bytes]] = {
    "dicts": lambda: LIST + b"\x80" * COUNT,
    "lists": lambda: LIST + b"\x90" * COUNT,
    "sets": lambda: LIST + bytes((0xD4, SET, 0x90)) * (COUNT // 3),
    "dicts of one": lambda: LIST + b"\x81\x01\x02" * (COUNT // 3),
    "texts": lambda: LIST + b"\xa1a" * (COUNT // 2),
    "inside a tuple": lambda: b"\xc9" + (COUNT + 5).to_bytes(4, "big") + bytes((TUPLE,)) + LIST + b"\x80" * COUNT,
    # The inside of an extension says that 4 GiB of text follow: the counting must not skip what comes after it.
    "behind a lie": lambda: LIST + b"\xd7\x01\xc6\xff\xff\xff\xff\0\0\0" + b"\x80" * COUNT,
    "behind a time": lambda: LIST + b"\xd7\xff\xc6\xff\xff\xff\xff\0\0\0" + b"\x80" * COUNT,
    "behind an unknown extension": lambda: LIST + b"\xc7\x05\x63\xdb\xff\xff\xff\xff" + b"\x80" * COUNT,
}
MOST_BYTES = 512 << 20
VICTIM = """
import sys
from autoresearch.errors import BadMessage
from autoresearch.services.messages import decode
try:
    decode([sys.stdin.buffer.read()])
except BadMessage as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_message_that_unpacks_without_end_is_refused(name: str) -> None:
    """In a process that has no more memory than a service may use for it."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))

    words = [sys.executable, "-c", VICTIM]
    done = subprocess.run(words, input=BOMBS[name](), capture_output=True, check=False, preexec_fn=limited)
    assert b"more than 1,048,576 values" in done.stdout, done.stderr[-500:]


@pytest.mark.slow
def test_the_most_that_a_message_may_hold_is_taken() -> None:
    value = [{}] * (MAX_VALUES - 1)
    assert decode(encode(value)) == value
    with pytest.raises(BadMessage, match="values"):
        encode([*value, {}])
    with pytest.raises(BadMessage, match="values"):
        encode([(1,)] * (MAX_VALUES // 2))


def test_large_text_bytes_and_arrays_are_few_values() -> None:
    large = {"text": "x" * (4 << 20), "bytes": bytes(4 << 20), "array": np.zeros((1 << 21,)), "small": np.arange(3)}
    decoded = decode(encode(large))
    assert (decoded["text"], decoded["bytes"], decoded["array"].nbytes) == (large["text"], large["bytes"], 16 << 20)


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, 2**7, 2**8, 2**16, 2**32, 2**63, -1, -(2**7), -(2**15), -(2**31), -(2**63), 1.5),
        *("", "x" * 31, "x" * 32, "x" * 300, "x" * 70_000, b"", b"x" * 300, b"x" * 70_000),
        *([], [1] * 20, list(range(70_000)), {}, {str(key): key for key in range(20)}, dict.fromkeys(range(70_000))),
        *(Ext(SET, bytes((0x91, size % 9))) for size in (1, 2)),
        *(Ext(TUPLE, msgspec.msgpack.encode([7] * size)) for size in (0, 1, 3, 7, 15, 200, 70_000)),
    ],
    ids=lambda value: (
        f"{type(value).__name__} {str(value)[:20]}" if not isinstance(value, Ext) else str(len(value.data))
    ),
)
def test_the_counting_reads_every_form_to_its_end(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of a kind are counted as two: it ends neither inside of the first nor behind the second."""
    count = values_in(value)
    frame = msgspec.msgpack.encode([value, value])
    for most, too_many in ((2 * count + 1, False), (2 * count, True)):
        monkeypatch.setattr("autoresearch.services.messages.MAX_VALUES", most)
        assert has_too_many_values(frame) is (too_many and len(frame) > most)


def values_in(value: object) -> int:
    if isinstance(value, Ext):
        return 1 + values_in(msgspec.msgpack.decode(value.data))
    if isinstance(value, dict):
        return 1 + sum(values_in(key) + values_in(part) for key, part in value.items())
    return 1 + sum(map(values_in, value)) if isinstance(value, list) else 1
