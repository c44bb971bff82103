"""Five daemons, three of which cheat: the board ends with the honest best, and everybody sees who did what."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.events import now_ms

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer, TopAnswer
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import CreditAnswer
from autoresearch.log.standing.verification import judgement
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Run, RunOutcome, Verification
from autoresearch.record.record import Network
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.loading import load_task
from autoresearch.trust.identity import create_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import Mark, RunState, RunStatus
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.net.test_verification import answer_of, begin, has_event, state_of
from tests.daemon.toy import write_toy_task

pytestmark = pytest.mark.slow

NETWORK = Network(name="village", nonce=bytes(16), verify_patience_ms=15_000)
RUNS = 5
SECONDS = 600
AUTHOR, FABRICATOR, COPIER, STAMPER, VERIFIER = range(5)
# What an honest run may end as.
HONEST = {RunState.REPORTED, RunState.PROVISIONAL, RunState.CONFIRMED, RunState.NOT_REPLICATED}


def paths_of(home: Path) -> Paths:
    return Paths.from_environment({"AUTORESEARCH_HOME": str(home)})


def village(folder: Path) -> tuple[list[Path], list[str]]:
    """Homes of five participants who know each other, and their root keys."""
    homes = [folder / f"home{number}" for number in range(5)]
    roots = []
    for home in homes:
        paths_of(home).create()
        roots.append(create_identity(paths_of(home).keys).root.public)
    manifest = NetworkManifest(NETWORK, trust=Trust(participants=frozenset(roots)))
    for home in homes:
        save_manifest(paths_of(home).manifest, manifest)
    return homes, [root.hex() for root in roots]


def publish(home: Path, folder: Path, source: str, value: float, **options: object) -> str:
    """Publish a run that nobody did."""
    task = load_task(folder)
    never = RunOutcome(
        status=RunStatus.OK,
        value=value,
        duration_ms=1000,
        cpu_ms=1000,
        peak_memory_bytes=1,
        sandbox=2,
        device="cpu",
    )
    with Notebook(paths_of(home)) as notebook:
        notebook.publish_identity(now_ms())
        notebook.publish_task(task, now_ms())
        plan = plan_as_it_stands(task, source, **options)
        return format_id(notebook.publish_run(plan, never, now_ms()).record.id)


def copy(home: Path, folder: Path, original: str) -> str:
    """Publish another's run under one's own name, with another title."""
    with Notebook(paths_of(home)) as notebook:
        run = notebook.log.records.get(parse_id(original)).body
        assert isinstance(run, Run)
        source = notebook.blobs.get(run.source.sha256).decode()
    return publish(home, folder, source, run.value, parent=run.parent, title="my own idea", hypothesis="it came to me")


def marks(daemon: Daemon) -> dict[str, set[str]]:
    """The marks by participant, as a daemon shows them."""
    answer = answer_of(daemon, "/v1/credit", CreditAnswer)
    return {view.participant: {mark.mark for mark in view.marks} for view in answer.participants}


def confirmed(daemon: Daemon) -> str:
    best = answer_of(daemon, "/v1/best", BestAnswer).confirmed
    return best.author if best else ""


def test_the_honest_best_leads_the_cheaters_are_marked_and_no_honest_run_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    homes, roots = village(tmp_path)
    daemons = [Daemon(home) for home in homes]
    daemons[STAMPER].module = "tests.daemon.net.rubber_stamp"
    folder = write_toy_task(tmp_path / "task")
    source = load_task(folder).baseline.decode()
    invented = publish(homes[FABRICATOR], folder, source.replace("0.9", "0.77777"), 1e-9, title="too good to be true")
    try:
        # Alone at first: what builds on an invention has no valid base once that is refuted, and is never confirmed.
        begin(daemons[:1], "")
        daemons[AUTHOR].post("/v1/work", task=str(folder), runs=RUNS, verify_share=0)
        wait_for(lambda: daemons[AUTHOR].status().state == "idle")
        begin(daemons[1:], answer_of(daemons[AUTHOR], "/v1/peers", PeersAnswer).addresses[0])
        leader = best_of(homes[AUTHOR])
        wait_for(lambda: state_of(daemons[COPIER], leader) and has_source(daemons[COPIER], leader))
        daemons[COPIER].stop()
        copied = copy(homes[COPIER], folder, leader)
        daemons[COPIER].start()
        assert not has_event(daemons[AUTHOR], "check_started")
        for daemon in daemons:
            daemon.post("/v1/work", task=str(folder), verify_share=1)

        expected = {
            roots[AUTHOR]: set(),
            roots[FABRICATOR]: {Mark.FABRICATOR},
            roots[COPIER]: {Mark.COPIER},
            roots[STAMPER]: {Mark.RUBBER_STAMP},
            roots[VERIFIER]: set(),
        }
        wait_for(lambda: all(state_of(daemon, invented) == "refuted" for daemon in daemons), SECONDS)
        author = daemons[AUTHOR].status().device_key
        wait_for(lambda: all(confirmed(daemon) == author for daemon in daemons), SECONDS)
        for daemon in daemons:
            wait_for(lambda daemon=daemon: marks(daemon) == expected)
        wait_for(lambda: len({msgspec.json.encode(marks(daemon)) for daemon in daemons}) == 1)
        answers_agree(daemons[VERIFIER], invented)
        for daemon in daemons:
            wait_for(lambda daemon=daemon: has_event(daemon, "confirmed"))
        wait_for(lambda: has_event(daemons[VERIFIER], "check_started"))
    finally:
        stop_all(daemons)
    runs, share = states_and_share(homes[VERIFIER], {invented, copied})
    assert len(runs) == RUNS
    assert set(runs) <= HONEST
    with capsys.disabled():
        print(f"\nstates of the {RUNS} honest runs: {', '.join(sorted(runs))}")
        print(f"share of compute that went to verification, every run checked by all: {share:.0%}")


def answers_agree(daemon: Daemon, invented: str) -> None:
    """What best, top, a run's page and the credit say of the confirmed best and of the invented number is one story."""
    best = answer_of(daemon, "/v1/best", BestAnswer)
    assert best.confirmed
    assert best.confirmed.id != invented
    assert best.confirmed.verifiers >= 2
    assert best.confirmed.verified == pytest.approx(best.confirmed.reported)
    assert best.run.id == best.confirmed.id == answer_of(daemon, "/v1/top", TopAnswer).programs[0].id
    verification = answer_of(daemon, f"/v1/runs/{best.confirmed.id}", ShowAnswer).verification
    assert all(measurement.counts for measurement in verification.measured)

    accounts = answer_of(daemon, "/v1/credit", CreditAnswer).participants
    named = [answer_of(daemon, f"/v1/credit?participant={row.keys[0]}", CreditAnswer) for row in accounts]
    facts = [answer.participants[0] for answer in named]
    earned = next(row for row in facts if best.confirmed.id in row.confirmed.newest)
    assert earned.cpu_ms > 0
    assert earned.improvements[0].total > 0
    assert any(invented in row.refuted.newest for row in facts)
    assert any(row.refutations.count for row in accounts)
    assert daemon.status().verifying.today > 0


def best_of(home: Path) -> str:
    """The author's best change, by its own word."""
    manifest = load_manifest(paths_of(home).manifest)
    with Log.open(paths_of(home).log, manifest.network, read_only=True, trust=manifest.trust) as log:
        runs = [
            record for record in log.records.newest(kind="run") if record.body.parent and record.body.status == "ok"
        ]
        return format_id(min(runs, key=lambda record: record.body.value).id)


def has_source(daemon: Daemon, run: str) -> bool:
    with daemon.client() as client:
        return client.get(f"/v1/runs/{run}/source").status_code == 200


def states_and_share(home: Path, false: set[str]) -> tuple[list[RunState], float]:
    """The states of the honest runs in somebody's log, and the share of all time that verification took."""
    manifest = load_manifest(paths_of(home).manifest)
    with Log.open(paths_of(home).log, manifest.network, read_only=True, trust=manifest.trust) as log:
        runs = [record for record in log.records.newest(kind="run", limit=1000) if format_id(record.id) not in false]
        checks = [record.body for record in log.records.newest(kind="verification", limit=10_000)]
        spent = sum(body.duration_ms for body in checks if isinstance(body, Verification))
        searched = sum(record.body.duration_ms for record in runs)
        return [judgement(log, record.id).state for record in runs], spent / max(spent + searched, 1)
