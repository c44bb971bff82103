"""Edits that a model answers with as JSON or as a call of a tool, whatever it calls their parts. Pure.

Models know the tools of the coding agents that they were trained with: ``str_replace`` with ``old_str`` and
``new_str``, ``write_file`` with ``path`` and ``content``, ``apply_patch`` with a patch. A call is the JSON of its
arguments, in OpenAI's form, in Anthropic's, or in text between tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from autoresearch.propose.program.hunks import Hunk, block_hunk, is_diff_line, read_diff

_SEARCH = frozenset(
    (
        "search",
        "old",
        "old_str",
        "old_string",
        "old_text",
        "old_code",
        "oldtext",
        "oldstring",
        "before",
        "find",
        "original",
        "search_text",
    )
)
_REPLACE = frozenset(
    (
        "replace",
        "new",
        "new_str",
        "new_string",
        "new_text",
        "new_code",
        "newtext",
        "newstring",
        "after",
        "replacement",
        "updated",
        "replace_text",
    )
)
_WHOLE = frozenset(
    ("content", "contents", "program", "source", "code", "file_text", "new_content", "file_content", "full_text")
)
_PATCH = frozenset(("diff", "patch", "input", "unified_diff", "patch_text"))
_FILE = frozenset(("file", "path", "file_path", "filename", "file_name", "filepath", "target_file", "name"))
_FIELDS = {
    "title": "TITLE", "hypothesis": "HYPOTHESIS", "rationale": "HYPOTHESIS", "expect": "EXPECT", "expected": "EXPECT",
    "insight": "INSIGHT", "plan": "PLAN",
}  # fmt: skip
# So many values are looked at, so deep, and JSON is looked for in so many places of a text.
_VALUES, _LEVELS, _PLACES = 2000, 12, 40
_BEGIN = re.compile(r"(?:^|[>:`])[ \t]{0,20}[{\[]", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)


@dataclass(slots=True)
class JsonEdits:
    """What JSON in an answer consists of. ``wholes`` are whole files with their names, which may be empty."""

    hunks: list[Hunk] = field(default_factory=list)
    wholes: list[tuple[str, str]] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    call: str = ""
    """The name of the tool that it calls, or empty."""


def json_edits(text: str) -> JsonEdits | None:
    """The edits in the JSON of a text, and in its calls of tools; None where it has neither."""
    values = [*_parsed(text), *_xml_calls(text)]
    if not values:
        return None
    edits, left = JsonEdits(), [(value, "", 0) for value in reversed(values)]
    for _ in range(_VALUES):
        if not left:
            break
        value, file, level = left.pop()
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):  # OpenAI has the arguments of a call as text
            left += [(inner, file, level + 1) for inner in _parsed(value)] if level < _LEVELS else []
        elif isinstance(value, list):
            left += [(inner, file, level + 1) for inner in reversed(value)] if level < _LEVELS else []
        elif isinstance(value, dict):
            left += [(inner, name, level + 1) for inner, name in _read(value, file, edits)] if level < _LEVELS else []
    return edits


def _read(value: dict[str, object], file: str, edits: JsonEdits) -> list[tuple[object, str]]:
    """Take the edit out of one object. Returns what is left to look at in it, the last first, with its file."""
    plain = {key.lower().replace("-", "_"): _joined(inner) for key, inner in value.items()}
    texts = {key: text for key, text in plain.items() if isinstance(text, str)}
    named = next((texts[key] for key in texts if key in _FILE and "." in texts[key] and "\n" not in texts[key]), "")
    file = named.removeprefix("./").lstrip("/")[:300] or file
    if "name" in texts and plain.keys() & {"arguments", "input", "parameters"}:
        edits.call = texts["name"][:64]
    for key, text in plain.items():
        if key in _FIELDS and isinstance(text, str | int | float):
            edits.fields.setdefault(_FIELDS[key], str(text))
    search = next((key for key in texts if key in _SEARCH), "")
    replace = next((key for key in texts if key in _REPLACE), "")
    taken = {search, replace} if search and replace else set[str]()
    if taken:
        name = f"edit {len(edits.hunks) + 1} of the JSON"
        edits.hunks.append(block_hunk(name, texts[search], texts[replace], part_of_line=True)._replace(file=file))
    for key, text in texts.items():
        lines = text.split("\n")
        if key in taken or (len(lines) < 2 and not is_diff_line(text)):
            continue
        is_file = "." in key and "\n" not in key
        if key in _PATCH and any(map(is_diff_line, lines)):
            edits.hunks += read_diff(lines)
        elif (key in _WHOLE or is_file) and not taken:
            edits.wholes.append((key if is_file else file, text))
        else:
            continue
        taken = taken | {key}
    if file and (taken or edits.hunks):
        edits.files.add(file)
    return [(inner, file) for key, inner in reversed(value.items()) if key.lower().replace("-", "_") not in taken]


def _joined(value: object) -> object:
    """A list of lines as the text that it is."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(line.rstrip("\n") for line in value)
    return value


def _parsed(text: str) -> Iterator[object]:
    """The JSON values in a text: where a line begins with one, alone or behind a tag."""
    at, tries = 0, 0
    while tries < _PLACES and at < len(text):
        begin = _BEGIN.search(text, at)
        if begin is None:
            return
        tries += 1
        try:
            value, at = _DECODER.raw_decode(text, begin.end() - 1)
        except (ValueError, RecursionError):
            at = begin.end()
            continue
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value)):
            yield value


def _xml_calls(text: str) -> Iterator[Mapping[str, object]]:
    """The calls that some models write as tags: ``<parameter name="old_str">…</parameter>`` or ``<parameter=…>``."""
    for call in text.split("<invoke")[1:] or text.split("<function=")[1:]:
        name, _, body = call.partition(">")
        arguments: dict[str, object] = {}
        for part in body.split("<parameter")[1:]:
            key, _, rest = part.partition(">")
            inner, closed, _ = rest.partition("</parameter>")
            if closed:
                arguments[key.strip().removeprefix("name=").removeprefix("=").strip("\"'")] = inner.strip("\n")
        if arguments:
            yield {"name": name.strip().removeprefix("name=").strip("\"'"), "arguments": arguments}
