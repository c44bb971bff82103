"""Commands that pages name are commands: each is read by the parser of the command line, and none is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from autoresearch_cli.main import app

ROOT = Path(__file__).parents[2]
# The reference has patterns such as “[--task NAME]”.
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs/reference/commands.md"})]


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every command of ours in a page, in blocks for a console and in sentences."""
    text = page.read_text()
    blocks = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    for line in lines + re.findall(r"`(autoresearch [^`\n]+)`", text):
        for part in re.split(r"&&|\|\|?|;|>|\s#\s", line):
            if part.strip().startswith("autoresearch ") and "…" not in part:
                yield shlex.split(part)[1:]


def read(words: list[str]) -> None:
    """Find the command and take its words apart; a sentence may name one without what it needs."""
    command, context, rest = typer.main.get_command(app), None, words
    name = "autoresearch"
    try:
        while True:
            context = command.make_context(name, rest, parent=context)
            if not hasattr(command, "resolve_command"):
                return
            rest = [*context._protected_args, *context.args]
            if not rest and command.invoke_without_command:
                return
            name, command, rest = command.resolve_command(context, rest)
    except typer.TyperException as error:
        if type(error).__name__ not in {"MissingParameter", "NoArgsIsHelpError"}:
            pytest.fail(f"autoresearch {shlex.join(words)}: {error.format_message()}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_can_be_typed(page: Path) -> None:
    for words in commands(page):
        read(words)
