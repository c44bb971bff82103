"""Everybody can see what records prove against their authors, and check it for himself."""

from __future__ import annotations

import json
import re
import sqlite3

import msgspec

from autoresearch.ask.people.participants import EvidenceAnswer, EvidenceListAnswer
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.log.blobs import BlobStore
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Identity, Merge, Verification
from autoresearch.record.record import Record
from autoresearch.task.program import source_digest
from tests.cli.conftest import Cli
from tests.log.standing.village import ANN, BEN, CEM, DOT, ROOTS, STRANGER, Village
from tests.record.making import DEFINITION, pairs, run_body, sealed, task_body

SOURCE = b"x = 1\n"


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def fork(village: Village) -> tuple[Record, Record]:
    """Two records of one device with one number."""
    run = village.run(1.1, "here", by=ANN)
    village.now_ms += 1000
    other = sealed(ANN, run_body(0.7, source=b"elsewhere"), seq=run.seq, prev=run.prev, time_ms=village.now_ms)
    village.log.writer.ingest(pairs([other]), now_ms=village.now_ms)
    return run, other


def orphan(village: Village) -> Record:
    """A run with a parent on another task."""
    elsewhere = sealed(BEN, run_body(1.0, task=task_body(DEFINITION | {"name": "x"}).digest), seq=100, prev=bytes(32))
    village.log.writer.ingest(pairs([elsewhere]), now_ms=village.now_ms)
    return village.run(1.1, "orphan", by=BEN, parent=elsewhere)


def test_all_that_is_proved_is_listed_and_narrowed_down(cli: Cli, village: Village) -> None:
    assert cli("run", "evidence").exit_code == 0
    assert "there is no evidence of misbehaviour" in cli("run", "evidence").stderr
    false = village.run(0.9, "false", by=CEM)
    against = village.refute(false, 1.9)
    made_up, lucky = orphan(village), village.run(0.5, "lucky", by=DOT, seed=7)
    run, other = fork(village)
    table = rows(cli("run", "evidence").stdout)
    assert [(row[0], row[5]) for row in table] == [
        ("fork", "uncounted"),
        ("seed", "banned"),
        ("lineage", "banned"),
        ("value", "refuted"),
    ]
    assert set(table[0][7].split()) == {format_id(run.id), format_id(other.id)}
    assert (table[1][1], table[1][2], table[1][3]) == (format_id(lucky.id), ROOTS[4].public.hex(), DOT.public.hex())
    assert (table[2][1], table[3][1]) == (format_id(made_up.id), format_id(false.id))
    assert format_id(against[0].id) in table[3][7]
    assert [row[0] for row in rows(cli("run", "evidence", "--kind", "seed").stdout)] == ["seed"]
    for name in (ROOTS[4].public.hex()[:8], DOT.public.hex()[:12].upper()):
        assert [row[0] for row in rows(cli("run", "evidence", "--participant", name).stdout)] == ["seed"]
    village.append(DOT, "identity", Identity(action="profile", root=ROOTS[4].public, name="dot"))
    assert [(row[0], row[8]) for row in rows(cli("run", "evidence", "--participant", "dot").stdout)] == [
        ("seed", "dot")
    ]
    assert cli("run", "evidence", "--participant", ROOTS[5].public.hex()[:8]).stdout == ""
    assert cli("run", "evidence", "--participant", "0" * 12).exit_code == 4
    person = cli("--color", "always", "run", "evidence").stdout
    assert "banned until 20" in person
    assert "its later runs count once" in person
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", person).splitlines())) <= 80
    listed = msgspec.json.decode(cli("run", "evidence", "--json").stdout, type=EvidenceListAnswer)
    assert [item.kind for item in listed.evidence] == [row[0] for row in table]


def test_a_chosen_seed_is_checked_step_by_step(cli: Cli, village: Village, paths: Paths) -> None:
    with BlobStore(paths.blobs) as blobs:
        source = blobs.put(SOURCE)
    body = run_body(0.5, seed=7, source_digest=source_digest(SOURCE.decode()))
    lucky = village.append(ANN, "run", msgspec.structs.replace(body, source=source))
    result = cli("run", "evidence", short_id(lucky.id))
    assert result.exit_code == 0, result.output
    steps = {row[1]: row for row in rows(result.stdout) if len(row) > 1}
    assert steps["seed"][0::2] == ["differs", "7"]
    assert steps["program"][0] == "agrees"
    assert result.stdout.splitlines()[-2].startswith(f"consequence for {ROOTS[1].public.hex()[:8]}: banned until ")
    assert result.stdout.splitlines()[-1].startswith("the evidence holds: the seed does not follow")
    answer = msgspec.json.decode(cli("run", "evidence", format_id(lucky.id), "--json").stdout, type=EvidenceAnswer)
    assert (answer.holds, answer.kind, answer.device) == (True, "seed", ANN.public.hex())
    assert answer.evidence
    assert answer.evidence.follows == "banned"


def test_of_an_honest_record_it_says_that_no_misbehaviour_was_found(cli: Cli, village: Village) -> None:
    honest = village.run(1.22, "steady", by=ANN)
    reference = format_id(honest.id)
    for words, why in (
        ((), "the seed is the one that follows"),
        (("--kind", "fork"), "one record with this number"),
        (("--kind", "lineage"), "both are about one task"),
    ):
        result = cli("run", "evidence", reference, *words)
        assert result.exit_code == 0, result.output
        checks = sum(line.startswith("agrees") for line in result.stdout.splitlines())
        assert checks >= 2
        reply = f"no misbehaviour found in {short_id(honest.id)}: {checks} checks agree, "
        assert result.stdout.splitlines()[-1].startswith(reply)
        assert why in result.stdout.splitlines()[-1]
        assert "differs" not in result.stdout
        assert "not hold" not in result.stdout
    assert cli("run", "evidence", "@").exit_code == 0
    reply = cli("run", "evidence", reference, "--json")
    answer = msgspec.json.decode(reply.stdout, type=EvidenceAnswer)
    assert (reply.exit_code, answer.holds, answer.nothing_found) == (0, False, True)
    assert cli("run", "evidence", reference, "--kind", "value").exit_code == 4
    assert cli("run", "evidence", reference, "--participant", "me").exit_code == 2
    assert cli("run", "evidence", reference, "--kind", "poem").exit_code == 2
    assert cli("run", "evidence", "--participant", "nobody").exit_code == 2
    assert cli("run", "evidence", "ezzzzzzz").exit_code == 4
    task = village.log.records.newest(kind="task")[0]
    assert cli("run", "evidence", format_id(task.id), "--kind", "seed").exit_code == 2
    assert cli("run", "evidence", format_id(task.id)).exit_code == 0


def test_what_somebody_states_and_is_not_so_has_an_exit_status_of_its_own(cli: Cli, village: Village) -> None:
    honest = village.run(1.22, "steady", by=ANN)
    made_up = Verification(run=honest.id, stage="evaluate", verdict="fail", value=2.0)
    record = village.append(STRANGER, "verification", made_up, [honest.id])
    result = cli("run", "evidence", format_id(record.id))
    assert result.exit_code == 8
    assert result.stdout.splitlines()[-1].startswith("the value does not hold: its proof is not its device's")
    nothing = village.append(STRANGER, "verification", msgspec.structs.replace(made_up, verdict="error"), [honest.id])
    assert cli("run", "evidence", format_id(nothing.id)).exit_code == 8, "not even that is its own"


def test_a_variable_that_a_script_did_not_set_is_not_everything(cli: Cli, village: Village) -> None:
    village.run(0.9, "fine", by=CEM)
    for words in (
        (
            "run",
            "evidence",
        ),
        ("run", "evidence", "--participant"),
        (
            "network",
            "credit",
        ),
    ):
        assert cli(*words[:2]).exit_code == 0
        unset = cli(*words, "")
        assert (unset.exit_code, unset.stdout, "→" in unset.stderr) == (2, "", True), words


def test_a_fork_and_a_lineage_are_checked_and_a_merge_is_named(cli: Cli, village: Village) -> None:
    made_up = orphan(village)
    result = cli("run", "evidence", format_id(made_up.id))
    assert (result.exit_code, result.stdout.splitlines()[-1][:19]) == (0, "the evidence holds:")
    run, other = fork(village)
    for record in (run, other):
        result = cli("run", "evidence", format_id(record.id))
        assert result.exit_code == 0, result.output
        assert "merge\t\tthere is none" in result.stdout
    village.append(ROOTS[1], "merge", Merge(device=ANN.public, heads=sorted([run.id, other.id])))
    result = cli("run", "evidence", format_id(run.id))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].endswith("its root key merged the branches, so nothing follows")
    assert f"consequence for {ROOTS[1].public.hex()[:8]}: nothing" in result.stdout


def test_bytes_that_were_changed_on_the_disk_prove_nothing(cli: Cli, village: Village, paths: Paths) -> None:
    lucky, other = village.run(0.5, "lucky", by=ANN, seed=7), village.run(1.3, "other", by=BEN)
    for raw, signature in ((other.raw, other.signature), (lucky.raw, other.signature), (b"\xff\x00", b"")):
        with sqlite3.connect(paths.log) as connection:
            statement = "UPDATE record SET raw = ?, signature = ? WHERE id = ?"
            connection.execute(statement, (raw, signature, lucky.id))
        result = cli("run", "evidence", format_id(lucky.id))
        assert result.exit_code == 8, result.output
        assert "the evidence does not hold: the bytes here are not the record that the id names" in result.stdout


def test_a_value_needs_the_daemon_and_says_how_to_start_it(cli: Cli, village: Village) -> None:
    false = village.run(0.9, "false", by=CEM)
    against = village.refute(false, 1.9)
    for record in (false, against[0]):
        result = cli("run", "evidence", format_id(record.id))
        assert result.exit_code == 3, result.output
        assert "the daemon is not running" in result.stderr
        assert "autoresearch up" in result.stderr
    assert json.loads(cli("run", "evidence", format_id(false.id), "--json").stdout)["exit_status"] == 3


def test_marks_lead_to_their_proof(cli: Cli, village: Village) -> None:
    false = village.run(0.9, "false", by=CEM)
    village.evaluate(false, 0.9, ANN)
    village.evaluate(false, 1.9, BEN)
    village.evaluate(false, 1.9, BEN, DOT, number=1)
    lucky = village.run(0.5, "lucky", by=DOT, seed=7)
    assert f"→ autoresearch run evidence {short_id(lucky.id)} checks" in cli("show", format_id(lucky.id)).stderr
    assert (
        f"→ autoresearch run evidence {short_id(lucky.id)} checks"
        in cli("network", "credit", ROOTS[4].public.hex()).stderr
    )
    assert f"→ autoresearch run evidence {short_id(false.id)} checks" in cli("show", format_id(false.id)).stderr
    run, _ = fork(village)
    assert "→ autoresearch run evidence --kind fork --participant" in cli("show", format_id(run.id)).stderr
    honest = village.run(1.3, "honest", by=BEN)
    assert "autoresearch run evidence" not in cli("show", format_id(honest.id)).stderr


NASTY = "evil \x1b[2J\x1b]0;owned\x07 \u202etxt\ttab\nnewline"


def test_whatever_strangers_write_is_answered_with_a_sentence(cli: Cli, village: Village) -> None:
    task = village.log.records.newest(kind="task")[0]
    run = village.run(1.2, "run", by=ANN)
    proof = ecvrf.prove(bytes(STRANGER.key), question(run.id, NASTY[:4], 16))
    bodies = [
        Verification(run=task.id, stage="evaluate", verdict="fail", reason=NASTY),
        Verification(run=bytes(32), stage="evaluate", verdict="pass", proof=proof),
        Verification(run=run.id, stage="evil", round=16, verdict="unavailable", proof=proof, device=NASTY),
        Verification(run=run.id, stage="evil", round=16, verdict="pass", proof=proof, seeds=[2**63 - 1] * 32),
        Verification(run=run.id, stage="replicate", verdict="fail", value=1e100, metrics={NASTY[:4]: -1e100}),
    ]
    for body in bodies:
        record = village.append(STRANGER, "verification", body, [run.id])
        for words in ((), ("--json",), ("--kind", "value"), ("--kind", "seed"), ("--kind", "fork")):
            result = cli("--color", "always", "evidence", format_id(record.id), *words)
            assert result.exit_code in (0, 2, 3, 4, 8), result.output
            assert "this is a bug" not in result.output
            assert not {"\x07", "\u202e", "\x1b]"} & set(result.stdout)
    alien = village.append(STRANGER, "poem", {"text": NASTY, "run": b"?"})
    assert cli("run", "evidence", format_id(alien.id)).exit_code == 0
    assert cli("run", "evidence", format_id(alien.id), "--kind", "value").exit_code == 2
    assert cli("run", "evidence").exit_code == 0
