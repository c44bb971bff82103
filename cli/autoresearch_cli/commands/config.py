"""``config``: show and change settings."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.ask.node import ConfigAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import SettingRequest
from autoresearch.errors import DaemonNotRunning
from autoresearch.settings import setting_types, unknown_setting
from autoresearch_cli import here
from autoresearch_cli.catalogue import Json, command_app, examples
from autoresearch_cli.rendering.lists import setting_columns
from autoresearch_cli.rendering.output import paged, print_json, print_list, print_text, say

app = command_app("Show and change settings.", no_args_is_help=False)


def complete_setting(incomplete: str) -> list[tuple[str, str]]:
    """Settings whose name begins so, with what they mean."""
    return [(name, about) for name, (_, about) in setting_types().items() if name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A setting, like work.workers.", autocompletion=complete_setting)
]


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch node config show", "all settings, with what they mean"),
        ("autoresearch node config set work.workers 2", "change one; the file keeps its comments"),
        ("AUTORESEARCH_WORK_WORKERS=2 autoresearch up", "a variable wins over the file"),
        see="node paths, node doctor",
    ),
)
def config(context: typer.Context) -> None:
    """Show and change settings: a variable wins over the file, the file over the default."""
    if context.invoked_subcommand is None:
        show()
        say("→ autoresearch node config set NAME VALUE, autoresearch node config --help")


@app.command(
    epilog=examples(
        ("autoresearch node config show", "all settings"),
        ("autoresearch node config show --origin", "and where each value comes from"),
        ("autoresearch node config show --json", "the same for a program"),
        see="node config set, node config get, node paths",
    )
)
def show(
    *,
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value comes from, and its variable.")
    ] = False,
    json: Json = False,
) -> None:
    """All settings with their values and meanings."""
    answer = current()
    if json:
        print_json(answer)
        return
    with paged():
        print_list(setting_columns(origin=origin), answer.settings)


@app.command(
    epilog=examples(
        ("autoresearch node config get work.workers", "one value, nothing else"),
        ("autoresearch node config get work.device", "the device that runs train on"),
        ("autoresearch node config get work.workers --json", "with origin and meaning"),
        see="node config show, node config set",
    )
)
def get(name: Name, *, json: Json = False) -> None:
    """The value of one setting."""
    answer = current()
    found = [setting for setting in answer.settings if setting.name == name]
    if not found:
        raise unknown_setting(name, where="config get")
    if json:
        print_json(ConfigAnswer(file=answer.file, settings=found))
    else:
        print_text(found[0].text)


@app.command(
    name="set",
    epilog=examples(
        ("autoresearch node config set work.workers 2", "train two runs at a time, from now on"),
        ("autoresearch node config set work.task ~/my-task", "work on another task"),
        ("autoresearch node config set storage.keep_checkpoints true", "keep every model"),
        see="node config show, task new",
    ),
)
def set_value(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value.")],
    *,
    json: Json = False,
) -> None:
    """Change one setting in the settings file. A running daemon goes by it at once where it can."""
    if name == "work.task" and value:
        value = str(here.existing_folder(value))
    request = SettingRequest(name=name, value=value)
    try:
        answer = here.client().ask(Node.set_setting, request)
    except DaemonNotRunning:
        from autoresearch.ask.acts.settings import change_setting

        answer = change_setting(here.paths().settings, here.environment(), request)
    if json:
        print_json(answer)
        return
    say(f"{name} = {answer.settings[0].text}")
    if answer.note:
        say(answer.note)


@app.command(
    epilog=examples(
        ("autoresearch node config path", "the settings file"),
        ("$EDITOR $(autoresearch node config path)", "edit it by hand"),
        ("autoresearch node config path --json", "the same for a program"),
        see="node config show, node paths",
    )
)
def path(*, json: Json = False) -> None:
    """The path of the settings file, whether it exists or not."""
    file = here.paths().settings
    if json:
        print_json(ConfigAnswer(file=str(file), settings=[]))
    else:
        print_text(str(file))


def current() -> ConfigAnswer:
    """The settings in force."""
    from autoresearch.ask.acts.settings import settings_answer

    return settings_answer(here.paths().settings, here.environment())
