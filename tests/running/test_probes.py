"""The attack on our own sandbox finds nothing where there are walls, and the holes where there are none."""

from __future__ import annotations

import pytest

from autoresearch.running import Level, detect_level, probe_sandbox


def test_every_probe_is_blocked(level: Level) -> None:
    results = probe_sandbox(level)
    assert len(results) >= 23
    assert [(result.name, result.detail) for result in results if not result.blocked] == []
    assert all(result.detail for result in results)


def test_the_probes_get_through_where_there_are_no_walls() -> None:
    leaks = {result.name for result in probe_sandbox(Level.NONE) if not result.blocked}
    assert {
        "read the daemon's key",
        "see other processes",
        "TCP to this machine",
        "UDP out",
        "abstract local socket",
        "local socket by path",
        "local datagram by path",
        "netlink sockets",
        "uncounted memory files",
        "uncounted shared segments",
        "write to the system",
    } <= leaks


def test_the_best_level_without_a_leak_is_chosen(level: Level) -> None:
    found, results = detect_level()
    assert found >= level
    assert all(result.blocked for result in results)


def test_a_sandbox_that_does_not_start_counts_as_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (result,) = probe_sandbox(Level.BUBBLEWRAP)
    assert not result.blocked
    assert "bubblewrap is not installed" in result.detail
    assert detect_level()[0] < Level.BUBBLEWRAP
