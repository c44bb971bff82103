"""A task that asks for more than this machine allows is refused before anything of it runs, whoever asks for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from autoresearch_daemon.workers import protocol
from autoresearch_daemon.workers.assignment import Workplace, carry_out

from autoresearch.errors import Refused
from autoresearch.paths import Paths
from autoresearch.run.bench import Ceiling, limits_of
from autoresearch.run.folder import new_run
from autoresearch.settings import environment_variable, load_settings, write_setting
from autoresearch.task.folders import write_task
from autoresearch.task.loading import load_task, shipped_by_name, shipped_task
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.test_below_the_wall import Yes
from tests.daemon.toy import write_toy_task
from tests.run.checks import check_of

# A task's limit, and how much of it the toy asks for here.
ASKED = {"seconds": 4000, "memory_mib": 8_000_000, "disk_mib": 5000, "processes": 300, "output_kib": 20_000}


def greedy(folder: Path, limit: str) -> Path:
    """The toy, which asks for more of something than the settings allow where nobody changed them."""
    manifest = write_toy_task(folder / limit) / "task.toml"
    text = re.sub(rf"^{limit} = .*\n", "", manifest.read_text(), flags=re.MULTILINE)
    manifest.write_text(text.replace("[limits]", f"[limits]\n{limit} = {ASKED[limit]}"))
    return manifest.parent


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    for limit in ASKED:
        monkeypatch.delenv(environment_variable(f"work.max_{limit}"), raising=False)
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    paths.create()
    return Workplace.from_environment(paths, "w1", "cpu")


@pytest.mark.parametrize("stranger", [False, True])
@pytest.mark.parametrize("limit", ASKED)
def test_a_worker_begins_nothing_of_a_task_above_a_ceiling(
    limit: str, stranger: bool, place: Workplace, tmp_path: Path
) -> None:
    task, talk = greedy(tmp_path, limit), Yes()
    loaded = load_task(task)
    check = check_of(loaded, loaded.baseline.decode()) if stranger else None

    carry_out(
        protocol.AssignWork(
            assignment="a", run=new_run("a"), task=str(task), plan=None, level=2, author=bytes(32), check=check
        ),
        talk,
        place,
    )

    *_, ending = talk.messages
    assert isinstance(ending, protocol.Failed), "neither a run nor a verification that blames it"
    assert f"{limit} {ASKED[limit]}, allowed are" in ending.sentence
    assert not any(isinstance(message, protocol.Proposal) for message in talk.messages)


def test_a_worker_begins_nothing_for_an_executor_that_is_gone(place: Workplace, tmp_path: Path) -> None:
    task, talk = write_toy_task(tmp_path / "task"), Yes()
    work = protocol.AssignWork(
        assignment="a", run=new_run("a"), task=str(task), plan=None, level=2, author=bytes(32), executor="lab:one"
    )
    carry_out(work, talk, place)
    *_, ending = talk.messages
    assert isinstance(ending, protocol.Failed), "no claim is made, and no run is recorded"
    assert "no installed package registers lab" in ending.sentence
    assert not any(isinstance(message, protocol.Proposal) for message in talk.messages)


@pytest.mark.parametrize("limit", ASKED)
def test_the_command_that_the_refusal_names_allows_the_task(limit: str, place: Workplace, tmp_path: Path) -> None:
    task = load_task(greedy(tmp_path, limit))
    with pytest.raises(Refused) as refused:
        place.ceiling.check(task)

    match = re.search(r"autoresearch node config set (\S+) (\S+)$", refused.value.hint)
    assert match is not None
    write_setting(place.paths.settings, match[1], match[2])

    Ceiling.of(load_settings(place.paths.settings, {})[0].work).check(task)


def test_all_that_is_too_much_is_named_at_once(place: Workplace, tmp_path: Path) -> None:
    manifest = greedy(tmp_path, "processes") / "task.toml"
    manifest.write_text(manifest.read_text().replace("[limits]", "[limits]\ndisk_mib = 5000"))

    with pytest.raises(Refused, match=r"disk_mib 5000.*processes 300"):
        place.ceiling.check(load_task(manifest.parent))


def test_a_budget_in_seconds_counts_as_often_as_the_watchdog_lets_it(place: Workplace, tmp_path: Path) -> None:
    manifest = write_toy_task(tmp_path / "task") / "task.toml"
    text = manifest.read_text().replace('unit = "work"', 'unit = "seconds"')

    manifest.write_text(text.replace("amount = 1.0", "amount = 1800"))
    place.ceiling.check(load_task(manifest.parent))
    manifest.write_text(text.replace("amount = 1.0", "amount = 1801"))
    with pytest.raises(Refused, match="seconds 3602, allowed are 3600"):
        place.ceiling.check(load_task(manifest.parent))


def test_the_shipped_task_and_a_new_one_of_ones_own_are_allowed(place: Workplace, tmp_path: Path) -> None:
    own = write_toy_task(tmp_path / "own")
    (own / "task.toml").unlink()
    write_task(own, most_memory_mib=place.ceiling.memory_mib)

    place.ceiling.check(shipped_task())
    place.ceiling.check(load_task(own))
    assert limits_of(load_task(own))["memory_mib"] == min(32768, place.ceiling.memory_mib)


@pytest.mark.slow
def test_a_daemon_refuses_it_says_why_and_publishes_nothing(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home").start()
    for limit, amount in ASKED.items():
        task = str(greedy(tmp_path, limit))
        for answer in (daemon.post("/v1/proposals", task=task, program="x = 1"), daemon.post("/v1/work", task=task)):
            assert answer.status_code == 409
            assert f"{limit} {amount}" in answer.text
            assert f"autoresearch node config set work.max_{limit} {amount}" in answer.text
    assert daemon.status().state == "idle"
    daemon.stop()
    assert daemon.runs() == []


@pytest.mark.slow
def test_a_daemon_begins_no_work_on_a_task_for_cards_without_one(tmp_path: Path) -> None:
    task = shipped_by_name("gpt-small")
    assert task is not None
    daemon = Daemon(tmp_path / "home").start()
    answer = daemon.post("/v1/work", task=str(task.folder))
    assert answer.status_code == 409
    assert "gpt-small is for graphics cards" in answer.text
    assert "autoresearch work gpt-small-smoke" in answer.text
    assert daemon.status().state == "idle"
    daemon.stop()


@pytest.mark.slow
def test_a_node_whose_ceiling_was_lowered_waits_and_says_why(tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon = Daemon(tmp_path / "home").start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: daemon.status().records > 3)
    daemon.stop()
    before = len(daemon.runs())

    daemon.settings["AUTORESEARCH_WORK_MAX_SECONDS"] = "30"
    daemon.launch()
    wait_for(lambda: daemon.answers("/healthz") and daemon.status().why == "task_broken")

    status = daemon.status()
    assert status.state == "waiting"
    assert "seconds 60, allowed are 30" in status.reason
    assert "autoresearch node config set work.max_seconds 60" in status.reason
    daemon.stop()
    assert len(daemon.runs()) == before
