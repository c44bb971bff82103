"""The synopsis of each command for docs/reference/commands.md, from the tree of the command line itself."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import typer
from autoresearch_cli.groups import CommandGroup
from autoresearch_cli.main import app

from autoresearch.ask.commands import COMMANDS


def fill(page: str) -> str:
    """The page with usage and options below the heading of each command, and those of the commands that follow it."""
    headings = set(re.findall(r"^### (.*)$", page, re.MULTILINE))

    def synopsis(match: re.Match[str]) -> str:
        path = match[1]
        inner = [name for name in _commands() if name not in headings and _above(name, headings) == path]
        own = [_entry(path)] if path in COMMANDS else []
        first, blank, rest = match[0].partition("\n\n")
        return first.rstrip("\n") + "\n\n" + "".join(own) + rest + blank + "".join(_titled(name) for name in inner)

    return re.sub(r"^### (.*)\n(?:(?!#).*\n)*", synopsis, page, flags=re.MULTILINE)


def _above(name: str, headings: set[str]) -> str:
    """The longest heading that the words of a command begin with; empty: none."""
    return max((path for path in headings if name.startswith(f"{path} ")), key=len, default="")


def _titled(path: str) -> str:
    sentence = (_commands()[path].help or "").partition("\f")[0]
    return f"#### {path}\n\n{_plain(sentence)}\n\n{_entry(path)}"


def _entry(path: str) -> str:
    """One command: its usage, then a table of arguments and options."""
    command = _commands()[path]
    context = command.context_class(command, info_name=f"autoresearch {path}")
    usage = " ".join([context.info_name, *command.collect_usage_pieces(context)])
    records = [parameter.get_help_record(context) for parameter in command.params if "--help" not in parameter.opts]
    rows = "".join(_row(*record) for record in records if record)
    table = f"| argument or option | meaning |\n| --- | --- |\n{rows}\n" if rows else ""
    return f"```text\n{usage}\n```\n\n{table}"


def _row(names: str, meaning: str) -> str:
    names, meaning = names.replace("|", "\\|"), _plain(meaning).replace("|", "\\|").replace("<", "&lt;")
    return f"| `{names}` | {meaning} |\n"


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


@cache
def _commands() -> dict[str, Any]:
    """All commands by their words, such as ``network peers add``, in the order of the help."""
    root: Any = typer.main.get_group(app)
    tree: dict[str, Any] = {}
    for path in COMMANDS:
        noun, _, name = path.rpartition(" ")
        group: Any = CommandGroup(noun) if noun else root
        tree[path] = command = group.get_command(typer.Context(group), name)
        tree |= {f"{path} {inner}": below for inner, below in getattr(command, "commands", {}).items()}
    return tree
