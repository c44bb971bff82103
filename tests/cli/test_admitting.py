"""``network invite``, ``invites``, ``admit`` and ``dismiss`` as a person types them, without a daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from autoresearch_cli.models import InvitationsAnswer, NetworkAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import StatusAnswer, VotersAnswer
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.kinds import Identity
from autoresearch.record.record import DAY_MS
from autoresearch.trust.identity import load_identity
from autoresearch.trust.invite import Invitations, join_with, read_invite
from autoresearch.trust.manifest_file import load_manifest
from tests.cli.conftest import Cli
from tests.cli.test_json import strictly
from tests.record.making import key

ANN, ANNS_ROOT = key(1), key(101)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def lab(cli: Cli, paths: Paths, tmp_path: Path) -> Paths:
    """The home of the founder of a network for a team."""
    assert cli("network", "new", "lab", "--for", "lab", "-o", str(tmp_path / "lab.toml")).exit_code == 0
    assert cli("network", "join", str(tmp_path / "lab.toml")).exit_code == 0
    with Notebook(paths) as notebook:
        notebook.publish_identity(now_ms())
    return paths


def log_of(paths: Paths) -> Log:
    manifest = load_manifest(paths.manifest)
    return Log.open(paths.log, manifest.network, trust=manifest.trust)


def ann_is_seen(paths: Paths) -> None:
    """Another participant with a name signed something that is in the log."""
    with log_of(paths) as log:
        says = Identity(action="delegate", root=ANNS_ROOT.public, device=ANN.public)
        log.writer.append(ANNS_ROOT, "identity", says, now_ms=now_ms())
        log.writer.append(
            ANN, "identity", Identity(action="profile", root=ANNS_ROOT.public, name="ann"), now_ms=now_ms()
        )


def counting(cli: Cli) -> dict[str, str]:
    answer = strictly(cli("network", "show", "--json").stdout, NetworkAnswer)
    return {voter.participant.key: voter.why for voter in answer.voters}


def test_a_founders_invite_has_a_token_and_is_listed_until_it_is_ended(cli: Cli, lab: Paths) -> None:
    printed = cli("network", "invite", "--uses", "2", "--days", "3")
    token = read_invite(printed.stdout).token
    assert token is not None
    assert "the first 2 to join count" in printed.stderr
    [row] = strictly(cli("network", "invites", "--json").stdout, InvitationsAnswer).invitations
    join = join_with(token, load_manifest(lab.manifest).network.id, bytes(32))
    assert (row.token, row.uses, row.state, row.expires_ms - row.made_ms) == (join.token.hex(), 2, "open", 3 * DAY_MS)
    assert cli("network", "invite", "--revoke", row.token[:8]).exit_code == 0
    assert "ended" in cli("network", "invites").stdout
    assert cli("network", "invite", "--revoke", "zz").exit_code == 4


def test_the_invite_of_show_and_one_without_admission_have_no_token(cli: Cli, lab: Paths) -> None:
    assert read_invite(cli("network", "invite", "--no-admit").stdout).token is None
    assert read_invite(strictly(cli("network", "show", "--json").stdout, NetworkAnswer).invite).token is None
    made = strictly(cli("network", "invite", "--json").stdout, NetworkAnswer)
    assert read_invite(made.invite).token is not None
    assert made.admission is not None
    assert len(strictly(cli("network", "invites", "--json").stdout, InvitationsAnswer).invitations) == 1


def test_in_a_network_with_attestors_an_invite_admits_only_when_asked(cli: Cli, lab: Paths) -> None:
    cli("network", "trust", "ab" * 32)
    assert read_invite(cli("network", "invite").stdout).token is None
    assert read_invite(cli("network", "invite", "--admit").stdout).token is not None


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("invite", "--uses", "0"), 2, "1 to 256 uses"),
        (("invite", "--days", "1000"), 2, "1 to 365 days"),
        (("invite", "--no-admit", "--uses", "3"), 2, "admits nobody"),
        (("admit", "nobody"), 2, "names no participant"),
        (("admit", "abcd"), 4, "abcd"),
        (("dismiss", "me"), 6, "is a founder"),
        (("trust", "ab" * 32, "--founder", "--participant"), 2, "not both"),
    ],
)
def test_wrong_input_is_a_sentence_and_changes_nothing(
    cli: Cli, lab: Paths, words: tuple[str, ...], code: int, message: str
) -> None:
    before = lab.manifest.read_bytes()
    result = cli("network", *words)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert lab.manifest.read_bytes() == before
    assert cli("network", "invites").stdout == ""


def test_whoever_is_no_founder_admits_and_invites_nobody(cli: Cli, lab: Paths) -> None:
    own = load_identity(lab.keys).root.public.hex()
    cli("network", "trust", "ab" * 32, "--founder")
    cli("network", "distrust", own, "--founder")
    ann_is_seen(lab)
    for words in (("admit", "ann"), ("dismiss", "ann"), ("invite", "--admit")):
        result = cli("network", *words)
        assert (result.exit_code, "only a founder" in result.stderr) == (6, True), result.stderr
    plain = cli("network", "invite")
    assert read_invite(plain.stdout).token is None
    assert "a founder runs: autoresearch network admit WHO" in plain.stderr
    assert counting(cli) == {"ab" * 32: "founder"}
    assert "a founder admits you" in strictly(cli("status", "--json").stdout, StatusAnswer).to_count


def test_a_founder_admits_by_name_or_key_and_dismisses(cli: Cli, lab: Paths) -> None:
    own = load_identity(lab.keys).root.public.hex()
    ann_is_seen(lab)
    assert [line.split("\t")[1:] for line in cli("network", "admit").stdout.splitlines()] == [["ann", "", ""]]
    assert counting(cli) == {own: "founder"}
    answer = strictly(cli("network", "admit", "ann", "--reason", "our new machine", "--json").stdout, VotersAnswer)
    assert [voter.why for voter in answer.voters] == ["founder", "admitted"]
    assert answer.voters[1].by.key == own
    assert answer.note.startswith("1 more participant and runs can be confirmed")
    assert answer.candidates == []
    assert "our new machine" in cli("node", "records", "--kind", "admission").stdout
    gone = cli("network", "dismiss", ANNS_ROOT.public.hex()[:8])
    assert "its verifications count no longer" in gone.stderr
    assert counting(cli) == {own: "founder"}
    assert cli("network", "admit").stdout.split("\t")[3].startswith("20"), "when it was dismissed"
    assert "nothing changed" in cli("network", "dismiss", "ann").stderr
    refused = cli("network", "admit", "cd" * 32)
    assert (refused.exit_code, "has signed anything here" in refused.stderr) == (4, True)
    assert counting(cli) == {own: "founder"}


def test_joining_makes_the_keys_and_shows_the_participants_key_alone(
    cli: Cli, lab: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "you do not count" not in cli("network", "show").stdout
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    joined = cli("network", "join", str(tmp_path / "lab.toml"))
    own = load_identity(Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "other")}).keys)
    assert f"network admit {own.root.public.hex()}" in joined.stdout
    for words in (("network", "show"), ("status",)):
        output = cli(*words).stdout
        assert own.root.public.hex() in output
        assert own.device.public.hex()[:8] not in output


def test_a_dismissal_ends_the_invite_and_does_not_touch_who_is_named_by_hand(cli: Cli, lab: Paths) -> None:
    ann_is_seen(lab)
    token = read_invite(cli("network", "invite", "--uses", "5").stdout).token
    join = join_with(token, load_manifest(lab.manifest).network.id, ANNS_ROOT.public)
    with Notebook(lab) as notebook:
        notebook.publish_admission(ANNS_ROOT.public, now_ms(), token=join.token)
    assert f"with invite {join.token.hex()[:8]}" in cli("network", "show").stdout
    cli("network", "trust", ANNS_ROOT.public.hex(), "--participant")
    result = cli("network", "dismiss", "ann")
    assert "still counts here: named by hand → autoresearch network distrust" in result.stderr
    assert "the invite that it came with is ended too" in result.stderr
    assert cli("network", "invites").stdout.split("\t")[1:4] == ["ended", "1", "5"]


def test_who_joins_with_an_invite_waits_and_is_told_for_whom(
    cli: Cli, lab: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invite = cli("network", "invite").stdout
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    other = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "other")})
    joined = cli("network", "join", invite)
    assert "once a founder's node has seen that you joined" in joined.stdout
    assert "a founder admits you" not in joined.stdout
    stored = Invitations(other.manifest, load_manifest(other.manifest).network).kept_join()
    assert stored is not None
    assert stored.participant == load_identity(other.keys).root.public
    with Notebook(other) as notebook:
        notebook.publish_identity(now_ms())
        notebook.publish_join(stored, now_ms() - 21_000)
    document = json.loads(cli("network", "show", "--json").stdout)
    assert "wait for the founder's node, of which nothing has come here yet" in document["way"]
    assert "wait for the founder's node" in cli("status").stdout
    with log_of(lab) as founders, log_of(other) as local:
        records = [(record.raw, record.signature) for record in founders.records.newest()]
        local.writer.ingest(records, now_ms=now_ms())
    assert "for another invite and join with it: its node is up and did not admit you" in cli("network", "show").stdout
    with Notebook(other) as notebook:
        notebook.publish_join(stored, now_ms())
    assert "which was last seen just now" in cli("network", "show").stdout


def test_nothing_of_this_is_said_to_who_is_in_no_network(cli: Cli, paths: Paths) -> None:
    for words in (("network", "show"), ("network", "invite"), ("network", "invites"), ("network", "admit")):
        result = cli(*words)
        assert result.exit_code == 0
        assert "confirmed" not in result.output
