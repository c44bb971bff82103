"""A command that changes a program: what it leaves is not believed. Real commands in real folders, without a daemon."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from autoresearch_daemon.minds.agent_command import change_by_command

from autoresearch.log.local import ModelFailure
from autoresearch.propose.mind.reply import AnswerRules, ProposedProgram
from autoresearch.settings import AgentCommand
from autoresearch.task.loading import load_task
from autoresearch.task.program import split_program
from tests.daemon.toy import TRAIN, write_toy_task

SECRET = "sk-very-secret-key"
HERE = "import os; os.chdir('written_by_participants'); here = 'train.py'; text = open(here).read()\n"
spent: list[tuple[int, float]] = []
CHANGED = "text.replace('X = 0.9', 'X = 0.5')"


def change(
    folder: Path, script: str, seconds: int = 60, command: str = "", program: str = "", cost: float = 0.0
) -> ProposedProgram:
    """What a command with this script makes of the toy task's program, or of that with these files."""
    (folder / "agent.py").write_text(script)
    settings = AgentCommand(command=command or f"{sys.executable} {folder / 'agent.py'}", seconds=seconds, cost=cost)
    place = write_toy_task(folder / "toy")
    (place / "task.toml").write_text((place / "task.toml").read_text() + program)
    task = load_task(place)
    return change_by_command(
        "nothing was tried",
        task,
        AnswerRules(task.program.decode()),
        settings,
        folder,
        lambda tokens, cost: spent.append((tokens, cost)),
        wish="Write train.py in another way.",
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


@pytest.mark.slow
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
    script = f"{HERE}open(here, 'w').write({CHANGED})\nprint(open('../PROMPT.md').read().splitlines()[0])"
    assert "Write train.py in another way" in change(tmp_path, script).hypothesis


def test_what_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ModelFailure, match="did not end within 0 s"):
        change(tmp_path, "import time; time.sleep(600)", seconds=0)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFailure, match="no-such-agent can't be started"):
        change(tmp_path, "", command="no-such-agent {prompt}")


EDIT = f"{HERE}open(here, 'w').write({CHANGED})\n"
MANY = '[program]\nedit = ["train.py", "*.py"]\n'


def printing(text: str) -> str:
    """A script that changes the program and prints this."""
    return f"{EDIT}import sys; sys.stdout.buffer.write({text.encode()!r})"


def test_a_new_file_is_part_of_a_program_of_several_files(tmp_path: Path) -> None:
    uses = f"text = {CHANGED}.replace('import prepare', 'import prepare, steps')\n"
    script = f"{HERE}{uses}open(here, 'w').write(text)\nopen('steps.py', 'w').write('Z = 2\\n')"
    made = change(tmp_path, f"{script}\nprint('with steps')", program=MANY)
    assert split_program(made.source)["steps.py"] == "Z = 2\n"
    assert made.hypothesis == "with steps"


@pytest.mark.parametrize(
    ("statement", "file"),
    [
        ("import steps", "steps.py"),
        ("from steps import R", "steps.py"),
        ("import lib.steps", "lib/steps.py"),
        ("from lib import steps", "lib/steps.py"),
        ("import lib", "lib/__init__.py"),
    ],
)
def test_a_program_that_imports_a_file_that_is_not_taken_is_refused(tmp_path: Path, statement: str, file: str) -> None:
    script = (
        f"{HERE}open(here, 'w').write({CHANGED} + '{statement}\\n')\n"
        f"import pathlib; f = pathlib.Path('{file}'); f.parent.mkdir(exist_ok=True); f.write_text('R = 1\\n')"
    )
    with pytest.raises(ModelFailure, match=f"it imports {file}, a file that the command added") as failure:
        change(tmp_path, script)
    assert "[program] edit in task.toml" in failure.value.hint


@pytest.mark.slow
def test_files_that_are_not_taken_are_named(tmp_path: Path) -> None:
    made = change(tmp_path, f"{EDIT}open('notes.txt', 'w').write('a')\nprint('X is nearer, see notes.txt')")
    assert made.hypothesis == "Not taken over: notes.txt. X is nearer, see notes.txt"
    prompt = f"{EDIT}print([line for line in open('../PROMPT.md') if 'Change no other' in line][0])"
    assert "a new file is not taken over" in change(tmp_path, prompt).hypothesis
    assert "of new files only *.py are taken over" in change(tmp_path, prompt, program=MANY).hypothesis


@pytest.mark.slow
def test_a_changed_fixed_file_is_never_told_as_done(tmp_path: Path) -> None:
    made = change(tmp_path, f"{EDIT}open('prepare.py', 'a').write('# smaller\\n')\nprint('I made the test smaller')")
    assert made.title == "X 0.9 -> 0.5"
    assert made.hypothesis == "prepare.py changed too, and is left as the task has it. I made the test smaller"
    removed = change(tmp_path, f"{EDIT}os.remove('prepare.py')\nprint('prepare.py is not needed')")
    assert removed.title == "X 0.9 -> 0.5"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("open('../train.py', 'w').write('X = 0.5')", "wrote train.py beside the folder written_by_participants"),
        ("open('prepare.py', 'a').write('# x')", "changed prepare.py alone"),
        ("open('other.py', 'w').write('X = 1')", "changed other.py alone"),
        (
            f"import subprocess; git = ['git', '-c', 'user.name=a', '-c', 'user.email=a@b', '-C', '..']\n"
            f"subprocess.run([*git, 'checkout', '-q', '-b', 'mine'])\nopen(here, 'w').write({CHANGED})\n"
            "subprocess.run([*git, 'commit', '-qam', 'x'])\n"
            "subprocess.run([*git, 'checkout', '-q', '-'])",
            "made the branches",
        ),
    ],
)
def test_work_that_is_not_in_the_program_is_named(tmp_path: Path, script: str, reason: str) -> None:
    with pytest.raises(ModelFailure, match=r"nothing changed in train\.py: the command") as failure:
        change(tmp_path, HERE + script)
    assert reason in str(failure.value)


CLAUDE = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1998, "num_turns": 3,
    "result": "Looked at it.\n\nX is nearer.", "session_id": "0e639165", "total_cost_usd": 0.0421,
    "usage": {
        "input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 1000, "output_tokens": 77,
    },
}  # fmt: skip
STREAM = [
    {"type": "system", "subtype": "init", "cwd": "/home/me", "tools": ["Read", "Edit"]},
    {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "I look at it"}], "usage": {"output_tokens": 9}},
    },
    CLAUDE,
]
CODEX = [
    {"type": "thread.started", "thread_id": "0199"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Thinking**"}},
    {"type": "item.completed", "item": {"id": "item_1", "type": "command_execution", "command": "ls", "exit_code": 0}},
    {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "X is nearer."}},
    {"type": "turn.completed", "usage": {"input_tokens": 26549, "cached_input_tokens": 22272, "output_tokens": 1590}},
]
GEMINI = {
    "session_id": "s", "response": "X is nearer.",
    "stats": {"models": {"gemini-2.5-pro": {"api": {"totalRequests": 2}, "tokens": {
        "prompt": 24939, "candidates": 20, "total": 25113, "cached": 21263, "thoughts": 154, "tool": 0}}}},
}  # fmt: skip
GEMINI_STREAM = [
    {"type": "init", "timestamp": "2026", "session_id": "s", "model": "gemini-2.5-pro"},
    {"type": "message", "role": "user", "content": "Improve train.py"},
    {"type": "message", "role": "assistant", "content": "X is ", "delta": True},
    {"type": "message", "role": "assistant", "content": "nearer.", "delta": True},
    {"type": "result", "status": "success", "stats": {"total_tokens": 1234, "input_tokens": 1200, "output_tokens": 34}},
]


def lines(values: list[object]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


AGENTS: dict[str, tuple[str, int, float]] = {
    "claude -p --output-format json": (json.dumps(CLAUDE), 1100, 0.0421),
    "claude -p --output-format json --verbose": (json.dumps(STREAM), 1100, 0.0421),
    "claude -p --output-format stream-json": (lines(list(STREAM)), 1100, 0.0421),
    "codex exec --json": (lines(list(CODEX)), 28139, 0.5),
    "gemini --output-format json": ("Loaded cached credentials.\n" + json.dumps(GEMINI, indent=2), 25113, 0.5),
    "gemini --output-format stream-json": (lines(list(GEMINI_STREAM)), 1234, 0.5),
}


@pytest.mark.parametrize("name", AGENTS)
def test_of_a_known_agent_its_words_and_its_cost_are_read(tmp_path: Path, name: str) -> None:
    output, tokens, cost = AGENTS[name]
    made = change(tmp_path, printing(output), cost=0.5)
    assert (made.title, made.hypothesis) == ("X is nearer.", "X is nearer.")
    assert spent[-1] == (tokens, cost)


@pytest.mark.parametrize(
    ("output", "title"),
    [
        ("\x1b[2K\x1b[1mX is nearer\x1b[0m\n", "X is nearer"),
        ("thinking\n\n\x1b]0;agent\x07X is nearer\r\n", "X is nearer"),
        ("X is nearer\n\n 10%|█         |\r 50%|█████     |\r100%|██████████|\n", "X is nearer"),
        ("X is nearer\n\nstep 1/3\rstep 2/3\rstep 3/3", "X is nearer"),
        ("working…\rX is nearer", "X is nearer"),
        ('{"status": "ok", "message": "X is nearer"}', "X is nearer"),
        ('{"event": "end", "data": {"text": "X is nearer"}}', "X is nearer"),
        ('{"status": "ok"}', "X 0.9 -> 0.5"),
        ("", "X 0.9 -> 0.5"),
        ("\x1b[2K\r\x1b[2K", "X 0.9 -> 0.5"),
        ("EXPECT: 0.2\nPLAN: then Y\nX is nearer", "X is nearer"),
        ("TITLE: nearer\nHYPOTHESIS: X is nearer", "nearer"),
    ],
)
def test_titles_are_clean_text(tmp_path: Path, output: str, title: str) -> None:
    assert change(tmp_path, printing(output)).title == title


def test_what_an_agent_expects_and_plans_is_read(tmp_path: Path) -> None:
    made = change(tmp_path, printing("EXPECT: 0.2\nPLAN: then Y\nX is nearer"))
    assert (made.expected, made.plan, made.hypothesis) == (0.2, "then Y", "X is nearer")


@pytest.mark.slow
def test_an_agent_that_says_that_it_failed_is_believed_and_paid(tmp_path: Path) -> None:
    output = json.dumps({**CLAUDE, "is_error": True, "subtype": "error_max_turns", "result": None})
    with pytest.raises(ModelFailure, match=r"nothing changed in train\.py: error max turns"):
        change(tmp_path, f"print({output!r})")
    assert spent[-1] == (1100, 0.0421)
    failed = lines([{"type": "turn.started"}, {"type": "turn.failed", "error": {"message": "no credit"}}])
    with pytest.raises(ModelFailure, match="ended with status 1: no credit"):
        change(tmp_path, f"print({failed!r}); raise SystemExit(1)", cost=0.25)
    assert spent[-1] == (0, 0.25)
