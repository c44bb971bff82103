"""What a person is asked once, at the first start on a terminal: network, task, how much of the machine, when.

Every answer is a setting, which ``node config`` changes later. Until a person agrees nothing is computed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import psutil
import typer

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.run.sandbox.cards import cards
from autoresearch.settings import Work
from autoresearch.task.loading import default_task, shipped_tasks
from autoresearch.text import counted, size
from autoresearch_cli import home
from autoresearch_cli.acts.task_folders import named_folder
from autoresearch_cli.commands.config import change
from autoresearch_cli.rendering.output import say
from autoresearch_cli.starting import has_display

NO_NETWORK, PROCESSOR = "none", "cpu"
IDLE_MINUTES = 15
NIGHTS = "mon-fri 19:00-07:00, sat-sun"


class When(NamedTuple):
    """An answer to when runs go on: its words, and the settings that say it."""

    words: str
    hours: str = ""
    only_idle: int = 0


WHEN = (
    When("always"),
    When(f"when nobody has used this machine for {IDLE_MINUTES} minutes", only_idle=IDLE_MINUTES),
    When(f"at night and on weekends ({NIGHTS})", hours=NIGHTS),
)


def is_asked() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_what_is_lent(join: Callable[[str], None]) -> bool:
    """Ask, and write each answer down. Returns whether the node shall begin to work now.

    ``join`` joins a network by what was typed; what it refuses is said, and asked again.

    Raises:
        UsageError: nobody can be asked.
    """
    if not is_asked():
        raise UsageError(
            "nobody can be asked here: this is no terminal", hint="autoresearch node config set NAME VALUE"
        )
    work = home.settings().work
    say("Nothing is computed until you say so below. Enter takes what stands in brackets; all can be changed later.")
    say(f"this machine: {_machine()}")
    network = home.manifest().network.name if home.paths().manifest.exists() else NO_NETWORK
    question = "Network: an invite or a manifest; with none all stays on this machine"
    _ask(question, network, lambda text: None if text in (network, NO_NETWORK) else join(text))
    _ask(f"Task: {_tasks()}, or a folder with a task.toml", work.task or default_task().name, _task)
    most = max(1, (os.cpu_count() or 1) // work.threads)
    question = f"Runs at a time, each with {counted(work.threads, 'processor core')}: up to {most}"
    _ask(question, str(work.workers), lambda text: change("work.workers", str(_number(text, most))))
    if cards():
        takes = typer.confirm("Graphics cards for runs?", default=work.device != PROCESSOR, err=True)
        if takes != (work.device != PROCESSOR):
            change("work.device", "auto" if takes else PROCESSOR)
    for number, when in enumerate(WHEN, 1):
        say(f"  {number}  {when.words}")
    _ask("When", _usual(work), _when)
    if psutil.sensors_battery() is not None:
        lends = typer.confirm("On battery too?", default=not work.only_on_mains, err=True)
        change("work.only_on_mains", str(not lends).lower())
    return typer.confirm("Begin to work now?", default=False, err=True)


def _tasks() -> str:
    """The tasks that ship and that this machine can run: those that need a card only where there is one."""
    return ", ".join(task.name for task in shipped_tasks() if cards() or not task.limits.card)


def _machine() -> str:
    parts = [counted(os.cpu_count() or 1, "processor core"), f"{size(psutil.virtual_memory().total)} of memory"]
    return ", ".join([*parts, *([counted(len(cards()), "NVIDIA card")] if cards() else [])])


def _ask(question: str, default: str, take: Callable[[str], object]) -> None:
    """Ask until the answer can be taken."""
    while True:
        typed = str(typer.prompt(question, default=default, err=True)).strip()
        try:
            take(typed)
        except AutoresearchError as error:
            say(f"{error}" + (f" → {error.hint}" if error.hint else ""))
        else:
            return


def _task(text: str) -> None:
    if text not in (home.settings().work.task, default_task().name):
        change("work.task", str(named_folder(text)))


def _number(text: str, most: int) -> int:
    if not text.isdecimal() or not 0 < int(text) <= most:
        raise UsageError(f"“{text[:40]}” is no number from 1 to {most}", hint="such as 1")
    return int(text)


def _usual(work: Work) -> str:
    """What is set; where nothing is, a machine with a screen is lent while nobody uses it."""
    for number, when in enumerate(WHEN, 1):
        if (work.hours, work.only_idle) == (when.hours, when.only_idle) and number > 1:
            return str(number)
    return "2" if has_display() and not home.paths().settings.exists() else "1"


def _when(text: str) -> None:
    when = WHEN[_number(text, len(WHEN)) - 1]
    change("work.hours", when.hours)
    change("work.only_idle", str(when.only_idle))
