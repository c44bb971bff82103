"""``task attack --rounds``: a scripted model and an agent's script think of cheats, by a real daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_daemon.minds.proposing import written_cheat

from autoresearch.ask.requests import CheatRequest
from autoresearch.errors import UsageError
from autoresearch.run.attack.report import AttackReport
from autoresearch.settings import AgentCommand, Settings
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.program import split_program
from tests.cli.programs import EVALUATE, FIT, evaluated_task, shell_task
from tests.cli.test_json import strictly
from tests.daemon.daemons import Daemon
from tests.daemon.scripted_model import in_turn, openai, serving
from tests.warm import run_command

LINE = 'echo "score: $i"'
# It believes a number that the artifact states.
BELIEVING = EVALUATE.replace(
    'print("accuracy:", ', 'stated = json.load(open("model.json")).get("accuracy")\nprint("accuracy:", stated or '
)
STATING = FIT.replace('"threshold": THRESHOLD}', '"threshold": THRESHOLD, "accuracy": 9.5}')


def cheat(title: str, line: str) -> str:
    return f"TITLE: {title}\nHYPOTHESIS: a hole\n<<<<<<< SEARCH\n{LINE}\n=======\n{line}\n>>>>>>> REPLACE\n"


def test_an_agent_sees_what_a_participant_sees_and_what_was_tried(tmp_path: Path) -> None:
    task = pin_baseline(shell_task(tmp_path / "count"))
    (tmp_path / "agent.py").write_text(
        "import pathlib\nhere = pathlib.Path('written_by_participants')\n"
        "assert 'one it was: held' in (here / 'history.md').read_text()\n"
        "assert 'can be cheated' in pathlib.Path('PROMPT.md').read_text()\n"
        "(here / 'count.sh').write_text('echo score: 99\\n')\nprint('It prints a number')\n"
    )
    settings = Settings(agent=AgentCommand(command=f"{sys.executable} {tmp_path / 'agent.py'}"))
    request = CheatRequest(task=str(task.folder), tried={"00": "one it was: held"})

    answer = written_cheat(request, settings, tmp_path / "local.sqlite", tmp_path)

    assert (split_program(answer.program), answer.title) == ({"count.sh": "echo score: 99\n"}, "It prints a number")
    with pytest.raises(UsageError, match="no model and no agent's command is set up") as refused:
        written_cheat(request, Settings(), tmp_path / "local.sqlite", tmp_path)
    assert "llm.model" in refused.value.hint


@pytest.mark.slow
def test_a_mend_is_tried_before_a_person_sees_it(tmp_path: Path) -> None:
    folder = pin_baseline(evaluated_task(tmp_path / "fit", evaluator=BELIEVING)).folder
    (tmp_path / "cheat.py").write_text(STATING)
    answers = [
        "TITLE: Round it\nHYPOTHESIS: looks better\n<<<<<<< SEARCH\nimport json, os, random\n=======\n"
        "import json, os, random  # tidy\nROUNDED = True\n>>>>>>> REPLACE\n",
        "TITLE: Break it\nHYPOTHESIS: nothing is measured\n<<<<<<< SEARCH\nimport json, os, random\n=======\n"
        "import json, os, random, sys\nsys.exit(1)\n>>>>>>> REPLACE\n",
        "TITLE: Count itself\nHYPOTHESIS: the evaluator counts\n<<<<<<< SEARCH\n"
        'stated = json.load(open("model.json")).get("accuracy")\n=======\nstated = None\n>>>>>>> REPLACE\n',
    ]
    with serving(in_turn(*map(openai, answers))) as model:
        settings = {"NETWORK_ENABLED": "false", "LLM_URL": model.url, "LLM_MODEL": "scripted"}
        daemon = Daemon(tmp_path / "home", {f"AUTORESEARCH_{name}": value for name, value in settings.items()}).start()
        try:
            environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home)}
            words = ("task", "attack", str(folder), "--program", str(tmp_path / "cheat.py"), "--mend", "--json")
            ended = run_command(*words, environment=environment)
        finally:
            daemon.stop()

    assert ended.returncode == 1, ended.stderr
    report = strictly(ended.stdout, AttackReport)
    assert [row.result for row in report.rows] == ["through"]
    mend = report.mended
    assert mend is not None, ended.stderr
    assert (mend.title, mend.held) == ("Count itself", 1)
    assert mend.baseline == pytest.approx(report.baseline, abs=0.1)
    assert "+stated = None" in mend.diff
    assert (folder / "evaluate.py").read_text() == BELIEVING, "the author's file stays as it is"
    first, second, third = (request["messages"][0]["content"] for request in model.requests)
    assert '"accuracy": 9.5' in first, "it is shown what the cheat changes"
    assert "stated or" in first
    assert "Round it: own-cheat" in second
    assert "got through again" in second
    assert "Break it: the baseline" in third
    subprocess.run(["patch", "-p1", "-d", str(folder), "-i", f"{mend.folder}/mend.diff"], check=True)
    assert "stated = None" in (folder / "evaluate.py").read_text()
    assert load_task(folder).digest == load_task(Path(mend.folder)).digest, "another task, with the same baseline"


@pytest.mark.slow
def test_each_round_is_told_what_came_of_those_before(tmp_path: Path) -> None:
    folder = pin_baseline(shell_task(tmp_path / "count")).folder
    script = in_turn(
        *map(openai, [cheat("Count down", "echo score: 1"), cheat("State it", "echo score: 77"), "I am sorry."])
    )
    with serving(script) as model:
        settings = {"NETWORK_ENABLED": "false", "LLM_URL": model.url, "LLM_MODEL": "scripted"}
        daemon = Daemon(tmp_path / "home", {f"AUTORESEARCH_{name}": value for name, value in settings.items()}).start()
        try:
            environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home)}
            words = ("task", "attack", str(folder), "--rounds", "3", "--json")
            ended = run_command(*words, environment=environment)
        finally:
            daemon.stop()

    assert ended.returncode == 1, ended.stderr
    rows = strictly(ended.stdout, AttackReport).rows
    assert [(row.does, row.result, row.value) for row in rows] == [
        ("Count down", "held", 1.0),
        ("State it", "through", 77.0),
    ]
    assert (folder / ".autoresearch" / "attacks" / rows[1].name / "count.sh").exists(), "it is tried again from now on"
    first, second, third = (request["messages"][0]["content"] for request in model.requests)
    assert LINE in first
    assert "Nothing yet" in first
    assert "Count down: held" in second
    assert "State it: through" in third
    assert "no further round" in ended.stderr
    assert "refused" in ended.stderr
