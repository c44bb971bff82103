"""A project's run is published, got by its id, run, trained on, and published again as a child."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.agent.models import GotAnswer, ProjectAnswer, ProjectRunAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import ComponentTopAnswer, TopAnswer
from autoresearch.paths import Paths
from autoresearch.project.components.trusting import mark_fetched, reaches_of
from autoresearch.project.model import load_project
from autoresearch.record.encoding import format_id, parse_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.run.consent import allow_reaches
from autoresearch.task.model import seed_for
from autoresearch.text import figure
from autoresearch.version import __version__
from tests.cli.conftest import Cli
from tests.cli.filling import Filled
from tests.daemon.daemons import Daemon
from tests.daemon.toy import write_toy_task
from tests.face.pages.reading import whole_page
from tests.project.making import learner
from tests.project.test_totals import LEARNS


@pytest.fixture
def place(tmp_path: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table that learns, where the commands run."""
    folder = learner(tmp_path / "walker")
    allow_reaches(folder, reaches_of(load_project(folder)), paths)
    monkeypatch.chdir(folder)
    return folder


def ok(cli: Cli, *words: str) -> str:
    result = cli(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def ran(cli: Cli, *words: str) -> ProjectRunAnswer:
    return msgspec.json.decode(ok(cli, *words, "--json").splitlines()[-1], type=ProjectRunAnswer)


def published(cli: Cli, *words: str) -> ShowAnswer:
    return msgspec.json.decode(ok(cli, "publish", *words, "--json"), type=ShowAnswer)


@pytest.mark.slow
def test_publish_get_run_train_on_and_publish_a_child(cli: Cli, place: Path, tmp_path: Path) -> None:
    ok(cli, "train", "200")
    made = published(cli).run
    assert made
    assert (made.run.mode, made.run.value, made.run.budget, made.run.title) == (
        "train",
        -9,
        200,
        "q_table + sarsa, 200 training episodes",
    )
    assert (made.run.metrics["training_episodes"], made.run.metrics["std_reward"]) == (200, 0)
    assert made.run.checkpoint is not None
    assert len(made.run.curve) == 64
    again = cli("publish")
    assert again.exit_code == 6
    assert "is published already, as" in again.stderr

    got = msgspec.json.decode(ok(cli, "get", made.id, str(tmp_path / "theirs"), "--json"), type=GotAnswer)
    assert (got.task, got.value, got.folder) == ("corridor", -9, str(tmp_path / "theirs"))
    os.chdir(got.folder)
    measured = ran(cli, "run").run
    assert measured.metrics["mean_reward"] == made.run.value
    assert (measured.parent, measured.totals["training_episodes"]) == (got.run, 200)
    ok(cli, "train", "30")
    child = published(cli, "--title", "a little more").run
    assert child
    assert (child.run.parent, child.run.budget, child.run.task, child.run.title) == (
        made.id,
        230,
        made.run.task,
        "a little more",
    )
    benchmark = ran(cli, "run").run
    frozen = published(cli, benchmark.id[:6]).run
    assert frozen
    assert (frozen.run.mode, frozen.run.parent, frozen.run.replicate, frozen.run.curve) == (
        "bench",
        child.id,
        child.run.replicate,
        [],
    )
    board = msgspec.json.decode(ok(cli, "top", "--task", "corridor", "--json"), type=TopAnswer)
    assert [(row.id, row.reported_runs) for row in board.programs] == [(made.id, 1), (child.id, 1)]
    assert json.loads(ok(cli, "run", "list", "--json"))["runs"][0]["headline"] == frozen.run.title

    assert [line.name for line in board.lines] == ["random", "solved"]
    assert board.lines[0].value < board.lines[1].value == -9
    shorter = msgspec.json.decode(ok(cli, "top", "--budget", "200", "--json"), type=TopAnswer)
    assert shorter.programs == board.programs[:1]

    def using(*words: str) -> ComponentTopAnswer:
        return msgspec.json.decode(ok(cli, "top", "--component", *words, "--json"), type=ComponentTopAnswer)

    assert [row.id for row in using("policy/q_table").boards[0].programs] == [made.id, child.id]
    assert using("policy/q_table", "--task", "corridor") == using("policy/q_table")
    assert using("policy/random").boards == []
    assert cli("top", "--component", "q_table").exit_code == 2

    taken = cli("get", made.id, got.folder)
    assert taken.exit_code == 6
    assert "exists already" in taken.stderr
    assert "training episodes: 200 → 230" in cli("diff", child.id).stderr
    result = ok(cli, "show", child.id)
    assert "trained agent" in result
    used = next(line for line in result.splitlines() if line.startswith("components"))
    for name in ("environment/corridor", "policy/q_table", "trainer/sarsa"):
        assert f"{name} {__version__} (shipped)" in used
    ok(cli, "run", "export", "--format", "mlflow", "-o", str(tmp_path / "mlruns"))
    tag = next(tag for tag in (tmp_path / "mlruns").glob("*/*/tags/autoresearch.record") if tag.read_text() == child.id)
    assert (tag.parents[1] / "params/policy.q_table.version").read_text() == __version__
    assert (tag.parents[1] / "params/environment.corridor.source").read_text() == "shipped"
    assert "benchmark of a frozen agent" in ok(cli, "show", frozen.id)


@pytest.mark.slow
def test_a_frozen_agent_brings_the_curve_of_its_training(cli: Cli, place: Path) -> None:
    trained = ran(cli, "train", "100").run
    ran(cli, "run")
    frozen = published(cli).run
    assert frozen
    assert (frozen.run.mode, frozen.run.budget, len(frozen.run.curve)) == ("bench", 100, 64)
    assert frozen.run.curve == pytest.approx(trained.curve, rel=1e-5)


@pytest.mark.slow
def test_what_was_learned_in_benchmark_runs_is_training(cli: Cli, place: Path) -> None:
    (place / "agent.py").write_text(LEARNS)
    ini = place / "agent.ini"
    ini.write_text(ini.read_text().replace("SimpleAgent", "Learns\nlearns_on_run = yes"))
    assert "the run counts as training" in cli("run", "-n", "30").stderr
    ok(cli, "run", "-n", "1")
    made = published(cli).run
    assert made
    assert (made.run.title, made.run.budget) == ("q_table + sarsa, 31 training episodes", 31)
    assert made.run.metrics["benchmark_episodes"] == 0
    assert json.loads(ok(cli, "top", "--task", "corridor", "--budget", "0", "--json"))["programs"] == []


@pytest.mark.slow
def test_a_run_whose_code_was_changed_is_not_published(cli: Cli, place: Path) -> None:
    ok(cli, "train", "5")
    with (place / ".autoresearch/components/policy/q_table/q_table.py").open("a") as file:
        file.write("# better\n")
    refused = cli("publish")
    assert refused.exit_code == 6
    assert "the code of policy.q_table was changed" in refused.stderr


@pytest.mark.slow
def test_what_can_not_be_published_is_said_and_nothing_is_sent(cli: Cli, place: Path) -> None:
    assert "has no run to publish" in cli("publish").stderr
    assert "has no run abc" in cli("publish", "abc").stderr
    assert cli("publish", "--task", "nonsense", "--file", "agent.ini").exit_code == 4
    ok(cli, "install", "environment", "2048", "--default")
    (place / "broken.py").write_text(
        f"class Broken:\n    def __init__(self):\n        open({str(place / 'weights')!r})\n"
        "    def decide(self, observation):\n        return 0\n"
    )
    (place / "weights").write_text("1")
    ok(cli, "install", "policy", "./broken.py", "--default")
    ok(cli, "run", "-n", "1")
    failed = cli("publish")
    assert failed.exit_code == 1
    assert "can't be measured" in failed.stderr
    assert "Traceback" not in failed.output
    assert not any(json.loads(ok(cli, "node", "records", "--json"))["records"])


def test_another_participants_project_is_marked(cli: Cli, place: Path) -> None:
    mark_fetched(load_project(place), "bafy")
    assert (place / ".autoresearch/fetched").read_text() == "bafy\n"
    assert msgspec.json.decode(ok(cli, "list", "--json"), type=ProjectAnswer).components


def test_the_run_of_another_task_is_a_task_folder(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    best = json.loads(ok(cli, "best", "--json"))["run"]["id"]
    got = msgspec.json.decode(ok(cli, "get", best, str(tmp_path / "edit"), "--json"), type=GotAnswer)
    assert got.run == ""
    assert (tmp_path / "edit/task.toml").is_file()
    note = next(
        each["id"] for each in json.loads(ok(cli, "node", "records", "--json"))["records"] if each["kind"] == "task"
    )
    refused = cli("get", note)
    assert refused.exit_code == 6
    assert "is a task, no run" in refused.stderr


@pytest.mark.slow
def test_a_release_shows_the_agents_that_use_it(cli: Cli, place: Path) -> None:
    docstring = '"""Goes right,\n    always.\n\n    More."""'
    (place / "right.py").write_text(
        f"class Right:\n    {docstring}\n    def decide(self, observation):\n        return 1\n"
    )
    released = json.loads(
        ok(
            cli,
            *[
                "publish",
                "component",
                "right.py",
                "--type",
                "policy",
                "--name",
                "right",
                "--version",
                "1.0.0",
                "--json",
            ],
        )
    )["release"]["id"]
    assert json.loads(ok(cli, "show", released, "--json"))["used_by"] == []
    ok(cli, "install", "policy", "right==1.0.0", "--name", "walker", "--default")
    ok(cli, "run", "-n", "2")
    made = published(cli).run
    assert made
    assert (made.run.title, made.run.value, made.run.budget) == ("walker, not trained", -9, 0)
    decoded = msgspec.json.decode(ok(cli, "show", released, "--json"), type=ShowAnswer)
    assert [row.id for row in decoded.used_by] == [made.id]
    assert "used by" in ok(cli, "show", released)
    assert "walker, not trained" in ok(cli, "top", "--task", "corridor", "--component", "policy/walker")

    daemon = Daemon(Path(os.environ["AUTORESEARCH_HOME"])).start()
    try:
        listed = whole_page(daemon.get("/components?q=right").text)
        assert "Goes right, always." in listed.text
        assert f"/component?of={released}" in listed.links
        page = whole_page(daemon.get(f"/component?of={released}").text)
        assert "autoresearch install policy right==1.0.0" in page.commands
        assert f"/run/{short_id(parse_id(made.id))}" in page.links
        of_run = whole_page(daemon.get(f"/run/{made.id}").text)
        assert {f"/component?of={released}", "/component?of=environment.corridor"} <= set(of_run.links)
    finally:
        daemon.stop()


@pytest.mark.slow
def test_agents_of_every_skill_are_on_one_task(cli: Cli, place: Path) -> None:
    ok(cli, "train", "200")
    exact = published(cli).run
    ok(cli, "use", "policy", "random")
    ok(cli, "run", "-n", "2")
    erratic = published(cli).run
    assert exact
    assert erratic
    assert (exact.run.task, exact.run.metrics["standard_error"]) == (erratic.run.task, 0)
    assert erratic.run.metrics["standard_error"] == pytest.approx(erratic.run.metrics["std_reward"] / 10)
    ok(cli, "install", "environment", "2048", "--default")
    ok(cli, "run", "-n", "2")
    ok(cli, "publish")
    boards = json.loads(ok(cli, "top", "--component", "policy/random", "--json"))["boards"]
    assert {board["task"]["name"] for board in boards} == {"corridor", "2048"}
    ok(cli, "run", "-n", "2")
    other = cli("publish", "--task", "corridor")
    assert other.exit_code == 6
    assert "has another environment" in other.stderr


@pytest.mark.slow
def test_a_task_is_published_before_anybody_ran_it(cli: Cli, place: Path, tmp_path: Path) -> None:
    folder = write_toy_task(tmp_path / "toy")
    status = json.loads(ok(cli, "publish", "task", str(folder), "--json"))
    assert (status["name"], status["runs"]) == ("toy", 0)
    assert [each["digest"] for each in json.loads(ok(cli, "task", "list", "--json"))["tasks"]] == [status["digest"]]
    assert json.loads(ok(cli, "publish", "task", str(folder), "--json")) == status
    project = cli("publish", "task", str(place))
    assert project.exit_code == 2
    assert "its task is published with a run" in project.stderr


@pytest.mark.slow
def test_a_run_that_kept_nothing_of_what_it_learned_gives_a_project_that_begins_anew(
    cli: Cli, place: Path, tmp_path: Path
) -> None:
    ok(cli, "train", "20")
    made = published(cli).run
    assert made
    with Notebook(Paths.from_environment(os.environ)) as notebook:
        body = notebook.log.records.get(parse_id(made.id)).body
        assert isinstance(body, Run)
        seed = seed_for(body.task, body.source_digest, 7)
        without = msgspec.structs.replace(body, checkpoint=None, mode="experiment", replicate=7, seed=seed)
        bare = notebook.publish_run_body(without, made.time_ms + 1)
    ok(cli, "get", format_id(bare.id), str(tmp_path / "anew"))
    os.chdir(tmp_path / "anew")
    head = ran(cli, "train", "3").run
    assert head.totals["training_episodes"] == 3


@pytest.mark.slow
def test_a_published_number_is_repeated_by_the_same_episodes(cli: Cli, place: Path) -> None:
    ok(cli, "use", "policy", "random")
    ok(cli, "run", "-n", "2")
    made = published(cli).run
    assert made
    assert made.run.metrics["standard_error"] > 0
    assert ok(cli, "get", made.id, "--reproduce") == f"equal: {figure(made.run.value)}\n"
    with Notebook(Paths.from_environment(os.environ)) as notebook:
        body = notebook.log.records.get(parse_id(made.id)).body
        assert isinstance(body, Run)
        better = notebook.publish_run_body(msgspec.structs.replace(body, value=-9.0), made.time_ms + 1)
        metrics = {name: number for name, number in body.metrics.items() if name != "evaluation_seed"}
        older = notebook.publish_run_body(msgspec.structs.replace(body, metrics=metrics), made.time_ms + 2)
    differs = cli("get", format_id(better.id), "--reproduce")
    assert differs.exit_code == 1
    assert differs.stdout == f"differs: -9 published vs {figure(made.run.value)} on this machine\n"
    document = cli("get", format_id(better.id), "--reproduce", "--json")
    answer = msgspec.json.decode(document.stdout, type=GotAnswer)
    assert (document.exit_code, answer.value, answer.reproduced, answer.folder) == (1, -9, made.run.value, "")
    refused = cli("get", format_id(older.id), "--reproduce")
    assert refused.exit_code == 6
    assert "does not say from which seed" in refused.stderr
    assert cli("get", made.id, "anew", "--reproduce").exit_code == 2
    assert not (place / "anew").exists()
