"""``config``: show and change settings."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import click
import msgspec
import typer

from autoresearch.ask.node import ConfigAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import SettingRequest
from autoresearch.errors import DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.paths import write_whole
from autoresearch.settings import Settings, load_settings, setting_types, unknown_setting
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, examples
from autoresearch_cli.rendering.lists import setting_columns
from autoresearch_cli.rendering.output import paged, print_list, print_text, say

app = CommandApp("Show and change settings.", no_args_is_help=False)


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
    "show",
    ("autoresearch node config show", "all settings"),
    ("autoresearch node config show --origin", "and where each value comes from"),
    ("autoresearch node config show --json", "the same for a program"),
    see="node config set, node config get, node paths",
)
def show(
    *,
    origin: Annotated[
        bool, typer.Option("--origin", help="Say where each value comes from, and its variable.")
    ] = False,
) -> Answered:
    """All settings with their values and meanings."""
    answer = current()
    yield answer
    with paged():
        print_list(setting_columns(origin=origin), answer.settings)


@app.command(
    "get",
    ("autoresearch node config get work.workers", "one value, nothing else"),
    ("autoresearch node config get work.device", "the device that runs train on"),
    ("autoresearch node config get work.workers --json", "with origin and meaning"),
    see="node config show, node config set",
)
def get(name: Name) -> Answered:
    """The value of one setting."""
    answer = current()
    matches = [setting for setting in answer.settings if setting.name == name]
    if not matches:
        raise unknown_setting(name, where="config get")
    yield ConfigAnswer(file=answer.file, settings=matches)
    print_text(matches[0].text)


@app.command(
    "set",
    ("autoresearch node config set work.workers 2", "train two runs at a time, from now on"),
    ("autoresearch node config set work.task ~/my-task", "work on another task"),
    ("autoresearch node config set storage.keep_checkpoints true", "keep every model"),
    context_settings={"ignore_unknown_options": True},  # a value may begin with a dash
    see="node config show, task new",
)
def set_value(name: Name, value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value.")]) -> Answered:
    """Change one setting in the settings file. A running daemon goes by it at once where it can."""
    if name == "work.task" and value:
        value = str(home.existing_folder(value))
    answer = change(name, value)
    yield answer
    say(f"{name} = {answer.settings[0].text}")
    if answer.note:
        say(answer.note)


@app.command(
    "path",
    ("autoresearch node config path", "the settings file"),
    ("$EDITOR $(autoresearch node config path)", "edit it by hand"),
    ("autoresearch node config path --json", "the same for a program"),
    see="node config show, node paths",
)
def path() -> Answered:
    """The path of the settings file, whether it exists or not."""
    file = home.paths().settings
    yield ConfigAnswer(file=str(file), settings=[])
    print_text(str(file))


@app.command(
    "edit",
    ("autoresearch node config edit", "all settings in $EDITOR, with what they mean"),
    ("EDITOR=nano autoresearch node config edit", "in another editor"),
    ("autoresearch node config schema > settings.schema.json", "for an editor that checks while you type"),
    see="node config set, node config show, node setup",
)
def edit() -> None:
    """Open the settings file in an editor. What is wrong in it is said, and nothing is changed."""
    file = home.paths().settings
    was = _texts(load_settings(file, home.environment())[0])
    text = file.read_text("utf-8") if file.exists() else _all_commented()
    while True:
        try:
            edited = click.edit(text, extension=".toml")
        except click.ClickException as error:
            hint = "another one: EDITOR=nano autoresearch node config edit; or: autoresearch node config set NAME VALUE"
            raise Refused(f"the editor failed, and nothing is changed: {error.format_message()}", hint=hint) from error
        if edited is None or edited == text:
            say("nothing is changed")
            return
        try:
            changed = _changed(edited, was)
            break
        except (UsageError, NotFound, Refused) as error:
            if not sys.stdin.isatty():
                raise
            say(f"{error}" + (f" → {error.hint}" if error.hint else ""))
            if not typer.confirm("Edit again?", default=True, err=True):
                raise
            text = edited
    write_whole(file, edited)
    answers = [change(name, value) for name, value in changed.items()]
    write_whole(file, edited)  # as it was typed, also where a setting went back to its default
    for answer in answers:
        say(f"{answer.settings[0].name} = {answer.settings[0].text}" + (f": {answer.note}" if answer.note else ""))
    if not answers:
        say("no value is changed")


@app.command(
    "schema",
    ("autoresearch node config schema", "the settings as JSON Schema: types, ranges, meanings, defaults"),
    ("autoresearch node config schema > settings.schema.json", "for an editor that checks while you type"),
    ("autoresearch node config schema | jq '.\"$defs\".Work.properties | keys'", "the names of a section"),
    see="node config edit, node config show",
)
def schema() -> None:
    """The settings file as JSON Schema."""
    print_text(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(Settings)), indent=2).decode())


def _all_commented() -> str:
    """A settings file that sets nothing, and says what can be set."""
    lines = ["# Settings of this node. Remove the # in front of what you want to change."]
    section = ""
    for setting in current().settings:
        name, _, key = setting.name.partition(".")
        if name != section:
            section = name
            lines += ["", f"[{name}]"]
        value = msgspec.json.encode(setting.value).decode()
        lines += [f"# {setting.description}", f"# {key} = {value}"]
    return "\n".join([*lines, ""])


def _changed(text: str, was: Mapping[str, str]) -> dict[str, str]:
    """The values that a file with this text changes. Raises UsageError, NotFound, Refused where one does not fit."""
    from autoresearch.ask.acts.settings import check_setting

    here_it_is = home.paths().settings
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / here_it_is.name
        file.write_text(text, "utf-8")
        try:
            now = _texts(load_settings(file, home.environment())[0])
        except UsageError as error:
            sentence, hint = (each.replace(str(file), here_it_is.name) for each in (str(error), error.hint))
            raise UsageError(sentence, hint=hint) from None
    changed = {name: value for name, value in now.items() if value != was[name]}
    for name, value in changed.items():
        check_setting(name, value)
    return changed


def _texts(settings: Settings) -> dict[str, str]:
    """Every setting as it is typed."""
    return {
        f"{section}.{key}": str(value).lower() if isinstance(value, bool) else str(value)
        for section, values in msgspec.to_builtins(settings).items()
        for key, value in values.items()
    }


def change(name: str, value: str) -> ConfigAnswer:
    """Change one setting: by the daemon where one runs, else in the file. Raises UsageError, NotFound, Refused."""
    request = SettingRequest(name=name, value=value)
    try:
        return home.client().ask(Node.set_setting, request)
    except DaemonNotRunning:
        from autoresearch.ask.acts.settings import change_setting

        return change_setting(home.paths().settings, home.environment(), request)


def current() -> ConfigAnswer:
    """The settings in force."""
    from autoresearch.ask.acts.settings import settings_answer

    return settings_answer(home.paths().settings, home.environment())
