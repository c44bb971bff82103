"""A program as one text, whatever its files are, what names it, and what it printed about itself. Pure.

A program of one ``train.py`` is the text of that file. Any other program has each file behind a line with its name.
Such a text can't begin a Python program, so no text has two meanings. The metric of some tasks is read from the output.

Names of files that tools obey where they find them, and that nothing of a participant may therefore have.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath

from autoresearch.errors import UsageError
from autoresearch.task.source import canonical_source
from autoresearch.text import MAXIMIZE, MINIMIZE

ENTRY = "train.py"
MAX_PROGRAM_FILES = 16
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
# A file's name is as long as a record's names at most, with the folders before it.
_NAME_CHARACTERS = 64
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_FILE_NAME = rf"{_PART}(?:/{_PART})*"

# In small letters. Coding agents take orders from such files; Python, pytest, make and editors run what stands there.
_TOOL_FILES = (
    ".*",  # .git*, .vscode, .envrc, .cursorrules, .mcp.json, .github, …
    *("agents*.md", "agent.md", "claude*.md", "gemini*.md", "qwen*.md", "codex*.md", "copilot*.md", "cursor*.md"),
    *("conventions.md", "crush.md", "warp.md", "skill.md", "llms*.txt", "mcp.json", "opencode.json*"),
    *("*.instructions.md", "*.prompt.md", "*.agent.md", "*.chatmode.md", "*.mdc"),
    *("conftest.py", "sitecustomize.py", "usercustomize.py", "setup.py", "setup.cfg", "pyproject.toml", "*.pth"),
    *("tox.ini", "pytest.ini", "pytest.toml", "mypy.ini", "ruff.toml", "uv.toml", "pip.conf", "pipfile*", "pyvenv.cfg"),
    *("noxfile.py", "ipython_config.py", "jupyter*_config.py", "jupyter*_config.json"),
    *("makefile*", "gnumakefile", "bsdmakefile", "cmakelists.txt", "cmakepresets.json", "cmakeuserpresets.json"),
    *("justfile", "taskfile.y*ml", "rakefile", "gemfile", "sconstruct", "wscript", "build.rs", "cargo.toml"),
    *("package.json", "dockerfile*", "containerfile*", "compose.y*ml", "docker-compose*.y*ml", "devcontainer.json"),
    *("procfile", "vagrantfile", "jenkinsfile", "*.code-workspace", "*.desktop", "desktop.ini", "autorun.inf"),
)

_MARK = "==== autoresearch file: "
_BOUNDARY = re.compile(re.escape(_MARK) + rf"({_FILE_NAME}) ====")
_DOMAIN = b"autoresearch/program/1\n"


def is_tool_file(path: str) -> bool:
    """Whether a part of a path is a name that a tool obeys, such as ``AGENTS.md`` or ``Makefile``, in any spelling."""
    parts = unicodedata.normalize("NFKC", path).casefold().split("/")
    return any(fnmatchcase(part.rstrip(". "), pattern) for part in parts for pattern in _TOOL_FILES)


def check_file_name(name: str) -> None:
    """Raises UsageError for a name that no file of a task or a program may have; of a file in folders it has these."""
    if not re.fullmatch(_FILE_NAME, name) or len(name) > _NAME_CHARACTERS:
        hint = f"use letters, digits, dots, - and _, and no more than {_NAME_CHARACTERS} with its folders"
        raise UsageError(f"{name[:80]!r} is no plain file name", hint=hint)
    if is_tool_file(name):
        raise UsageError(
            f"tools obey a file with the name {name}, so no task or program has one", hint="give the file another name"
        )


def check_file_names(names: Iterable[str]) -> None:
    """Raises UsageError as :func:`check_file_name`, and where a name is a file's and that of a folder of another."""
    files = frozenset(names)
    for name in files:
        check_file_name(name)
        if clash := next((str(folder) for folder in PurePosixPath(name).parents if str(folder) in files), ""):
            raise UsageError(f"{clash} is a file, and the folder of {name}", hint="give one of them another name")


def join_files(files: Mapping[str, str]) -> str:
    """The text of a program from its files, in their order; each but a lone ``train.py`` ends with a newline.

    Raises UsageError where a file has a line that only boundaries may have, or a name that tools obey.
    """
    if list(files) == [ENTRY]:
        return files[ENTRY]
    check_file_names(files)
    parts = []
    for name, content in files.items():
        if content.startswith(_MARK) or f"\n{_MARK}" in content:
            raise UsageError(f"{name} has a line that begins with {_MARK.strip()!r}", hint="change that line")
        parts.append(f"{_MARK}{name} ====\n{content}" + ("\n" if content and not content.endswith("\n") else ""))
    return "".join(parts)


def is_lone(text: str) -> bool:
    """Whether a program is a lone ``train.py``."""
    return not text.startswith(_MARK)


def split_program(text: str) -> dict[str, str]:
    """The files of a program by name, in their order. Raises UsageError where the text is no program."""
    if is_lone(text):
        return {ENTRY: text}
    files: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if not line.startswith(_MARK):
            lines.append(line)
            continue
        boundary = _BOUNDARY.fullmatch(line)
        if boundary is None or boundary[1] in files:
            raise UsageError(f"the program has a boundary line that names no file of its own: {line[:80]!r}")
        lines = files[boundary[1]] = []
    check_file_names(files)
    if list(files) == [ENTRY] or len(files) > MAX_PROGRAM_FILES:
        raise UsageError(f"the program has {len(files)} files behind boundary lines, which is no valid form")
    *others, last = files
    return {**{name: "".join(f"{line}\n" for line in files[name]) for name in others}, last: "\n".join(files[last])}


@lru_cache(maxsize=64)
def source_digest(text: str) -> bytes:
    """What names a program: formatting does not count. Raises UsageError when a ``.py`` file is not Python.

    Of a lone ``train.py`` it is the SHA-256 of :func:`canonical_source`. Otherwise it is that of all names with the
    digest of each file: of other than Python files without the ends of lines, blanks before them and empty last lines.
    """
    if is_lone(text):
        return hashlib.sha256(canonical_source(text)).digest()
    files = split_program(text)
    parts = (name.encode() + b"\0" + _file_digest(name, files[name]) for name in sorted(files))
    return hashlib.sha256(_DOMAIN + b"".join(parts)).digest()


def _file_digest(name: str, content: str) -> bytes:
    if not name.endswith(".py"):
        lines = "\n".join(line.rstrip(" \t\r") for line in content.split("\n")).rstrip("\n")
        return hashlib.sha256(lines.encode()).digest()
    try:
        return hashlib.sha256(canonical_source(content)).digest()
    except UsageError as error:
        raise UsageError(f"{name}: {error}", hint=error.hint) from error


MAX_KEYS = 64  # as many as a run record holds
MAX_KEY_CHARACTERS = 64
# What a program's result is called, the likelier names first; of some of them more is better.
_RESULTS = (
    *("val_bpb", "val_", "valid_", "validation_", "test_"),
    *("accuracy", "acc", "f1", "auc", "score", "reward", "r2", "loss", "perplexity", "ppl"),
    *("rmse", "mse", "mae", "error", "latency", "throughput", "time"),
)
_MORE = ("accuracy", "acc", "f1", "auc", "score", "reward", "return", "r2", "throughput", "precision", "recall")
_LESS = ("loss", "error", "bpb", "latency", "time")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")

_KEY = r"(?P<key>[A-Za-z_][A-Za-z0-9_./ -]{0,63}?)"
_NUMBER = r"(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*|(?=\.\d))(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_UNIT = r"(?:[A-Za-z%][A-Za-z0-9%/^*.-]*)?"
# A number among other words, as in "epoch 3 | train loss 2.1, val acc: 0.9", also where Python prints a dict, a number
# of NumPy or a tensor. Bounded: a stranger's program prints it.
_QUALIFIER = r"(?:train(?:ing)?|val(?:id(?:ation)?)?|test|eval(?:uation)?|dev|best|final|mean|average|avg)"
_WRAPPED = r"(?:'|(?:np\.\w{1,16}|tensor|array)\()?"
_AFTER = r"(?=\s|$|[';|)\]}]|,(?!\d)|\.(?!\d))"
_AMONG_WORDS = re.compile(
    rf"(?<![\w./-])(?P<key>(?:{_QUALIFIER} {{1,4}}){{0,3}}[A-Za-z_][A-Za-z0-9_./-]{{0,63}})"
    rf"'?(?: {{0,8}}[:=] {{0,8}}| {{1,8}}){_WRAPPED}{_NUMBER}{_UNIT}{_AFTER}",
    re.IGNORECASE,
)
_LONGEST_LINE = 1000
_NO_NUMBER = re.compile(rf"\s*{_KEY}\s*[:=]\s*[-+]?(?:nan|inf|infinity)\s*", re.IGNORECASE)
_LINE = re.compile(rf"\s*{_KEY}\s*[:=]\s*{_NUMBER}\s*{_UNIT}\s*")


def parse_summary(text: str, metric_name: str) -> dict[str, float]:
    """The numbers that a program printed: lines ``key: number``, or JSON objects of numbers, one a line.

    Those after the last line that is exactly ``---``, as in karpathy/autoresearch; without such a line all of them.
    Spaces, a unit after the number and commas between thousands are tolerated; ``test accuracy`` is ``test_accuracy``.
    Of a key given twice, the later number holds. Where no such line has ``metric_name``, a line counts that names it
    among other words, such as ``epoch 3, val loss 2.1``. Empty when there is no finite ``metric_name`` at all.
    """
    numbers: dict[str, float] = {}
    for key, value in _printed(text):
        if len(numbers) < MAX_KEYS or key in {metric_name, *numbers}:
            numbers[key] = value
    if metric_name not in numbers:
        numbers |= {key: value for key, value in _among_words(text) if key == metric_name}
    return numbers if metric_name in numbers else {}


def guess_metric(text: str) -> tuple[str, float] | None:
    """The number that a program most likely wants to be judged by: one with a well-known name, else the last one.

    With a well-known name it may stand among other words.
    """
    values = {key: value for key, value in _printed(text) if _NAME.fullmatch(key)}
    among = dict(_among_words(text))
    for result in _RESULTS:
        for found in (values, among):
            for key in reversed(found):
                if re.search(rf"(?<![a-z]){result}", key.lower()):  # no eval_iters where val_ is meant
                    return key, found[key]
    return next(reversed(values.items()), None)


def printed_no_number(text: str) -> str:
    """The last line that names a result which is no number, such as ``loss: nan``; empty where there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if _NO_NUMBER.fullmatch(line)), "")


def guess_direction(metric_name: str) -> str:
    """Whether less or more of a metric is better, by its name."""
    name = metric_name.lower()
    is_more = any(known in name for known in _MORE) and not any(known in name for known in _LESS)
    return MAXIMIZE if is_more else MINIMIZE


def _printed(text: str) -> Iterator[tuple[str, float]]:
    for line in _lines(text):
        if line.lstrip().startswith("{"):
            yield from _in_json(line)
        elif match := _LINE.fullmatch(line):
            yield from _finite(match)


def _among_words(text: str) -> Iterator[tuple[str, float]]:
    for line in _lines(text):
        if len(line) <= _LONGEST_LINE and not line.lstrip().startswith('{"'):
            for match in _AMONG_WORDS.finditer(line):
                yield from _finite(match)


def _lines(text: str) -> list[str]:
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.rstrip() == "---"]
    return lines[starts[-1] + 1 :] if starts else lines


def _finite(match: re.Match[str]) -> Iterator[tuple[str, float]]:
    value = float(match["number"].replace(",", "").replace("_", ""))
    if math.isfinite(value):
        yield "_".join(match["key"].split()), value


def _in_json(line: str) -> Iterator[tuple[str, float]]:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return
    for key, value in document.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
            yield str(key)[:MAX_KEY_CHARACTERS], float(value)
