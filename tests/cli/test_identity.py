"""``id``: passphrases, devices, renewal, a second machine, backup, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK
from autoresearch.trust.identity import LockedKey, load_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Roster, Trust
from tests.cli.conftest import Cli

WORDS = "correct horse battery staple"


def rows(cli: Cli) -> dict[str, str]:
    answer = json.loads(cli("node", "id", "devices", "--json").stdout)
    return {row["device_key"]: row["state"] for row in answer["devices"]}


def test_a_new_passphrase_that_is_guessed_at_once_is_refused(
    cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "x")
    refused = cli("node", "id", "new")
    assert (refused.exit_code, "less than 8 characters" in refused.stderr) == (2, True)
    assert cli("node", "id", "show").exit_code == 4


def test_a_name_that_is_too_long_is_refused_in_words(cli: Cli) -> None:
    refused = cli("node", "id", "name", "x" * 200)
    assert (refused.exit_code, "has 200 characters" in refused.stderr) == (2, True)
    assert "1 to 24 characters" in refused.stderr


def test_without_a_terminal_somebody_must_say_how_the_root_key_lies(cli: Cli, paths: Paths) -> None:
    refused = cli("node", "id", "new")
    assert "--no-passphrase" in refused.stderr
    assert refused.exit_code == 2
    assert "AUTORESEARCH_PASSPHRASE" in refused.stderr
    assert not (paths.keys / "root.key").exists()


@pytest.mark.slow
def test_an_encrypted_identity_works_without_the_passphrase(
    cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    made = json.loads(cli("node", "id", "new", "--json").stdout)
    assert made["root_key"] == "encrypted"
    assert not paths.log.exists()  # so that another network can still be joined
    assert cli("node", "id", "renew").exit_code == 0
    monkeypatch.delenv("AUTORESEARCH_PASSPHRASE")
    assert json.loads(cli("node", "id", "show", "--json").stdout) == made
    assert rows(cli) == {made["device_key"]: "active"}
    with Notebook(paths) as notebook:
        before = notebook.log.records.count("identity")
        notebook.publish_identity(notebook.device(0).until_ms)  # type: ignore[union-attr,arg-type]
        assert notebook.log.records.count("identity") == before


def test_a_plain_root_key_renews_by_itself_and_a_revoked_device_stays_revoked(cli: Cli, paths: Paths) -> None:
    cli("node", "id", "new", "--no-passphrase")
    cli("node", "id", "renew")
    key = json.loads(cli("node", "id", "show", "--json").stdout)["device_key"]
    with Notebook(paths) as notebook:
        start_ms = notebook.device(0).since_ms  # type: ignore[union-attr]
        for day in (1, 59, 61, 62, 130):
            notebook.publish_identity(start_ms + day * DAY_MS)
        assert notebook.log.records.count("identity") == 4  # two at first, then on days 61 and 130
        roster = Roster(notebook.log.records.newest(kind="identity", limit=99), Trust())
        for day in range(200):
            assert roster.voter(notebook.author, start_ms + day * DAY_MS + 1).root == notebook.identity.root.public
    assert rows(cli) == {key: "active"}


def test_a_revoked_device_is_not_renewed(cli: Cli, paths: Paths) -> None:
    cli("node", "id", "new", "--no-passphrase")
    cli("node", "id", "renew")
    key = json.loads(cli("node", "id", "show", "--json").stdout)["device_key"]
    assert cli("node", "id", "revoke", "zz").exit_code == 4
    assert cli("node", "id", "revoke", key[:12], "--reason", "stolen", "--yes").exit_code == 0
    assert rows(cli) == {key: "revoked"}
    with Notebook(paths) as notebook:
        notebook.publish_identity(notebook.device(0).until_ms + 1)  # type: ignore[union-attr,operator]
    assert rows(cli) == {key: "revoked"}
    assert cli("node", "id", "renew").exit_code == 0
    assert rows(cli) == {key: "active"}


@pytest.mark.slow
def test_a_second_machine_joins_the_participant(
    cli: Cli, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    first = json.loads(cli("node", "id", "new", "--json").stdout)
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "second"))
    request = cli("node", "id", "add-device").stdout.strip()
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    assert cli("node", "id", "add-device", request[:-2]).exit_code == 2
    answer = cli("node", "id", "add-device", request).stdout.strip()
    assert "waiting" in rows(cli).values()
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "third"))
    assert cli("node", "id", "add-device", answer).exit_code == 6  # for another device
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "second"))
    monkeypatch.delenv("AUTORESEARCH_PASSPHRASE")
    done = cli("node", "id", "add-device", answer)
    assert done.exit_code == 0, done.output
    second = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "second")})
    mine = load_identity(second.keys)
    assert mine.root == LockedKey(bytes.fromhex(first["participant"]), is_local=False)
    assert rows(cli)[mine.device.public.hex()] == "active"
    renewed = cli("node", "id", "renew")
    assert (renewed.exit_code, "not on this machine" in renewed.stderr) == (6, True)
    # Before anybody writes a mail whose code nobody here could answer, and before a daemon is looked for.
    result = cli("node", "id", "attest", "you@example.org")
    assert (result.exit_code, "where the root key is" in result.stderr) == (6, True)


def test_an_answer_of_somebody_else_or_another_network_is_refused(cli: Cli, paths: Paths) -> None:
    from autoresearch.record.kinds import Identity
    from autoresearch.record.record import Network, seal
    from autoresearch.trust.identity import write_answer

    cli("node", "id", "add-device")
    from autoresearch.trust.identity import own_device

    device, root = own_device(paths.keys).public, KeyPair.generate()
    body = Identity(action="delegate", root=root.public, device=device)
    other = seal(root, Network(name="other"), "identity", body, seq=1, prev=b"", time_ms=1_800_000_000_000)
    assert "another network" in cli("node", "id", "add-device", write_answer(other)).stderr
    thief = seal(KeyPair.generate(), DEFAULT_NETWORK, "identity", body, seq=1, prev=b"", time_ms=1_770_000_000_000)
    assert cli("node", "id", "add-device", write_answer(thief)).exit_code == 6
    assert not (paths.keys / "root.pub").exists()


@pytest.mark.slow
def test_backup_and_restore(cli: Cli, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("node", "id", "new", "--no-passphrase")
    first = json.loads(cli("node", "id", "show", "--json").stdout)
    file = tmp_path / "backup"
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    assert cli("node", "id", "backup", str(file)).exit_code == 0
    assert cli("node", "id", "backup", str(file)).exit_code == 6
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "second"))
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "a wrong guess")
    assert cli("node", "id", "restore", str(file)).exit_code == 6
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    second = json.loads(cli("node", "id", "restore", str(file), "--json").stdout)
    assert second["participant"] == first["participant"]
    assert second["device_key"] != first["device_key"]
    assert second["root_key"] == "encrypted"


@pytest.mark.slow
def test_a_passphrase_is_set_and_removed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("node", "id", "new", "--no-passphrase")
    assert cli("node", "id", "passphrase").exit_code == 2
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    assert json.loads(cli("node", "id", "passphrase", "--json").stdout)["root_key"] == "encrypted"
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "wrong")
    assert cli("node", "id", "passphrase", "--remove").exit_code == 6
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    assert json.loads(cli("node", "id", "passphrase", "--remove", "--json").stdout)["root_key"] == "plain"


def test_a_lost_device_key_is_replaced_for_the_root_key_that_is_there(cli: Cli, paths: Paths) -> None:
    assert cli("node", "id", "new", "--no-passphrase").exit_code == 0
    before = load_identity(paths.keys)
    (paths.keys / "device.key").unlink()
    result = cli("node", "id", "show")
    assert (result.exit_code, "the device key of this machine is missing" in result.stderr) == (4, True)
    with Notebook(paths) as notebook:
        assert notebook.identity.root.public == before.root.public
        assert notebook.author != before.device.public
    assert cli("node", "id", "show").exit_code == 0
