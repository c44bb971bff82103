"""The file for somebody who helps has what ails a machine, and nothing that is private."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from autoresearch_cli.acts.support import without_private

from autoresearch.paths import Paths
from tests.cli.conftest import Cli

PRIVATE = {
    "sk-verysecret": "the key of a model",
    "https://hooks.example.org/s3cr3t-path": "where messages go, and the password for it",
    "203.0.113.7": "an address of another machine",
    "2001:db8::17": "one more",
    "anna@example.org": "somebody's mailbox",
}


@pytest.mark.slow
def test_a_bundle_has_no_secret_and_no_address(
    cli: Cli, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths.create()
    token = paths.make_api_token()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-verysecret")
    for name, value in (
        ("notify.webhook", "https://hooks.example.org/s3cr3t-path"),
        ("work.hours", "sat-sun"),
        ("work.workers", "3"),
    ):
        assert cli("node", "config", "set", name, value).exit_code == 0
    lines = [f"asked with {token} and {word} at 12:30:01 by 127.0.0.1" for word in PRIVATE]
    lines.append(f"dialled /ip4/203.0.113.7/tcp/4001 and /dns4/relay.example.net/tcp/1, from {Path.home()}/notes")
    paths.daemon_log.write_text("\n".join(lines))

    file = tmp_path / "help.zip"
    done = cli("node", "doctor", "--bundle", str(file))
    assert "look through it before you send it" in done.stderr
    with zipfile.ZipFile(file) as bundle:
        parts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert set(parts) == {"doctor.json", "settings.txt", "machine.txt", "daemon.log"}
    whole = "\n".join(parts.values())
    assert [word for word in (*PRIVATE, token, "s3cr3t", "relay.example.net") if word in whole] == []
    assert str(Path.home()) + "/notes" not in whole
    assert "~/notes" in parts["daemon.log"]
    assert "at 12:30:01 by 127.0.0.1" in parts["daemon.log"]
    assert parts["settings.txt"].splitlines()[:2] == ["work.workers = 3  (file)", "work.hours = sat-sun  (file)"]
    assert "notify.webhook = (set)  (file)" in parts["settings.txt"]
    assert {check["name"] for check in json.loads(parts["doctor.json"])["checks"]} >= {"home", "device", "sandbox"}
    assert "msgspec" in parts["machine.txt"]
    assert file.stat().st_mode & 0o077 == 0

    again = cli("node", "doctor", "--bundle", str(file))
    assert again.exit_code != 0
    assert f"{file} exists already" in again.stderr


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("version 1.2.3 at 10:11:12Z", "version 1.2.3 at 10:11:12Z"),
        ("id 12:34:56:78", "id 12:34:56:78"),
        ("::1 and 0.0.0.0 and 10.0.0.1", "::1 and 0.0.0.0 and ADDRESS"),
        ("http://user:pass@host/x?y=1 failed", "http://ADDRESS failed"),
        ("bobby, bob and bob.", "bobby, USER and USER."),
    ],
)
def test_what_looks_like_an_address_and_is_none_stays(text: str, left: str) -> None:
    assert without_private(text, {"bob": "USER"}) == left
