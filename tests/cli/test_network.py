"""``network``: founding, joining and editing, without another node. Asking one is in ``tests/daemon/net``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from autoresearch_cli.models import NetworkAnswer

from autoresearch.judging.committee import network_rules
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS
from autoresearch.settings import load_settings
from autoresearch.trust.identity import load_identity
from autoresearch.trust.invite import read_invite, write_invite
from autoresearch.trust.manifest_file import load_manifest, read_manifest, save_manifest
from tests.cli.conftest import Cli
from tests.cli.test_json import strictly
from tests.trust.networks.making import TEA

KEY = "ab" * 32


@pytest.fixture
def tea(tmp_path: Path) -> Path:
    """A network's file."""
    save_manifest(tmp_path / "tea.toml", TEA)
    return tmp_path / "tea.toml"


def test_a_network_in_which_nobody_can_count_says_so(cli: Cli, tmp_path: Path) -> None:
    cases = {(): "0 of the 2", ("--for", "open"): "0 of the 2", ("--attestor", KEY): "1 of the 2"}
    for number, (words, named) in enumerate(cases.items()):
        made = cli("network", "new", "a", "-o", str(tmp_path / f"{number}.toml"), *words)
        assert "no participant can count in this network" in made.stdout
        assert f"it names {named} attestors" in made.stdout
        assert "can be confirmed from" not in made.stderr
    enough = ("--attestor", KEY, "--needed", "1", "--json")
    assert (
        strictly(cli("network", "new", "b", "-o", str(tmp_path / "b.toml"), *enough).stdout, NetworkAnswer).note == ""
    )


def test_a_new_network_is_a_file_and_nothing_else(cli: Cli, tmp_path: Path, home: Path) -> None:
    file = tmp_path / "lab.toml"
    words = ("network", "new", "lab", "-o", str(file), "--attestor", KEY, "--needed", "1", "--participant", "cd" * 32)
    answer = strictly(cli(*words, "--json").stdout, NetworkAnswer)
    manifest = read_manifest(file)
    assert (manifest.network.name, manifest.network.id.hex(), len(manifest.network.nonce)) == ("lab", answer.id, 16)
    assert (answer.attestors, answer.needed, answer.participants) == ([KEY], 1, ["cd" * 32])
    assert not (home / "data" / "network.toml").exists()
    assert cli(*words).exit_code == 6
    assert read_manifest(file) == manifest
    assert strictly(cli(*words[:4], str(tmp_path / "b.toml"), "--json").stdout, NetworkAnswer).id != answer.id


def test_a_founder_sets_the_rules_of_verification(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    words = ("network", "new", "lab", "-o", str(file))
    answer = strictly(
        cli(*words, "--set", "verify_age_ms=0", "--set", "verify_quorum=2", "--json").stdout, NetworkAnswer
    )
    assert answer.constants == {"verify_age_ms": 0, "verify_quorum": 2}
    assert network_rules(read_manifest(file).network).quorum == 2
    for wrong in ("verify_quorum=0", "verify_quorum", "verify_quorum=two", "quorum=2"):
        assert cli("network", "new", "b", "-o", str(tmp_path / "b.toml"), "--set", wrong).exit_code == 2
        assert not (tmp_path / "b.toml").exists()


@pytest.mark.parametrize(("kind", "least", "counts"), [("lab", 3, True), ("friends", 4, True), ("open", 4, False)])
def test_a_kind_of_network_has_its_constants_and_its_founder_counts(
    cli: Cli, paths: Paths, tmp_path: Path, kind: str, least: int, counts: bool
) -> None:
    file = tmp_path / "net.toml"
    words = ("network", "new", "net", "-o", str(file), "--for", kind, "--participant", KEY)
    result = cli(*words, "--set", "verify_ban_ms=5")
    assert f"confirmed from {least} participants on" in result.stderr
    manifest = read_manifest(file)
    rules = network_rules(manifest.network)
    assert (rules.least, manifest.network.verify_ban_ms) == (least, 5)
    assert rules.age_ms == (DAY_MS if kind == "open" else 0)
    own = {load_identity(paths.keys).root.public} if counts else set()
    assert (manifest.trust.participants, manifest.trust.founders) == ({bytes.fromhex(KEY)}, own)


@pytest.mark.parametrize(
    "words", [("a/b",), ("lab", "--attestor", "me"), ("lab", "--bootstrap", "x"), ("lab", "--needed", "0"), ("x" * 41,)]
)
def test_a_network_that_cannot_be_is_not_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("network", "new", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert not list(tmp_path.glob("*.toml"))


def test_a_file_and_an_invite_are_joined_alike(cli: Cli, paths: Paths, tea: Path) -> None:
    by_file = strictly(cli("network", "join", str(tea), "--json").stdout, NetworkAnswer)
    assert load_manifest(paths.manifest) == TEA
    assert load_settings(paths.settings, {})[0].network.enabled or not by_file.enabled
    assert read_invite(by_file.invite).manifest == TEA
    paths.manifest.unlink()
    again = cli("network", "join", by_file.invite, "--json").stdout
    assert json.loads(again) == json.loads(cli("network", "show", "--json").stdout)
    assert load_manifest(paths.manifest) == TEA
    assert cli("network", "invite").stdout.strip() == write_invite(TEA)


@pytest.mark.parametrize(
    ("text", "code"), [("nothing", 4), ("autoresearch1abc", 2), ("/ip4/127.0.0.1/tcp/1", 2), ("bad.toml", 2)]
)
def test_what_is_no_network_is_a_sentence_and_changes_nothing(
    cli: Cli, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("name = 1")
    result = cli("network", "join", text)
    assert (result.exit_code, result.stdout) == (code, "")
    assert "→" in result.stderr or "bad.toml" in result.stderr
    assert not paths.manifest.exists()
    assert not paths.settings.exists()


def test_joining_again_adds_addresses_and_keeps_whom_this_node_trusts(cli: Cli, paths: Paths, tea: Path) -> None:
    cli("network", "join", str(tea))
    cli("network", "trust", KEY)
    other = TEA.with_bootstrap((TEA.bootstrap[0].replace("203.0.113.7", "203.0.113.8"),))
    result = cli("network", "join", write_invite(other.with_participant(b"z" * 32)))
    assert "your trust list is unchanged" in result.stderr
    manifest = load_manifest(paths.manifest)
    assert manifest.trust == TEA.with_attestor(bytes.fromhex(KEY)).trust
    assert set(manifest.bootstrap) == set(other.bootstrap)


def test_keys_are_trusted_and_distrusted(cli: Cli, paths: Paths) -> None:
    assert KEY in cli("network", "trust", KEY).stdout
    assert cli("network", "trust", KEY, "--participant").exit_code == 0
    trust = load_manifest(paths.manifest).trust
    assert trust.attestors == trust.participants == {bytes.fromhex(KEY)}
    cli("network", "distrust", KEY)
    cli("network", "distrust", KEY, "--participant")
    assert KEY not in cli("network", "show").stdout
    assert cli("network", "trust", "me").exit_code == 2


def test_a_damaged_manifest_is_a_sentence_everywhere(cli: Cli, paths: Paths) -> None:
    paths.create()
    paths.manifest.write_text('name = "tea"\nid = "00"')
    for words in (
        (
            "node",
            "records",
        ),
        ("network", "show"),
        ("network", "trust", KEY),
        (
            "node",
            "doctor",
        ),
    ):
        result = cli(*words)
        assert "network.toml" in result.output
        assert "Traceback" not in result.output
    assert paths.manifest.read_text() == 'name = "tea"\nid = "00"'
