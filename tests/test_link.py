"""The link to a child process: what any child sends becomes messages or a typed error, and never a wait for ever."""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import BadMessage
from autoresearch.link import MESSAGE_BYTES_MAX, Link, LinkEnded, Messages, backoff, frame


class Text(msgspec.Struct, frozen=True, tag=True):
    text: str
    data: bytes = b""


class Beat(msgspec.Struct, frozen=True, tag=True):
    pass


Anything = Text | Beat
MESSAGES = st.lists(st.one_of(st.builds(Text, st.text(), st.binary()), st.just(Beat())), max_size=6)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The same bytes as they might arrive."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(MESSAGES, st.lists(st.integers(0, 10_000), max_size=8))
def test_messages_arrive_whole_and_in_order_however_they_are_cut(sent: list[Text | Beat], cuts: list[int]) -> None:
    incoming: Messages[Text | Beat] = Messages(Anything)
    data = b"".join(map(frame, sent))
    assert [each for piece in pieces(data, cuts) for each in incoming.feed(piece)] == sent
    with pytest.raises(LinkEnded, match=r"ended$"):
        list(incoming.feed(b""))


@given(MESSAGES, st.binary(), st.integers(0, 10_000))
def test_whatever_a_hostile_child_writes_before_it_closes_is_a_typed_error(
    sent: list[Text | Beat], garbage: bytes, cut: int
) -> None:
    """Garbage, a huge frame, half a frame: what was whole before is heard, then the link is over."""
    data = (b"".join(map(frame, sent)) + garbage)[: cut + 1]
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(data)
    link: Link[Text | Beat] = Link(ours.fileno(), ours.detach(), Anything)
    messages: list[Text | Beat] = []
    with suppress(BadMessage):
        messages.extend(link)
    link.close()
    assert messages[: len(sent)] == sent[: len(messages)]


def test_a_frame_that_announces_too_much_is_refused_before_it_is_kept() -> None:
    with pytest.raises(BadMessage, match="too large"):
        list(Messages[Text](Text).feed((MESSAGE_BYTES_MAX + 1).to_bytes(4, "little")))
    with pytest.raises(BadMessage, match="too large"):
        frame(Text("", bytes(MESSAGE_BYTES_MAX)))


def test_what_a_child_writes_reaches_no_terminal_by_an_error() -> None:
    forged = msgspec.msgpack.encode({"type": "\x1b[2J\nforged"})
    with pytest.raises(BadMessage) as caught:
        list(Messages[Text](Text).feed(len(forged).to_bytes(4, "little") + forged))
    assert str(caught.value).isprintable()


def test_half_a_message_is_told_from_a_regular_end() -> None:
    incoming = Messages[Text](Text)
    assert list(incoming.feed(frame(Text("whole")) + frame(Text("half"))[:-1])) == [Text("whole")]
    with pytest.raises(LinkEnded, match="in the middle of a message"):
        list(incoming.feed(b""))


def test_lists_within_lists_are_a_bad_message_and_no_recursion() -> None:
    deep = b"\x91" * 100_000 + b"\xc0"
    with pytest.raises(BadMessage):
        list(Messages[object](object).feed(len(deep).to_bytes(4, "little") + deep))


def test_closing_ends_a_thread_that_waits_for_a_silent_child() -> None:
    ours, theirs = socket.socketpair()
    link: Link[Text] = Link(ours.fileno(), ours.detach(), Text)
    messages: list[Text] = []
    waiting = threading.Thread(target=lambda: messages.extend(link))
    waiting.start()
    link.close()
    waiting.join()
    assert not messages
    theirs.close()


def test_sending_to_a_child_that_is_gone_is_a_typed_error() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    link: Link[Text] = Link(ours.fileno(), ours.detach(), Text)
    with pytest.raises(LinkEnded):
        link.send(Text("anybody?"))
    link.close()


def test_pauses_double_up_to_a_bound() -> None:
    assert [backoff(failures, 1.0, 60.0) for failures in (0, 1, 2, 5, 6, 10**9)] == [1.0, 2.0, 4.0, 32.0, 60.0, 60.0]
