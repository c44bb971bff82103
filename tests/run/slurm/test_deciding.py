"""What is concluded from an engine's list: a run is lost after an absence only, and never because nobody answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from autoresearch_executors.slurm import Slurm, parse_list, run_command, script, submission
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import Refused, TimedOut
from autoresearch.run.executors import Absences, EngineJob, Seen
from autoresearch.run.folder import EventFile, Fault, RunReply, write_outcome
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.settings import ExecutorSection
from tests.run.test_folder import written

NOWHERE = Path("/nowhere/search-1")
OVER = EngineJob(native="7", state="over", sentence="node_fail")


def states(
    absences: Absences, *looks: tuple[float, Mapping[str, EngineJob] | None], folder: Path = NOWHERE
) -> list[str]:
    return [absences.judge(folder, listed, now).state for now, listed in looks]


def listing(state: str) -> dict[str, EngineJob]:
    return {"search-1": EngineJob(native="7", state=state)}


def test_an_absence_of_five_minutes_is_a_loss() -> None:
    assert states(Absences(), (0, {}), (299, {}), (300, {})) == ["unknown", "unknown", "lost"]


@pytest.mark.parametrize("between", [listing("queued"), listing("running"), None], ids=["queued", "running", "away"])
def test_the_clock_begins_anew_after_a_reappearance_or_silence(between: Mapping[str, EngineJob] | None) -> None:
    seen = states(Absences(), (0, {}), (200, between), (301, {}), (600, {}), (601, {}))
    assert seen[2:] == ["unknown", "unknown", "lost"]


def test_a_silent_engine_loses_nothing() -> None:
    assert set(states(Absences(), *((now, None) for now in range(0, 10_000, 100)))) == {"unknown"}


def test_the_outcome_is_the_truth_whatever_the_engine_says(tmp_path: Path) -> None:
    write_outcome(tmp_path, RunReply(run=tmp_path.name, level=0, fault=Fault(sentence="no disk")))
    for listed in (None, {}, {tmp_path.name: OVER}, {tmp_path.name: EngineJob(native="7", state="running")}):
        assert Absences(seconds=0).judge(tmp_path, listed, 0.0) == Seen(state="ended")


def test_a_lost_run_says_why(tmp_path: Path) -> None:
    absences = Absences(seconds=0)
    never = absences.judge(tmp_path, {tmp_path.name: OVER}, 0.0)
    assert (never.state, never.sentence) == ("lost", "it never began, and the engine says node_fail of job 7")
    events = EventFile(tmp_path)
    events.progress(RunProgress(fraction=0.5))
    events.close()
    gone = absences.judge(tmp_path, {}, 0.0)
    assert gone.sentence == "it left no outcome, and the engine does not list it"
    running = absences.judge(tmp_path, {tmp_path.name: EngineJob(native="7", state="running")}, 0.0)
    assert (running.native, running.progress) == ("7", RunProgress(fraction=0.5))


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(["queued", "running", "over", "absent", "away"]))))
def test_only_a_whole_absence_loses(looks: list[tuple[float, str]]) -> None:
    absences, now, gone_since = Absences(), 0.0, None
    for wait, word in looks:
        now += wait
        listed = {"away": None, "absent": {}}.get(word, {"search-1": EngineJob(native="7", state=word)})
        gone = word in ("absent", "over")
        gone_since = (now if gone_since is None else gone_since) if gone else None
        seen = absences.judge(NOWHERE, listed, now)
        assert (seen.state == "lost") == (gone_since is not None and now - gone_since >= absences.seconds)
        if seen.state == "lost":
            gone_since = None


def test_jobs_are_known_by_name_and_a_living_one_counts() -> None:
    printed = (
        "12|RUNNING|None|ar-search-1-ab\n"
        "13|PENDING|Resources (half | of it)|ar-search-2-cd\n"
        "12|COMPLETED|None|ar-search-1-ab\n"
        "9|NODE_FAIL|None|ar-search-3-ef\n"
        "10|COMPLETING|None|ar-search-3-ef\n"
        "14|BLOOMING|None|ar-search-4-aa\n"
        "15|RUNNING|None|somebody's\n"
        "\n16\n"
    )
    jobs = parse_list(printed)
    assert {run: (job.native, job.state) for run, job in jobs.items()} == {
        "search-1-ab": ("12", "running"),
        "search-2-cd": ("13", "queued"),
        "search-3-ef": ("10", "running"),
        "search-4-aa": ("14", "running"),
    }
    assert jobs["search-2-cd"].sentence == "pending: Resources (half | of it)"


@given(st.text(max_size=200))
def test_no_list_is_a_fault(printed: str) -> None:
    parse_list(printed)


class Commands:
    """Slurm's commands, without Slurm."""

    def __init__(self, **answers: str | Exception) -> None:
        self.answers, self.calls = answers, []

    def __call__(self, words: Sequence[str], stdin: str = "") -> str:
        self.calls.append((words, stdin))
        answer = self.answers.get(words[0], "")
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_run_is_submitted_once(tmp_path: Path) -> None:
    folder, _ = written(tmp_path)
    commands = Commands(squeue=f"3|PENDING|None|ar-{folder.name}\n")
    Slurm(ExecutorSection(at_most=4), command=commands).start(folder)
    assert [words[0] for words, _ in commands.calls] == ["squeue"]


def test_a_submission_says_what_the_run_may_use(tmp_path: Path) -> None:
    folder, request = written(tmp_path, threads=3, device="cuda")
    commands = Commands()
    Slurm(ExecutorSection(options="--partition=short"), command=commands).start(folder)
    words, job = commands.calls[-1]
    assert list(words) == ["sbatch", *submission(folder, request), "--partition=short"]
    for word in ("--no-requeue", f"--job-name=ar-{folder.name}", "--cpus-per-task=3", "--gpus-per-node=1"):
        assert word in words
    assert "--mem=2048M" in words, "512 of the run, 512 of its files, 1024 of the runner"
    assert "--time=38" in words, "8 times the minute of a run, and half an hour"
    assert job == script(folder)
    assert "--gpus-per-node=1" not in submission(folder, written(tmp_path)[1])


def test_without_a_list_nothing_is_submitted(tmp_path: Path) -> None:
    folder, _ = written(tmp_path)
    commands = Commands(squeue=TimedOut("no controller"))
    with pytest.raises(TimedOut):
        Slurm(ExecutorSection(at_most=4), command=commands).start(folder)
    assert len(commands.calls) == 1
    assert Slurm(ExecutorSection(at_most=4), command=commands).look([folder])[folder].state == "unknown"


def test_what_is_queued_or_runs_takes_room() -> None:
    printed = "1|PENDING|None|ar-a-1\n2|RUNNING|None|ar-a-2\n3|FAILED|None|ar-a-3\n"
    assert Slurm(ExecutorSection(at_most=4), command=Commands(squeue=printed)).capacity() == 2
    assert Slurm(ExecutorSection(at_most=1), command=Commands(squeue=printed)).capacity() == 0


@pytest.mark.parametrize(
    ("program", "words", "error"),
    [
        ("sbatch", "sbatch: error: invalid partition specified: x", Refused),
        ("sbatch", "sbatch: error: Unable to contact slurm controller (connect failure)", TimedOut),
        ("sbatch", "sbatch: error: Batch job submission failed: Unexpected missing socket error", TimedOut),
        ("squeue", "slurm_load_jobs error: anything", TimedOut),
    ],
)
def test_what_a_command_says_on_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str, error: type[Exception]
) -> None:
    command = tmp_path / program
    command.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(error, match=words.rsplit(": ", maxsplit=1)[-1][:10]):
        run_command([program])


def test_a_machine_without_slurm_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="squeue is not on this machine") as refused:
        Slurm(ExecutorSection(at_most=4)).capacity()
    assert "login node" in refused.value.hint
