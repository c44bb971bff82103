"""The attack on our own sandbox finds nothing where there are walls, and the holes where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from autoresearch.paths import Paths
from autoresearch.run.sandbox import probes
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.probes import detect_level, probe_sandbox
from autoresearch.trust.identity import create_identity


@pytest.fixture(autouse=True)
def _attacked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "probe_sandbox", probe_sandbox)


KEYS_PROBE = "read this node's keys and passwords"


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
        "hide its children's processor time",
        "limit another process",
        "slow down another process",
        "see the page cache",
        "steer the page cache",
        "lock shared files",
        "identify the machine",
        "leave a process behind",
        "write to the system",
    } <= leaks


@pytest.fixture
def secrets() -> Iterator[list[Path]]:
    """A node's keys and the password of its mail account, readable for all: the walls alone must do."""
    with TemporaryDirectory(prefix="autoresearch-secrets-") as folder:
        paths = Paths.from_environment({"AUTORESEARCH_HOME": folder})
        paths.create()
        create_identity(paths.keys, passphrase="correct horse")
        (paths.network / "network.key").write_text("secret")
        (paths.config / "api-token").write_text("secret")
        password = Path(folder) / "mail-password"
        password.write_text("secret")
        secret_files = [*paths.secrets(), password]
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield secret_files


@pytest.mark.slow
def test_no_key_and_no_password_is_read_in_a_run(level: Level, secrets: list[Path]) -> None:
    names = {path.name for path in secrets}
    assert {"keys", "root.key", "device.key", "root.pub", "network.key", "api-token", "mail-password"} <= names
    (result,) = [probe for probe in probe_sandbox(level, secrets) if probe.name == KEYS_PROBE]
    assert (result.blocked, result.detail) == (True, "none of them")


@pytest.mark.slow
def test_each_of_them_is_read_where_there_are_no_walls(secrets: list[Path]) -> None:
    for path in secrets:
        (result,) = [probe for probe in probe_sandbox(Level.NONE, [path]) if probe.name == KEYS_PROBE]
        assert (result.blocked, result.detail) == (False, f"reads {path}")


def test_the_best_level_without_a_leak_is_chosen(level: Level) -> None:
    best, results = detect_level()
    assert best >= level
    assert all(result.blocked for result in results)


def test_an_attack_that_is_too_slow_is_said_to_be_slow(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here every machine is: the attack gets no time for more than its first probes."""
    monkeypatch.setattr(probes, "_LIMITS", replace(probes._LIMITS, seconds=0.01))
    *results, last = probe_sandbox(level)
    assert (last.name, last.blocked) == ("finish all attacks", False)
    assert f"through with {len(results)} of them" in last.detail
    assert "too busy" in last.detail


def test_a_sandbox_that_does_not_start_counts_as_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (result,) = probe_sandbox(Level.BUBBLEWRAP)
    assert not result.blocked
    assert "bubblewrap is not installed" in result.detail
    assert detect_level()[0] < Level.BUBBLEWRAP
