"""A third party measures once more what verifiers state: a refutation holds, a false word does not; nothing is told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.events import now_ms

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.people.participants import EvidenceAnswer
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE, REPLICATE
from autoresearch.log.standing.jobs import repeated_job
from autoresearch.log.standing.verification import judgement
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import BlobRef, Identity, Run, Verification
from autoresearch.record.record import Network, Record
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.trust.identity import create_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState, Why
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import SLOW_TRAIN, write_toy_task
from tests.record.making import commitment, key, opened
from tests.run.checks import carried_out, check_of
from tests.run.refereeing.conftest import BUDGET_SHARE, Trained, trained, with_known_cost
from tests.warm import run_command

__all__ = ["trained"]  # the fixture

pytestmark = pytest.mark.slow

NETWORK = Network(name="village", nonce=bytes(16))
AUTHOR, *VERIFIERS = (key(number) for number in range(1, 6))
ROOTS = [key(100 + number) for number in range(5)]


class Home:
    """A node's home with records of others in its log; its daemon is started when something is to be measured."""

    count = 0

    def __init__(self, folder: Path) -> None:
        self.daemon = Daemon(folder)
        self.paths = self.daemon.paths
        self.paths.create()
        own = create_identity(self.paths.keys).root.public
        trust = Trust(participants=frozenset({own, *(root.public for root in ROOTS)}))
        save_manifest(self.paths.manifest, NetworkManifest(NETWORK, trust=trust))
        self.notebook = Notebook(self.paths)
        self.notebook.publish_identity(now_ms())
        for device, root in zip([AUTHOR, *VERIFIERS], ROOTS, strict=True):
            self.append(root, "identity", Identity(action="delegate", root=root.public, device=device.public))
            self.append(device, "identity", Identity(action="profile", root=root.public))

    def append(self, who: KeyPair, kind: str, body: object, links: tuple[bytes, ...] = ()) -> Record:
        return self.notebook.log.writer.append(who, kind, body, links=links, now_ms=now_ms())

    def reveal(self, who: KeyPair, body: Verification) -> Record:
        fixed = self.append(who, "commitment", commitment(who, body), (body.run,))
        return self.append(who, "verification", opened(body), (body.run, fixed.id))

    def evidence(self, record: Record, *options: str) -> tuple[int, EvidenceAnswer]:
        """What the command says, with the daemon running."""
        environment = {**os.environ, "AUTORESEARCH_HOME": str(self.daemon.home)}
        words = ("run", "evidence", format_id(record.id), "--json", *options)
        done = run_command(*words, environment=environment)
        assert done.returncode in (0, 8), done.stderr
        return done.returncode, msgspec.json.decode(done.stdout, type=EvidenceAnswer)

    def records(self) -> int:
        """How many records its log has, while the daemon runs."""
        return self.daemon.status().records

    def start(self) -> None:
        """Let the daemon have the notebook."""
        self.count = self.notebook.log.records.count()
        self.notebook.close()
        self.daemon.start()


def step(answer: EvidenceAnswer, what: str) -> tuple[str, str, bool | None]:
    matching = next(step for step in answer.steps if step.what == what)
    return matching.stated, matching.actual, matching.agrees


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    made = Home(tmp_path / "home")
    yield made
    made.daemon.stop()


def proof_of(who: KeyPair, run: Record, stage: str = EVALUATE, number: int = 0) -> bytes:
    return ecvrf.prove(bytes(who.key), question(run.id, stage, number))


def test_what_verifiers_state_of_a_repeated_run_is_borne_out_or_not(home: Home, tmp_path: Path) -> None:
    task = load_task(write_toy_task(tmp_path / "task"))
    home.notebook.publish_task(task, now_ms())
    parent = publish(home, task, task.baseline.decode(), 0.61)
    source = task.baseline.decode().replace("0.9", "0.5")
    run = publish(home, task, source, 0.29, parent=parent.id)
    false = publish(home, task, source.replace("0.5", "0.7"), 0.01, parent=parent.id)

    def says(who: KeyPair, about: Record, verdict: str, value: float) -> Record:
        proof = proof_of(who, about)
        body = Verification(run=about.id, stage=EVALUATE, verdict=verdict, value=value, proof=proof, device="theirs")
        return home.reveal(who, body)

    def pairs(who: KeyPair, values: list[float]) -> Record:
        job = repeated_job(run.id, REPLICATE, 0, proof_of(who, run, REPLICATE))
        body = Verification(
            run=run.id, stage=REPLICATE, verdict="pass", proof=job.proof, seeds=list(job.seeds), values=values,
            parent_values=[0.61, 0.61],
        )  # fmt: skip
        return home.reveal(who, body)

    honest, liar, stamper, critic = VERIFIERS
    words = [
        (says(honest, run, "pass", 0.29), True),
        (says(liar, run, "fail", 0.9), False),
        (says(stamper, false, "pass", 0.01), False),
        (says(critic, false, "fail", 0.41), True),
        (pairs(honest, [0.29, 0.29]), True),
        (pairs(liar, [0.1, 0.1]), False),
    ]
    home.start()
    for record, holds in words:
        status, answer = home.evidence(record)
        assert (status, answer.holds) == ((0, True) if holds else (8, False)), answer
        assert ("here it is borne out" in answer.reason) == (record is words[1][0])
    assert step(answer, "pair 2, the run") == ("0.1", "0.29", False)
    status, answer = home.evidence(false)
    assert (status, answer.holds) == (0, True), "of a run it is the verification against it that is repeated"
    assert step(answer, "value") == ("0.41", "0.41", True)
    assert step(answer, "the claim, by these numbers") == ("is not borne out", "is not borne out", True)
    assert home.records() == home.count, "nothing is published"


def test_what_is_stopped_in_the_middle_is_in_no_record(home: Home, tmp_path: Path) -> None:
    task = load_task(write_toy_task(tmp_path / "task", SLOW_TRAIN))
    home.notebook.publish_task(task, now_ms())
    run = publish(home, task, task.baseline.decode(), 0.61)
    home.start()
    begun = home.records()

    def verifies() -> bool:
        return Why.VERIFYING in (worker.why for worker in home.daemon.status().workers)

    assert home.daemon.post("/v1/verify", run=format_id(run.id)).is_success
    wait_for(verifies)
    home.daemon.post("/v1/pause")
    wait_for(lambda: not verifies())

    assert home.records() == begun


def publish(
    home: Home, task: Task, source: str, value: float, *, by: KeyPair = AUTHOR, checkpoint: BlobRef | None = None,
    **options: object,
) -> Record:  # fmt: skip
    """A run that somebody says came to a value."""
    plan = plan_as_it_stands(task, source, **options)
    body = Run(
        task=task.digest, status="ok", value=value, source=home.notebook.blobs.put(source.encode()),
        source_digest=plan.source_digest, seed=plan.seed, budget=plan.budget, parent=plan.parent,
        replicate=plan.replicate, checkpoint=checkpoint,
    )  # fmt: skip
    return home.append(by, "run", body)


def evaluated(trained: Trained, who: KeyPair, run: Record, scratch: Path) -> Verification:
    """What somebody's worker really comes to."""
    body, source = run.body, trained.task.baseline.decode()
    assert isinstance(body, Run)
    job = repeated_job(run.id, EVALUATE, 0, proof_of(who, run))
    check = check_of(trained.task, source, run=run.id, proof=job.proof, seeds=list(job.seeds), claim=body.value)
    scratch.mkdir()
    verified = carried_out(check, trained.task, replace(trained.bench, scratch=scratch), trained.checkpoint)
    return Verification(
        run=run.id, stage=EVALUATE, verdict="fail", value=verified.value, metrics=verified.metrics,
        values=verified.values, seeds=list(job.seeds), proof=job.proof, device=verified.device,
    )  # fmt: skip


def test_a_fabricators_model_is_measured_once_more_to_the_same_numbers(
    home: Home, trained: Trained, tmp_path: Path
) -> None:
    budget = msgspec.structs.replace(trained.task.budget, amount=trained.task.budget.amount * BUDGET_SHARE)
    brief = with_known_cost(trained, msgspec.structs.replace(trained.task, budget=budget))
    trained = replace(trained, task=brief)
    home.notebook.publish_task(brief, now_ms())
    model, source = home.notebook.blobs.put_file(trained.checkpoint), trained.task.baseline.decode()
    invented = publish(home, trained.task, source, trained.value - 1, by=VERIFIERS[0], checkpoint=model)
    measured = evaluated(trained, VERIFIERS[1], invented, tmp_path / "theirs")
    against = home.reveal(VERIFIERS[1], measured)
    for who in (AUTHOR, *VERIFIERS[2:]):
        again = Verification(
            run=invented.id, stage=EVALUATE, round=1, verdict="fail", value=measured.value, metrics=measured.metrics,
            proof=proof_of(who, invented, number=1),
        )  # fmt: skip
        home.reveal(who, again)
    assert judgement(home.notebook.log, invented.id).state is RunState.REFUTED
    home.start()

    status, answer = home.evidence(against)
    assert (status, answer.holds) == (0, True), answer
    assert answer.evidence is not None
    assert answer.evidence.follows == "refuted"
    for what in ("value", "on new text", "challenges", "mismatches", "mean difference", "gap"):
        stated, actual, agrees = step(answer, what)
        assert (agrees, stated) == (True, actual), what
    assert home.records() == home.count, "nothing is published"
