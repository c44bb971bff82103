"""Settings shown and changed: by a command, by a running node, by its page.

What a value must be beyond its type is refused when it is set, not when the daemon starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from autoresearch import settings
from autoresearch.ask.node import ConfigAnswer, Setting
from autoresearch.ask.requests import SettingRequest
from autoresearch.errors import AutoresearchError, CannotRunHere, UsageError
from autoresearch.extensions import ATTESTORS, NOTICES, extension_names
from autoresearch.hours import parse_hours
from autoresearch.paths import typed_path
from autoresearch.run.executors import HERE, executor_class
from autoresearch.run.sandbox.cards import card_of, named_devices
from autoresearch.task.loading import load_task
from autoresearch.text import did_you_mean
from autoresearch.trust.manifest import check_listen_address, check_peer_address

FROM_NOW_ON = "the daemon goes by it from now on"
AT_NEXT_START = "the daemon goes by it from its next start: autoresearch down && autoresearch up"


def settings_answer(file: Path, environment: Mapping[str, str]) -> ConfigAnswer:
    """The settings in force. Raises UsageError where the file is broken."""
    values, origins = settings.load_settings(file, environment)
    return ConfigAnswer(
        file=str(file), settings=[_setting(values, name, origins[name]) for name in settings.setting_types()]
    )


def change_setting(file: Path, environment: Mapping[str, str], request: SettingRequest) -> ConfigAnswer:
    """Change one setting in the file. The answer has it as it is in force now.

    Raises:
        UsageError: there is no such setting, or the value does not fit.
        NotFound: it names a folder that does not exist, or an executor that no package has.
        Refused: that executor is broken.
    """
    name, value = request.name, request.value
    if name not in settings.setting_types():
        raise settings.unknown_setting(name, where="config set")
    check_setting(name, value)
    settings.write_setting(file, name, value)
    answer = settings_answer(file, environment)
    [changed] = [setting for setting in answer.settings if setting.name == name]
    note = ""
    if changed.origin == "environment":
        note = f"{changed.variable} is set and wins over the file"
    elif name == "work.device":
        note = _missing(value)
    return ConfigAnswer(file=answer.file, settings=[changed], note=note)


def check_setting(name: str, value: str) -> None:
    """Raise UsageError, NotFound or Refused where a value of the right type can't be this setting's."""
    if check := _CHECKS.get(name):
        check(value)


def _missing(devices: str) -> str:
    for device in named_devices(devices):
        try:
            card_of(device)
        except CannotRunHere as error:
            return f"{error}: no run starts on it"
    return ""


def _setting(values: settings.Settings, name: str, origin: str) -> Setting:
    section, _, key = name.partition(".")
    value = msgspec.to_builtins(values)[section][key]
    if not isinstance(value, bool | int | float | str):
        raise AutoresearchError(f"the setting {name} has a value that can't be shown")
    return Setting(
        name=name,
        value=value,
        origin=origin,
        description=settings.setting_types()[name][1],
        variable=settings.environment_variable(name),
        live=name in settings.LIVE_SETTINGS,
    )


def _task(value: str) -> None:
    if value:
        load_task(typed_path(value))


def _events(value: str) -> None:
    for name in map(str.strip, value.split(",")):
        if name not in settings.NOTIFY_EVENTS:
            hint = did_you_mean(name, settings.NOTIFY_EVENTS) or f"there are: {', '.join(settings.NOTIFY_EVENTS)}"
            raise UsageError(f"notify.events: there is no event {name!r} to tell of", hint=hint)


def _ways(value: str) -> None:
    settings.parse_setting("notify.extensions", value, settings.setting_types()["notify.extensions"][0])
    for name in settings.Notify(extensions=value).extension_addresses():
        _registered("notify.extensions", NOTICES, name)


def _registered(setting: str, group: str, name: str) -> None:
    names = extension_names(group)
    if name not in names:
        hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}"
        raise UsageError(f"{setting}: no installed package registers {name!r} in {group}", hint=hint)


def _listen(value: str) -> None:
    for address in filter(None, map(str.strip, value.split(","))):
        check_listen_address(address, "network.listen")


def _bootstrap(value: str) -> None:
    for address in filter(None, map(str.strip, value.split(","))):
        check_peer_address(address, "network.bootstrap")


def _executor(name: str) -> None:
    if name != HERE:
        executor_class(name)


_CHECKS: dict[str, Callable[[str], object]] = {
    "work.task": _task,
    "work.device": named_devices,
    "executor.name": _executor,
    "work.hours": parse_hours,
    "network.hours": parse_hours,
    "notify.events": _events,
    "notify.extensions": _ways,
    "attestor.extension": lambda value: _registered("attestor.extension", ATTESTORS, value),
    "network.listen": _listen,
    "network.bootstrap": _bootstrap,
    "llm.fields": lambda value: settings.LanguageModel(fields=value).request_fields(),
}
