"""What a parameter's text means, and whether it is of the type that the component's constructor asks for. Pure."""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable

import msgspec

from autoresearch.errors import UsageError
from autoresearch.sanitise import one_line

_WORDS: dict[str, object] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WORDS["none"] = None
_NAMES: dict[object, str] = {int: "a whole number", float: "a number", bool: "yes or no", str: "text"}


class Setting(msgspec.Struct, frozen=True):
    """A parameter's value and where it was written (``agent.ini, line 7``). A ``plain`` value is text as typed."""

    value: typing.Any
    origin: str
    plain: bool = False


def value_of(text: str) -> object:
    """What a text means: a JSON value, yes and no, none; else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def arguments(component: str, build: Callable[..., object], settings: dict[str, Setting]) -> dict[str, object]:
    """The keyword arguments of a constructor.

    Raises:
        UsageError: it takes no such argument, the value is of another type, or one that it needs is missing.
    """
    parameters = inspect.signature(build).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    try:
        hints = typing.get_type_hints(build.__init__ if inspect.isclass(build) else build)
    except (NameError, TypeError, AttributeError):
        hints = {}
    named = {
        name.lower(): name
        for name, each in parameters.items()
        if each.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    found: dict[str, object] = {}
    for key, setting in settings.items():
        name = named.get(key.lower())
        if name is None and not takes_all:
            known = ", ".join(named.values())
            hint = f"it takes {known}" if known else "it takes no parameters"
            raise UsageError(f"{setting.origin}: {component} has no parameter {one_line(key, 40)}", hint=hint)
        hint_type = hints.get(name or "", _type_of_default(parameters[name].default) if name else None)
        found[name or key] = _converted(setting, hint_type, f"{component}: {name or key}")
    for name, each in parameters.items():
        if name in named.values() and name not in found and each.default is inspect.Parameter.empty:
            raise UsageError(
                f"{component} needs a value for {name}", hint=f"write {name} = … below its section in agent.ini"
            )
    return found


def _type_of_default(default: object) -> object:
    return type(default) if type(default) in _NAMES else None


def _converted(setting: Setting, wanted: object, what: str) -> object:
    value = value_of(setting.value) if setting.plain else setting.value
    if wanted is None:
        return value
    if wanted is str and setting.plain:
        return value if isinstance(value, str) else setting.value
    try:
        return msgspec.convert(value, typing.cast("type[object]", wanted))
    except msgspec.ValidationError:
        name = _NAMES.get(wanted) or getattr(wanted, "__name__", str(wanted))
        shown = one_line(str(setting.value), 40)
        raise UsageError(f"{setting.origin}: {what} must be {name}, not “{shown}”") from None
    except TypeError:  # a type that says nothing about text in a file
        return value
