"""What is published of a measured run: a learned state on a task that asks agents, nothing else of this machine."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.requests import PublishRunRequest
from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.paths import Paths
from autoresearch.project.exchange.publishing import environment_task_files, flat_program
from autoresearch.project.learned import pack_learned
from autoresearch.project.model import load_project
from autoresearch.project.runs.records import publish_run
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run, RunOutcome
from autoresearch.task.model import has_chosen_seed
from tests.daemon.toy import write_toy_task
from tests.project.making import learner, train


@pytest.fixture
def request_(tmp_path: Path) -> PublishRunRequest:
    """A run of a small project, as if it had been measured."""
    folder = learner(tmp_path / "mine")
    run = train(folder, 5)
    project = load_project(folder)
    program, task = flat_program(project), tmp_path / "task"
    task.mkdir()
    for name, content in environment_task_files(project).items():
        (task / name).write_bytes(content)
    pack_learned(run.folder / "data", tmp_path / "learned.zip")
    return PublishRunRequest(
        task=str(task),
        program=program,
        checkpoint=str(tmp_path / "learned.zip"),
        mode="train",
        outcome=RunOutcome(status="ok", value=-20.0),
        budget=5.0,
        title="five episodes",
    )


@pytest.fixture
def notebook(tmp_path: Path):
    with Notebook(Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})) as opened:
        yield opened


@pytest.mark.slow
def test_a_repetition_of_a_program_has_a_number_of_its_own_and_a_seed_that_follows(
    notebook: Notebook, request_: PublishRunRequest, tmp_path: Path
) -> None:
    def publish(**changed: object) -> Run:
        answer = publish_run(notebook, msgspec.structs.replace(request_, **changed))
        record = notebook.log.records.get(parse_id(answer.record.id))
        assert isinstance(record.body, Run)
        return record.body

    first = publish()
    frozen = publish(mode="bench", outcome=RunOutcome(status="ok", value=-21.0))
    run = train(tmp_path / "mine", 5)
    pack_learned(run.folder / "data", tmp_path / "more.zip")
    more = publish(checkpoint=str(tmp_path / "more.zip"), budget=10.0)
    assert [body.replicate for body in (first, frozen, more)] == [0, 0, 1]
    assert not any(map(has_chosen_seed, (first, frozen, more)))
    row = notebook.log.programs.find(first.task, first.source_digest, 5.0)
    assert row is not None
    assert (row.mean, row.runs) == (-20.0, 1), "the same state measured twice is no new evidence"


@pytest.mark.slow
def test_totals_that_say_less_than_the_learned_state_are_refused(
    notebook: Notebook, request_: PublishRunRequest, tmp_path: Path
) -> None:
    untrained = msgspec.structs.replace(request_, mode="bench", budget=0.0)
    with pytest.raises(
        Refused, match=r"what q_table had learned changed, and its totals say that nothing was trained$"
    ):
        publish_run(notebook, untrained)
    metrics = {"training_episodes": 5.0, "training_steps": 50.0}
    counted = msgspec.structs.replace(request_, outcome=RunOutcome(status="ok", value=-20.0, metrics=metrics))
    first = publish_run(notebook, counted).record.id
    run = train(tmp_path / "mine", 5)
    pack_learned(run.folder / "data", tmp_path / "more.zip")
    child = msgspec.structs.replace(counted, parents=[first], checkpoint=str(tmp_path / "more.zip"))
    with pytest.raises(Refused, match="nothing was trained since the run that it went on from"):
        publish_run(notebook, child)
    pack_learned(tmp_path / "mine/.autoresearch", tmp_path / "nothing.zip")
    begun = msgspec.structs.replace(untrained, checkpoint=str(tmp_path / "nothing.zip"))
    assert publish_run(notebook, begun).record.id != first
    assert publish_run(notebook, msgspec.structs.replace(child, checkpoint=counted.checkpoint)).record.id != first


@pytest.mark.slow
def test_no_other_file_of_this_machine_is_published(
    notebook: Notebook, request_: PublishRunRequest, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    toy = write_toy_task(tmp_path / "toy")
    for changed, error in (
        ({"checkpoint": str(secret)}, AutoresearchError),
        ({"checkpoint": str(tmp_path / "absent")}, UsageError),
        ({"task": str(toy)}, Refused),
        ({"task": str(tmp_path)}, UsageError),
        ({"program": "print(1)\n"}, Refused),
        ({"parents": ["nonsense"]}, UsageError),
        ({"outcome": RunOutcome(status="crashed")}, UsageError),
    ):
        with pytest.raises(error):
            publish_run(notebook, msgspec.structs.replace(request_, **changed))
    assert notebook.log.records.newest(kind="run", limit=1) == []
    assert notebook.log.tasks.all() == []
