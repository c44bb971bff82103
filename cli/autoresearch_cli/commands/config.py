"""``config``: show and change settings.

What a value must be beyond its type is refused when it is set, not when the daemon starts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from autoresearch.errors import AutoresearchError, CannotRunHere
from autoresearch.run.sandbox.cards import card_of, named_devices
from autoresearch.settings import (
    Settings,
    environment_variable,
    load_settings,
    setting_types,
    unknown_setting,
    write_setting,
)
from autoresearch_cli import here
from autoresearch_cli.catalogue import Json, command_app, examples
from autoresearch_cli.models import ConfigAnswer, Setting
from autoresearch_cli.rendering.lists import setting_columns, setting_text
from autoresearch_cli.rendering.output import paged, print_json, print_list, print_text, say


def check_setting(name: str, value: str) -> None:
    """Refuse with a UsageError, or NotFound, a value that no daemon could start with."""
    check = _CHECKS.get(name)
    if check is not None:
        check(value)


def _task(value: str) -> None:
    from autoresearch.task.loading import load_task

    if value:
        load_task(here.existing_folder(value))


def _device(value: str) -> None:
    named_devices(value)


def _listen(value: str) -> None:
    from autoresearch.trust.manifest import check_listen_address

    for address in filter(None, map(str.strip, value.split(","))):
        check_listen_address(address, "network.listen")


def _bootstrap(value: str) -> None:
    from autoresearch.trust.manifest import check_peer_address

    for address in filter(None, map(str.strip, value.split(","))):
        check_peer_address(address, "network.bootstrap")


_CHECKS: dict[str, Callable[[str], None]] = {
    "work.task": _task,
    "work.device": _device,
    "network.listen": _listen,
    "network.bootstrap": _bootstrap,
}


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
        print_text(setting_text(found[0].value))


@app.command(
    name="set",
    epilog=examples(
        ("autoresearch node config set work.workers 2", "train two runs at a time"),
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
    """Change one setting in the settings file. The daemon reads it when it starts."""
    check_setting(name, value)
    write_setting(here.paths().settings, name, value)
    answer = current()
    changed = [setting for setting in answer.settings if setting.name == name]
    if json:
        print_json(ConfigAnswer(file=answer.file, settings=changed))
        return
    say(f"{name} = {setting_text(changed[0].value)}")
    for device in named_devices(value) if name == "work.device" else ():
        try:
            card_of(device)
        except CannotRunHere as error:
            say(f"{error}: no run starts on it")
    if changed[0].origin == "environment":
        say(f"→ {changed[0].variable} is set and wins over the file")
    elif here.paths().socket.exists():
        say("→ the daemon reads it when it starts: autoresearch down && autoresearch up")


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
    file = here.paths().settings
    values, origins = load_settings(file, here.environment())
    return ConfigAnswer(file=str(file), settings=[_setting(values, name, origins[name]) for name in setting_types()])


def _setting(values: Settings, name: str, origin: str) -> Setting:
    section, _, key = name.partition(".")
    value = msgspec.to_builtins(values)[section][key]
    if not isinstance(value, bool | int | float | str):
        raise AutoresearchError(f"the setting {name} has a value that can't be shown")
    about = setting_types()[name][1]
    return Setting(name=name, value=value, origin=origin, description=about, variable=environment_variable(name))
