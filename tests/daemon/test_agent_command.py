"""A command that changes a program: what it leaves is not believed. Real commands in real folders, without a daemon."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from autoresearch_daemon.minds.agent_command import change_by_command

from autoresearch.log.local import ModelFailure
from autoresearch.propose.mind.history import History, LeadingProgram
from autoresearch.propose.mind.reply import AnswerRules, ProposedProgram
from autoresearch.settings import AgentCommand
from autoresearch.task.loading import load_task
from autoresearch.words import Operator, Origin
from tests.daemon.toy import TRAIN, write_toy_task

SECRET = "sk-very-secret-key"
HERE = "import os; os.chdir('written_by_participants'); here = 'train.py'; text = open(here).read()\n"
spent: list[tuple[int, float]] = []
CHANGED = "text.replace('X = 0.9', 'X = 0.5')"


def change(folder: Path, script: str, seconds: int = 60, command: str = "", program: str = "") -> ProposedProgram:
    """What a command with this script makes of the toy task's program, or of that with these files."""
    (folder / "agent.py").write_text(script)
    settings = AgentCommand(command=command or f"{sys.executable} {folder / 'agent.py'}", seconds=seconds)
    history = History(
        LeadingProgram("", None, Origin.REPORTED, 0, "", TRAIN),
        baseline=None,
        assumed=0.0,
        noise=0.1,
        runs=0,
        since_best=0,
    )
    place = write_toy_task(folder / "toy")
    (place / "task.toml").write_text((place / "task.toml").read_text() + program)
    task = load_task(place)
    return change_by_command(
        history,
        task,
        AnswerRules(task.program.decode()),
        settings,
        folder,
        lambda tokens, cost: spent.append((tokens, cost)),
        operator=Operator.DRAFT,
        cancelled=lambda: False,
    )


def test_what_it_leaves_is_the_change_and_what_it_says_last_is_the_reason(tmp_path: Path) -> None:
    made = change(tmp_path, f"{HERE}open(here, 'w').write({CHANGED})\nprint('thinking\\n\\nX is nearer')")

    assert made.source == TRAIN.replace("0.9", "0.5")
    assert (made.title, made.hypothesis) == ("X is nearer", "X is nearer")
    assert [path.name for path in tmp_path.glob("agent-*")] == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("raise SystemExit('no credit left')", "ended with status 1: no credit left"),
        ("print('done')", "Nothing changed"),
        ("os.remove(here); os.symlink('/etc/passwd', here)", "left no train.py"),
        ("os.remove(here); os.mkfifo(here)", "no plain file"),
        ("open(here, 'w').write('x = 1' * 100_000)", "more than the allowed"),
        ("open(here, 'wb').write(b'\\xff')", "not UTF-8"),
        (f"open(here, 'w').write({CHANGED} + '# ' + os.environ['OPENAI_API_KEY'])", "of this machine in it"),
        (f"open(here, 'w').write({CHANGED} + '# ' + os.getcwd())", "of this machine in it"),
    ],
)
def test_what_it_leaves_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    with pytest.raises(ModelFailure, match=reason):
        change(tmp_path, HERE + script)


def test_a_folder_that_it_leaves_is_no_way_out(tmp_path: Path) -> None:
    (tmp_path / "toy" / "lib").mkdir(parents=True)
    (tmp_path / "toy" / "lib" / "passwd.py").write_text("Y = 1\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "passwd.py").write_text("SECRET = 1\n")
    program = '[program]\nedit = ["train.py", "lib/passwd.py"]\n'
    agent_script = f"{HERE}open('lib/passwd.py', 'a').write('Z = 2\\n')"
    assert "Z = 2" in change(tmp_path, agent_script, program=program).source
    script = f"{HERE}import shutil; shutil.rmtree('lib'); os.symlink({str(tmp_path / 'elsewhere')!r}, 'lib')"
    with pytest.raises(ModelFailure, match=r"left no lib/passwd\.py"):
        change(tmp_path, script, program=program)


def test_it_is_told_which_kind_of_change_is_wanted(tmp_path: Path) -> None:
    script = f"{HERE}open(here, 'w').write({CHANGED})\nprint(open('../PROMPT.md').read().splitlines()[2])"
    assert "Write train.py in another way" in change(tmp_path, script).hypothesis


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ModelFailure, match="did not end within 0 s"):
        change(tmp_path, "import time; time.sleep(600)", seconds=0)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFailure, match="no-such-agent can't be started"):
        change(tmp_path, "", command="no-such-agent {prompt}")
