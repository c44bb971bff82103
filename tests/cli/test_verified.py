"""What people see of verification: states, who measured, sections, demotions, what has to be compared again."""

from __future__ import annotations

import re

import msgspec
import pytest
from autoresearch_cli.home import now_ms
from autoresearch_cli.rendering.status import print_peers, status_lines

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import (
    CardStatus,
    MachineStatus,
    NetworkStatus,
    PeersAnswer,
    PeerView,
    RunInHand,
    StatusAnswer,
    VerifyingStatus,
    WaitingStatus,
    WorkerStatus,
)
from autoresearch.face.columns.people import remarks
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import MarkView, ParticipantView
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Identity, Verification, Withdrawal
from autoresearch.trust.identity import create_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from tests.cli.conftest import Cli
from tests.log.standing.test_evidence import fork
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, ROOTS, STRANGER, TRUST, Village
from tests.record.making import NETWORK, commitment


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_best_shows_what_others_measured_with_its_interval_and_how_many_they_were(cli: Cli, village: Village) -> None:
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    checked = village.run(1.1, "checked", by=BEN)
    village.evaluate(checked, 1.1, ANN, CEM, DOT)
    village.run(1.0, "said", by=CEM)
    output = dict(row[:2] for row in rows(cli("best").stdout))
    assert output["best"].startswith("1.2250 ± 0.0257 verified · confirmed")
    assert output["confirmed"].startswith(
        f"{short_id(steady.id)} · verified 1.2250 ± 0.0257, median of 4 runs of verifiers · reported 1.2200"
    )
    assert " · gain +0.7800 ± 0.0253 verified, in pairs · gain reported +0.7800 · it is better" in output["confirmed"]
    assert "“checked”" in output["provisional"]
    assert "“said”" in output["reported"]
    assert cli("show", "@", "--field", "id").stdout.strip() == format_id(steady.id)


def test_best_says_what_was_confirmed_and_is_no_more(cli: Cli, village: Village) -> None:
    fake = village.run(0.9, "magic")
    village.confirm(fake, 2.0, 0.92)
    village.evaluate(fake, 1.9, EVE)
    assert f"{short_id(fake.id)} “magic” is disputed now, was confirmed until 20" in cli("best").stdout
    assert "was confirmed until 20" in cli("show", format_id(fake.id)).stdout


def test_top_has_the_confirmed_first_and_strangers_last(cli: Cli, village: Village) -> None:
    village.run(0.5, "incredible", by=STRANGER)
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    false = village.run(0.9, "false", by=BEN)
    village.run(0.95, "child", parent=false, by=CEM)
    village.refute(false, 1.9)
    table = rows(cli("top").stdout)
    assert [(row[0], row[14], row[11], row[16], row[17]) for row in table] == [
        ("1", "steady", "confirmed", "confirmed", ""),
        ("0", "child", "reported", "open", "re-test"),
        ("0", "baseline", "reported", "open", ""),
        ("0", "false", "refuted", "failed", ""),
        ("0", "incredible", "reported", "unattested", ""),
    ]
    assert (*table[0][2:4], table[0][10], table[0][15]) == ("1.22", "1.225", "4", "3")
    assert float(table[0][4]) == pytest.approx(0.0256749, rel=1e-6)
    person = cli("--color", "always", "top").stdout
    for heading in ("confirmed: ranked by the values that verifiers measured", "by unattested participants"):
        assert heading in person
    assert "re-test: child" in person


def test_top_and_best_tell_who_copied_and_who_cheated_and_what_the_words_mean(cli: Cli, village: Village) -> None:
    idea = village.run(1.3, "idea", by=ANN)
    village.run(1.1, "idea", by=BEN)
    fork(village, of=idea)  # so that the copy stands on the board
    village.run(0.5, "lucky", by=EVE, seed=7)
    village.run(1.35, "more", by=EVE)
    table = {row[14]: row for row in rows(cli("top").stdout)}
    assert table["idea"][20:22] == ["copier", format_id(idea.id)]
    assert table["more"][20:22] == ["fraud, banned", ""]
    assert table["baseline"][20:22] == ["", ""]
    person = cli("--color", "always", "top")
    assert "copy: idea" in person.stdout
    assert "fraud, banned" in person.stdout
    output = person.stderr
    assert "copier: published another participant's run as its own\n" in output
    assert "copy: another participant published it before\n" in output
    assert output.count("fraud: ") == 1
    shorts = [cli("network", "credit", root.public.hex()[:8]) for root in (ROOTS[2], ROOTS[5])]
    assert all(f"autoresearch network credit {root.public.hex()[:8]}" in output for root in (ROOTS[2], ROOTS[5]))
    assert all(page.exit_code == 0 for page in shorts)
    best = cli("best")
    answer = dict(row[:2] for row in rows(best.stdout))
    assert " · copy · " in answer["reported"]
    assert f"by {ROOTS[2].public.hex()[:8]} (copier)" in answer["reported"]
    assert "copier: published another participant's run" in best.stderr
    assert f"copy of {short_id(idea.id)}: another participant published it before" in cli("show", "@").stdout


def test_show_lists_who_measured_what_and_what_came_of_it(cli: Cli, village: Village) -> None:
    false = village.run(0.9, "false", by=BEN)
    child = village.run(0.95, "child", parent=false, by=CEM)
    village.refute(false, 1.9)
    output = cli("show", format_id(false.id)).stdout
    assert "verifiers measured another value" in output
    assert "verifiers\t5, below" in output
    assert "reported → disputed → refuted" in output
    assert output.count("evaluate") == 5
    assert "its author: fabricator, reported a value that verifiers refuted" in output
    other = village.run(1.9, "later", by=BEN)
    stranger = village.run(0.5, "incredible", by=STRANGER)
    assert "its author is unattested" in cli("show", format_id(stranger.id)).stdout
    assert "its author: fabricator" in cli("show", format_id(other.id)).stdout, "a mark stays beside the name"
    assert "fabricator" not in cli("show", format_id(child.id)).stdout
    assert "re-test: its parent run was refuted" in cli("show", format_id(child.id)).stdout


@pytest.mark.slow
def test_whoever_is_named_in_a_table_is_found_by_what_stands_there(cli: Cli, village: Village) -> None:
    village.append(ANN, "identity", Identity(action="profile", root=ROOTS[1].public, name="ann \x1b” 9"))
    run = village.run(1.22, "steady", by=ANN)
    village.confirm(run, 2.0, 1.22)
    short = ROOTS[1].public.hex()[:8]
    sentence = f"{short} “ann 9”"
    pages = [
        ("top",),
        ("best",),
        (
            "node",
            "records",
        ),
        ("show", "@"),
        (
            "network",
            "credit",
        ),
        ("network", "credit", short),
    ]
    for words in pages:
        page = " ".join(cli("--color", "always", *words).stdout.split())
        assert sentence in page, words
    assert sentence in cli("--color", "always", "run", "lineage", "@").stdout
    assert ANN.public.hex() in cli("show", "@").stdout, "the device is a detail"
    assert rows(cli("top").stdout)[0][18:20] == [ROOTS[1].public.hex(), "ann 9"]
    by_device, by_name = cli("network", "credit", ANN.public.hex()[:12]), cli("network", "credit", "ann 9")
    assert by_device.stdout == by_name.stdout == cli("network", "credit", short).stdout
    verifier = rows(cli("show", "@").stdout)[-1][3]
    assert cli("network", "credit", verifier.split()[0]).exit_code == 0


def test_a_name_that_two_have_is_no_way_to_find_one(cli: Cli, village: Village) -> None:
    village.run(1.22, "steady", by=ANN)
    village.run(1.23, "other", by=STRANGER)
    for who, root in ((ANN, ROOTS[1]), (STRANGER, STRANGER)):
        village.append(who, "identity", Identity(action="profile", root=root.public, name="ann"))
    result = cli("network", "credit", "ann")
    assert result.exit_code == 5
    assert ROOTS[1].public.hex()[:8] in result.stderr
    assert STRANGER.public.hex()[:8] in result.stderr


def test_show_says_that_a_run_was_withdrawn_and_where_its_author_s_deeds_are(cli: Cli, village: Village) -> None:
    run = village.run(1.22, "steady", by=ANN)
    assert "withdrew it" not in cli("show", format_id(run.id)).stdout
    village.append(ANN, "withdrawal", Withdrawal(reason="a mistake"), [run.id])
    output = cli("show", format_id(run.id)).stdout
    assert "its author withdrew it, " in output
    assert "“a mistake”; it does not rank" in output
    false = village.run(0.9, "false", by=BEN)
    village.refute(false, 1.9)
    sentence = f"with the records: autoresearch network credit {ROOTS[2].public.hex()[:8]}"
    assert sentence in cli("show", format_id(false.id)).stdout


def test_log_and_lineage_say_the_state(cli: Cli, village: Village) -> None:
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    assert {row[0]: row[6] for row in rows(cli("node", "records", "--kind", "run").stdout)}[
        format_id(steady.id)
    ] == "confirmed"
    output = cli("--color", "always", "node", "records", "--kind", "run").stdout
    assert re.search(r"mconfirmed\x1b\[0m +\w+ +steady: 1\.22\n", output)
    steps = rows(cli("run", "lineage", "@").stdout)
    assert [row[9] for row in steps] == ["reported", "confirmed"]
    assert (steps[1][2], steps[1][4], *steps[1][11:13]) == ("1.225", "0.78", "4", "3")


def test_where_nobody_is_named_all_words_are_alike_and_it_says_so(cli: Cli, paths: Paths) -> None:
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK))
    with Log.open(paths.log, NETWORK) as log:
        Village(log).run(1.2, "said", by=STRANGER)
    result = cli("top")
    assert [(row[0], row[14], row[16]) for row in rows(result.stdout)] == [("1", "said", ""), ("2", "baseline", "")]
    sentence = "4 more participants and runs can be confirmed → "
    assert f"{sentence}in a network that names them: autoresearch network new NAME --for lab" in result.stderr


@pytest.mark.slow
def test_credit_is_a_row_for_each_participant_and_one_whole_with_its_records(cli: Cli, village: Village) -> None:
    run = village.run(1.22, "steady", by=ANN, cpu_ms=24_000, duration_ms=30_000, metrics={"work": 1e12})
    checks = village.confirm(run, 2.0, 1.22)
    village.run(0.5, "incredible", by=STRANGER)
    table = {row[0]: row for row in rows(cli("network", "credit").stdout)}
    ann = next(row for row in table.values() if row[4] == "1")
    assert ann[1:4] == ["attested", "1", "1"]
    assert (ann[8], ann[9], ann[16]) == ("24", "1e+12", "val_bpb +0.7800")
    assert table[STRANGER.public.hex()][1] == "not attested"
    whole = dict(row[:2] for row in rows(cli("network", "credit", ann[0][:8]).stdout))
    assert whole["confirmed"] == f"1: {short_id(run.id)}"
    assert whole["compute"].startswith("24 s of processor, 1e+12 units of work")
    verifier = next(row[0] for row in table.values() if row[12] == "2" or row[10] == "1")
    passed = dict(row[:2] for row in rows(cli("network", "credit", verifier).stdout))["passes"]
    assert any(short_id(check.id) in passed for check in checks)
    person = cli("--color", "always", "network", "credit").stdout
    assert "by unattested participants" in person
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", person).splitlines())) <= 80
    assert cli("network", "credit", "no such key").exit_code == 2
    assert cli("network", "credit", "0" * 16).exit_code == 4


def test_status_says_what_was_verified_today_and_what_it_took() -> None:
    part = VerifyingStatus(today=3, spent_ms=180_000, share=0.25, runs_today=1)
    status = StatusAnswer(state="idle", why="not_asked", reason="", verifying=part)
    assert ("today", "1 run · 3 verifications, 25% of the time") in status_lines(status, 0)


def test_status_says_what_the_machine_is_busy_with() -> None:
    card = CardStatus(name="H100", busy=0.97, memory_bytes=20 << 30, memory_total_bytes=80 << 30, watts=301.5)
    machine = MachineStatus(
        processors=8,
        busy=0.5,
        memory_bytes=4 << 30,
        memory_total_bytes=16 << 30,
        watts=45.0,
        joules=7.2e6,
        cards=[card],
    )
    status = StatusAnswer(state="working", why="asked", reason="", machine=machine)
    line = "processor 50% of 8 cores · memory 4.0 GiB of 16.0 GiB · H100 97% · 20.0 GiB of 80.0 GiB · 302 W"
    assert dict(status_lines(status, 0))["machine"] == f"{line} · 45 W · 2 kWh since the start"
    unread = msgspec.structs.replace(machine, watts=None, joules=None, cards=[])
    lines = status_lines(msgspec.structs.replace(status, machine=unread), 0)
    assert dict(lines)["machine"] == "processor 50% of 8 cores · memory 4.0 GiB of 16.0 GiB"


@pytest.mark.slow
def test_trust_counts_at_once_without_a_daemon(cli: Cli, village: Village, paths: Paths) -> None:
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    assert "confirmed" in dict(row[:2] for row in rows(cli("best").stdout))
    for root in ROOTS[:3]:
        assert "no daemon runs" in cli("network", "distrust", root.public.hex(), "--participant").stderr
    assert "confirmed" not in dict(row[:2] for row in rows(cli("best").stdout))
    for root in ROOTS[:3]:
        cli("network", "trust", root.public.hex(), "--participant")
    assert "confirmed" in dict(row[:2] for row in rows(cli("best").stdout))


def test_status_says_how_many_runs_are_still_to_be_judged() -> None:
    status = StatusAnswer(state="idle", why="", reason="")
    assert "judged" not in dict(status_lines(status, 0))["log"]
    for number, sentence in ((1, "1 run is still being judged"), (1234, "1,234 runs are still being judged")):
        lines = status_lines(msgspec.structs.replace(status, unsettled=number), 0)
        assert ("log", f"0 records · {sentence}") in lines


def test_status_says_what_is_checked_for_whom_why_and_what_is_not_told_yet() -> None:
    ann = ParticipantView(key="3fa9bc12" + "0" * 56, short="3fa9bc12", name="ann")
    run = RunInHand(
        title="checking g3xk: faster",
        kind="verification",
        checked="bafy",
        stage="replicate",
        participant=ann,
        reason="drawn by VRF",
        started_ms=1000,
    )
    waits = WaitingStatus(
        run="bafy",
        title="deeper",
        participant=ann,
        stage="evaluate",
        round=0,
        measured_ms=0,
        missing=2,
        tells_ms=120_000,
        verdict="pass",
        value=1.25,
    )
    part = VerifyingStatus(today=0, spent_ms=0, share=0, runs_today=0, asked_share=0.2, waiting=[waits], note="none")
    worker = WorkerStatus(name="w1", device="cpu", why="verifying", reason="", run=run)
    lines = dict(
        status_lines(
            StatusAnswer(state="working", why="", reason="", attested=True, verifying=part, workers=[worker]), 61_000
        )
    )
    sentence = "checking g3xk: faster by 3fa9bc12 “ann” · running it beside its parent · drawn by VRF · 1 min"
    assert lines["now"] == f"{sentence} · w1 on cpu"
    assert lines["verify"] == "up to 20% of the time over 24 hours · none"
    what = "evaluate of bafy “deeper” by 3fa9bc12 “ann”: pass 1.2500"
    assert lines["measured"] == f"{what} · revealed when 2 more verifiers have measured it, or in 59 s"
    alone = StatusAnswer(state="working", why="", reason="working until you pause or finish it", verifying=part)
    assert "verify" not in dict(status_lines(alone, 0)), "nobody else is concerned"
    assert dict(status_lines(alone, 0))["state"] == "working until you pause or finish it", "said once"
    down = StatusAnswer(running=False, state="stopped", why="", reason="", verifying=part)
    assert dict(status_lines(down, 61_000))["measured"].endswith("revealed once the daemon runs: autoresearch up")


def test_status_tells_what_waits_with_the_daemon_down(cli: Cli, paths: Paths) -> None:
    mine = create_identity(paths.keys)
    trust = Trust(participants=TRUST.participants | {mine.root.public})
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK, trust=trust))
    with Log.open(paths.log, NETWORK, trust=trust) as log:
        run = Village(log).run(1.2, "good", by=ANN)
    with Notebook(paths) as notebook:
        notebook.publish_identity(now_ms())
        device = notebook.identity.device
        proof = ecvrf.prove(bytes(device.key), question(run.id, "evaluate", 0))
        body = Verification(run=run.id, stage="evaluate", verdict="pass", value=1.2, proof=proof)
        notebook.publish_commitment(commitment(device, body), now_ms())
    output = dict(row[:2] for row in rows(cli("status").stdout))
    assert output["measured"].startswith(f"evaluate of {short_id(run.id)} “good” by {ROOTS[1].public.hex()[:8]}")


def test_a_network_too_small_says_how_many_are_missing_and_what_to_do(cli: Cli, paths: Paths) -> None:
    paths.create()
    trust = Trust(participants=frozenset(root.public for root in ROOTS[:2]))
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK, trust=trust))
    with Log.open(paths.log, NETWORK, trust=trust) as log:
        run = Village(log).run(1.2, "said", by=ANN)
    way = "on every machine: autoresearch network trust KEY --participant"
    sentence = f"2 more participants and runs can be confirmed → {way}"
    assert sentence in cli("best").stdout
    assert sentence in cli("top").stderr
    assert sentence in cli("show", format_id(run.id)).stdout


def test_peers_shows_who_is_behind_a_peer_and_what_is_wrong_with_them(capsys: pytest.CaptureFixture[str]) -> None:
    bad = PeerView(
        peer="12D3KooWbad",
        connected=True,
        participant=ParticipantView(key="3fa9bc12" + "0" * 56, short="3fa9bc12", name="eve\x1b[2J"),
        marks=[MarkView(mark=mark, record="bafy", evidence=[], time_ms=1) for mark in ("fabricator", "fraud", "fraud")],
        banned_until_ms=86_400_000,
    )
    answer = PeersAnswer(network=NetworkStatus(state="running"), peers=[bad, PeerView(peer="12D3KooWsilent")])
    print_peers(answer, now_ms=1000)
    rows_shown = rows(capsys.readouterr().out)
    until = "banned until 1970-01-02T00:00:00Z"
    assert rows_shown[0][10:] == [bad.participant.key, "eve\ufffd[2J", "fabricator, fraud ×2", until]
    assert rows_shown[1][10:] == ["", "", "", ""]
    assert remarks(bad, 1000) == f"fabricator, fraud ×2, {until} → autoresearch network credit 3fa9bc12"
    assert "banned" not in remarks(bad, 90_000_000), "it is over, the mark stays"


def test_status_says_who_this_is_to_others_and_how_it_comes_to_count(cli: Cli, paths: Paths) -> None:
    root = create_identity(paths.keys).root.public
    paths.create()
    for trust, message in (
        (Trust(participants=TRUST.participants | {root}), "“ann” · named by hand"),
        (
            TRUST,
            " · unattested, your verifications do not count yet → on the others' machines: "
            f"autoresearch network trust {root.hex()} --participant",
        ),
    ):
        save_manifest(paths.manifest, NetworkManifest(network=NETWORK, trust=trust))
        named = cli("node", "id", "name", "ann")
        assert named.exit_code == 0, named.stderr
        assert message in dict(row[:2] for row in rows(cli("status").stdout))["you"]
    assert cli("status").stdout.count(f"{root.hex()[:8]} “ann”") == 1
    assert dict(row[:2] for row in rows(cli("node", "id", "show").stdout))["name"] == "ann"
    for words in (("node", "id", "name"), ("node", "id", "name", ""), ("node", "id", "name", "ann", "--remove")):
        refused = cli(*words)
        assert refused.exit_code == 2
        assert "--remove" in refused.stderr
    assert cli("node", "id", "name", "--remove").exit_code == 0
    assert "name" not in dict(row[:2] for row in rows(cli("node", "id", "show").stdout))
    assert f"{root.hex()[:8]} · unattested" in cli("status").stdout
    before = cli("node", "records", "--json").stdout
    assert cli("node", "id", "name", "--remove").exit_code == 0
    assert cli("node", "records", "--json").stdout == before, "there was nothing to take away"
    assert cli("node", "id", "name", "ben").exit_code == 0
    assert dict(row[:2] for row in rows(cli("node", "id", "show").stdout))["name"] == "ben"
    for wrong in ("x" * 25, "two\nlines", "“quoted”", " "):
        refused = cli("node", "id", "name", wrong)
        assert refused.exit_code == 2
        assert "1 to 24 characters" in refused.stderr


def test_status_says_why_the_network_moves_records_alone() -> None:
    running = StatusAnswer(state="idle", why="not_asked", reason="", net=NetworkStatus(state="running", connected=2))
    assert ("net", "running: 2 peers connected, 0 B today") in status_lines(running, 0)
    assert running.net
    metered = msgspec.structs.replace(running.net, reason="this link is metered: records move")
    metered_status = msgspec.structs.replace(running, net=metered)
    assert ("net", "running: 2 peers connected, 0 B today; this link is metered: records move") in status_lines(
        metered_status, 0
    )
