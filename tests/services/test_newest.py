"""Published values over real sockets: the newest always arrives, with its version."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import BadMessage
from autoresearch.services.links.newest import Publisher, Subscriber
from tests.services.serving import CuttingProxy, publishing, waited


class Callback:
    """What a subscriber's callback was called with; it waits where ``go`` is cleared."""

    def __init__(self) -> None:
        self.values: list[tuple[Any, int]] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, value: Any, version: int) -> None:
        self.values.append((value, version))
        self.go.wait(20)

    @property
    def versions(self) -> list[int]:
        return [version for _, version in self.values]


def test_the_newest_arrives_after_a_burst_and_each_version_once() -> None:
    with publishing() as publisher:
        quick, slow = Callback(), Callback()
        slow.go.clear()
        subscribers = [Subscriber(on, "127.0.0.1", publisher.port) for on in (quick, slow)]
        assert publisher.publish({"step": 0}) == 1
        assert waited(lambda: slow.values)
        for step in range(1, 200):
            publisher.publish({"step": step, "weights": np.full(10_000, step)})
        slow.go.set()
        assert waited(lambda: quick.versions[-1:] == [200] == slow.versions[-1:])

        assert slow.versions == [1, 200]
        assert slow.values[-1][0]["weights"][0] == 199
        assert quick.versions == sorted(set(quick.versions))
        assert [subscriber.version for subscriber in subscribers] == [200, 200]
        assert all(subscriber.stop() for subscriber in subscribers)


def test_who_comes_late_gets_the_newest_at_once_and_what_changes_after_publish_is_not_sent() -> None:
    weights = np.zeros(100_000)
    with publishing() as publisher:
        publisher.publish(weights)
        weights += 1
        callback = Callback()
        subscriber = Subscriber(callback, "localhost", publisher.port)
        assert waited(lambda: callback.values)
        assert not callback.values[0][0].any()
        assert subscriber.stop()


def test_a_publisher_that_restarts_is_found_again_though_it_counts_from_one() -> None:
    callback = Callback()
    with publishing() as first:
        port = first.port
        subscriber = Subscriber(callback, "127.0.0.1", port)
        for number in range(3):
            first.publish(number)
        assert waited(lambda: callback.values and callback.values[-1] == (2, 3))
    with publishing(port) as second:
        second.publish("new")
        assert waited(lambda: callback.values[-1] == ("new", 1))
    assert subscriber.stop()


def test_an_error_in_a_callback_or_in_what_is_published_ends_nothing() -> None:
    seen: list[int] = []

    def on_value(value: Any, version: int) -> None:
        seen.append(version)
        raise ValueError(value)

    with publishing() as publisher:
        subscriber = Subscriber(on_value, "127.0.0.1", publisher.port)
        for number in range(3):
            publisher.publish(number)
            assert waited(lambda number=number: seen[-1:] == [number + 1])
            with pytest.raises(BadMessage):
                publisher.publish(object())
        assert publisher.version == 3
        assert subscriber.stop()
        assert subscriber.stop()


def test_what_is_published_before_the_start_is_not_lost() -> None:
    publisher = Publisher()
    publisher.publish("early")
    callback = Callback()
    subscriber = Subscriber(callback, "127.0.0.1", publisher.port)
    publisher.start(threaded=True)
    assert waited(lambda: callback.values == [("early", 1)])
    assert subscriber.stop()
    assert publisher.stop()


def test_a_slow_connection_carries_each_value_once_and_then_the_newest() -> None:
    callback = Callback()
    with publishing() as publisher:
        proxy = CuttingProxy(publisher.port)
        subscriber = Subscriber(callback, "127.0.0.1", proxy.port)
        publisher.publish("first")
        assert waited(lambda: callback.versions == [1])
        proxy.held = True
        publisher.publish(np.zeros(1 << 20, np.uint8))
        assert waited(lambda: publisher.requests > 4)  # again and again, while the value is on its way
        for number in range(5):
            publisher.publish(np.full(1 << 20, number, np.uint8))
        before = publisher.requests
        assert waited(lambda: publisher.requests > before + 2)
        proxy.held = False
        assert waited(lambda: callback.versions[-1:] == [7])
        assert callback.versions == [1, 2, 7]
        assert proxy.answered_bytes < 3 << 20
        assert subscriber.stop()
        proxy.close()
