"""The text of ``agent.ini``: its sections and keys with their lines. Edits leave all other lines alone. Pure.

Also what a parameter's text means, and whether it is of the type that the component's constructor asks for. A line that
begins with a blank goes on with the value above it. ``#`` and ``;`` begin a comment: at the start of a line, or after a
blank.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable

import msgspec

from autoresearch.errors import UsageError
from autoresearch.text import one_line, read_json

_WORDS: dict[str, object] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_WORDS["none"] = None
_NAMES: dict[object, str] = {int: "a whole number", float: "a number", bool: "yes or no", str: "text"}


class ParameterValue(msgspec.Struct, frozen=True):
    """A parameter's value and where it was written (``agent.ini, line 7``). A ``plain`` value is text as typed."""

    value: typing.Any
    origin: str
    plain: bool = False


def value_of(text: str) -> object:
    """What a text means: a JSON value, yes and no, none; else the text itself."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return read_json(text)
    except ValueError:
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def arguments(component: str, build: Callable[..., object], settings: dict[str, ParameterValue]) -> dict[str, object]:
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
    values: dict[str, object] = {}
    for key, setting in settings.items():
        name = named.get(key.lower())
        if name is None and not takes_all:
            names = ", ".join(named.values())
            hint = f"it takes {names}" if names else "it takes no parameters"
            raise UsageError(f"{setting.origin}: {component} has no parameter {one_line(key, 40)}", hint=hint)
        hint_type = hints.get(name or "", _type_of_default(parameters[name].default) if name else None)
        values[name or key] = _converted(setting, hint_type, f"{component}: {name or key}")
    for name, each in parameters.items():
        if name in named.values() and name not in values and each.default is inspect.Parameter.empty:
            raise UsageError(
                f"{component} needs a value for {name}", hint=f"write {name} = … below its section in agent.ini"
            )
    return values


def _type_of_default(default: object) -> object:
    return type(default) if type(default) in _NAMES else None


def _converted(setting: ParameterValue, expected: object, what: str) -> object:
    value = value_of(setting.value) if setting.plain else setting.value
    if expected is None:
        return value
    if expected is str and setting.plain:
        return value if isinstance(value, str) else setting.value
    try:
        return msgspec.convert(value, typing.cast("type[object]", expected))
    except msgspec.ValidationError:
        name = _NAMES.get(expected) or getattr(expected, "__name__", str(expected))
        excerpt = one_line(str(setting.value), 40)
        raise UsageError(f"{setting.origin}: {what} must be {name}, not “{excerpt}”", hint="correct it") from None
    except TypeError:  # a type that says nothing about text in a file
        return value


_SECTION = re.compile(r"\[([^\[\]]+)\]\s*(?:[#;].*)?")
_OPTION = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:]\s*(.*)")
_COMMENT = re.compile(r"(?:^|\s)[#;].*$")


class IniItem(msgspec.Struct, frozen=True):
    """A value as it is written, and the number of its line, from 1."""

    text: str
    line: int


class IniSection(msgspec.Struct, frozen=True):
    """A section: its title as it is written, the number of its line, its keys in their order."""

    title: str
    line: int
    items: dict[str, IniItem]


class Ini:
    """One file of sections. Titles and keys are found whatever their case. ``name`` stands in front of errors."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self._lines = text.splitlines()
        self.sections = self._read()

    @property
    def text(self) -> str:
        """The whole file."""
        return "".join(f"{line}\n" for line in self._lines)

    def section(self, title: str) -> IniSection | None:
        """The section of this title."""
        return next((each for each in self.sections if each.title.lower() == title.lower()), None)

    def set(self, title: str, key: str, value: str) -> None:
        """Give a key its value, in its section; both are added where they are missing."""
        section = self.section(title)
        if section is None:
            if self._lines and self._lines[-1].strip():
                self._lines.append("")
            self._lines += [f"[{title}]", f"{key} = {value}"]
        elif item := section.items.get(key.lower()):
            line = self._lines[item.line - 1]
            comment = _comment_of(line)
            name = line.partition("=")[0].partition(":")[0].rstrip()
            self._lines[item.line - 1 : self._end_of(item.line)] = [f"{name} = {value}{comment}"]
        else:
            last = max((self._end_of(item.line) for item in section.items.values()), default=section.line)
            self._lines.insert(last, f"{key} = {value}")
        self.sections = self._read()

    def insert_section(self, title: str, *, before: str = "") -> None:
        """Add an empty section: above another one and the comments over that, or at the end."""
        following = self.section(before) if before else None
        line = following.line - 1 if following else len(self._lines)
        while following and line and self._lines[line - 1].lstrip()[:1] in ("#", ";"):
            line -= 1
        gap = [""] if line and self._lines[line - 1].strip() else []
        self._lines[line:line] = [*gap, f"[{title}]", *([""] if following else [])]
        self.sections = self._read()

    def remove(self, title: str, key: str = "") -> None:
        """Take out a key, or the whole section with the comments inside it; nothing where there is none."""
        section = self.section(title)
        if section is None:
            return
        if key:
            if item := section.items.get(key.lower()):
                del self._lines[item.line - 1 : self._end_of(item.line)]
        else:
            following = [each.line - 1 for each in self.sections if each.line > section.line]
            end = min(following, default=len(self._lines))
            while end > section.line and following and self._lines[end - 1].lstrip()[:1] in ("#", ";"):
                end -= 1  # a comment above the next section is about that one
            del self._lines[section.line - 1 : end]
            while self._lines and not self._lines[-1].strip():
                self._lines.pop()
        self.sections = self._read()

    def error(self, line: int, sentence: str, *, hint: str = "") -> UsageError:
        """What is wrong at a line, as an error."""
        return UsageError(f"{self.name}, line {line}: {sentence}", hint=hint)

    def _end_of(self, line: int) -> int:
        """The number of the last line of the value that begins at ``line``."""
        while line < len(self._lines) and self._lines[line][:1].isspace() and self._lines[line].strip():
            line += 1
        return line

    def _read(self) -> list[IniSection]:
        sections: list[IniSection] = []
        key = ""
        for number, line in enumerate(self._lines, 1):
            text = line.strip()
            if not text or text[0] in "#;":
                continue
            if line[0].isspace() and key:
                items = sections[-1].items
                items[key] = IniItem(f"{items[key].text} {_COMMENT.sub('', line).strip()}".strip(), items[key].line)
            elif match := _SECTION.fullmatch(text):
                key = ""
                title = match[1].strip()
                if first := next((each for each in sections if each.title.lower() == title.lower()), None):
                    raise self.error(number, f"the section [{title}] is there twice; the first is in line {first.line}")
                sections.append(IniSection(title, number, {}))
            elif match := _OPTION.fullmatch(text):
                if not sections:
                    raise self.error(
                        number, "a key before the first section", hint="write a line such as [Agent] above"
                    )
                key = match[1].lower()
                if known_item := sections[-1].items.get(key):
                    raise self.error(number, f"{match[1]} is there twice; the first is in line {known_item.line}")
                sections[-1].items[key] = IniItem(_value(match[2]), number)
            else:
                excerpt = one_line(text, 40)
                raise self.error(
                    number, f"“{excerpt}” is neither [a section] nor key = value", hint="begin a comment by #"
                )
        return sections


def _value(text: str) -> str:
    """A value without the comment behind it; quotes protect a # in it."""
    if text[:1] in ('"', "'") and (end := text.find(text[0], 1)) > 0:
        return text[: end + 1]
    return _COMMENT.sub("", text).strip()


def _comment_of(line: str) -> str:
    """The comment behind a value, with the blanks before it."""
    text = line.partition("=")[2]
    value = _value(text.strip())
    rest = text.strip()[len(value) :]
    return rest if rest.strip() else ""
