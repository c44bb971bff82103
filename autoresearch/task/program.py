"""A program as one text, whatever its files are, and what names it. Pure.

A program of one ``train.py`` is the text of that file. Any other program has each file behind a line with its name.
Such a text can't begin a Python program, so no text has two meanings.

The forms of names that a participant's files may have: tools obey many other names where they find them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from autoresearch.errors import UsageError
from autoresearch.task.source import canonical_source

ENTRY = "train.py"
MAX_PROGRAM_FILES = 16
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
# A file's name is as long as a record's names at most, with the folders before it.
_NAME_CHARACTERS = 64
_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_FILE_NAME = rf"{_PART}(?:/{_PART})*"

# The forms of names that a file may have; all others are refused, because tools obey more names than any list holds:
# coding agents, make, editors, package managers. In small letters. A stem is what stands before the suffix.
_STEM = re.compile(r"\w[\w ()+,-]*(?<! )")
_FOLDER = re.compile(rf"(?!node_modules$|__pycache__$){_STEM.pattern}(?<!file)")
# Such as gulpfile.js and fabfile.py; a profile and a load_file are none.
_TOOLS_STEM = re.compile(r".+(?<!pro)(?<!data)(?<!log)(?<!text)(?<!in)(?<!out)(?<!_)file")
_CODE = re.compile(
    r"py|pyi|pyx|pxd|c|h|cc|cpp|cxx|hh|hpp|cu|cuh|cl|rs|go|jl|r|java|f90|js|mjs|ts|lua|pl|pm|sh|mk|sql|proto"
)
_OF_TOOLS = re.compile(
    r"(conftest|setup|sitecustomize|usercustomize|tasks|dodo|pavement|hubconf|celeryconfig|hatch_build|pdm_build|"
    r"(jupyter|ipython).*_config)\.pyx?|build\.(rs|xml|pl)|(pom|ivy)\.xml|(cmakelists|llms.*|runtime|packages|apt)\.txt"
)
_DATA = re.compile(
    r"txt|csv|tsv|jsonl|npy|npz|bin|dat|pt|safetensors|onnx|parquet|arrow|h5|pkl|bpe|model|vocab|gz|zip|png|"
    r"jpg|jpeg|svg|wav|xml|stl|obj|mtl|urdf|ipynb|log"
)
# Of settings the first word says what is in them: tools read their own from files that are called after the tool.
_SETTINGS = re.compile(r"toml|json|yaml|yml|ini|cfg")
_SETTINGS_WORDS = re.compile(
    r"config|configs|conf|cfg|settings|options|params|param|parameters|hyperparameters|hyperparams|hparams|"
    r"default|defaults|base|tiny|small|medium|large|xl|debug|smoke|model|models|network|net|arch|architecture|"
    r"data|dataset|datasets|train|training|trainer|eval|evaluation|evaluate|val|validation|test|sweep|search|"
    r"grid|experiment|experiments|exp|run|runs|seed|seeds|agent|component|policy|env|environment|reward|"
    r"optimizer|optim|scheduler|schedule|loss|tokenizer|vocab|vocabulary|merges|tokens|special|added|labels|"
    r"classes|names|mapping|index|meta|metadata|stats|statistics|metrics|result|results|baseline|questions|"
    r"examples|samples|points|input|inputs|output|outputs|weights|checkpoint|generation|preprocessor|world|"
    r"level|levels|map|maze|gpt|bert|llama|resnet|cnn|mlp|rnn|lstm|transformer|vit|dqn|ppo|sac|changes"
)
_SETTINGS_FOLDERS = frozenset({"conf", "config", "configs"})
_DOCUMENTS = frozenset({"", "md", "rst", "txt"})
_DOCUMENTS_WORDS = re.compile(
    r"readme|license|licence|copying|notice|authors|changelog|citation|notes|paper|report|results"
)

_MARK = "==== autoresearch file: "
_BOUNDARY = re.compile(re.escape(_MARK) + rf"({_FILE_NAME}) ====")
_DOMAIN = b"autoresearch/program/1\n"


def is_tool_file(path: str) -> bool:
    """Whether a path has another form than files of participants may have: tools obey many, such as ``AGENTS.md``."""
    return form_fault(path) is not None


def form_fault(path: str) -> str | None:
    """What to do about a path that no file of a participant may have, in any spelling; None where it may."""
    *folders, name = unicodedata.normalize("NFKC", path).casefold().split("/")
    if not all(map(_FOLDER.fullmatch, folders)):
        return "use letters, digits, - and _ in names of folders, and none that a tool has"
    stem, dot, suffix = name.rpartition(".")
    if not dot:
        stem, suffix = name, ""
    if _DATA.fullmatch(suffix):
        stem = stem[:1] + stem[1:].replace(".", "_")  # train.00.npz
    if not _STEM.fullmatch(stem):
        return "use letters, digits, - and _, and one dot before the suffix"
    word = re.split(r"[\W\d_]", stem, maxsplit=1)[0]
    if suffix in _DOCUMENTS and _DOCUMENTS_WORDS.fullmatch(word):
        return None
    if name == "requirements.in":
        return None
    if _CODE.fullmatch(suffix) or _DATA.fullmatch(suffix):
        return f"call it my_{name}" if _OF_TOOLS.fullmatch(name) or _TOOLS_STEM.fullmatch(stem) else None
    if _SETTINGS.fullmatch(suffix):
        # A choice of settings, as Hydra has them: conf/model/wide.yaml.
        is_choice = not _SETTINGS_FOLDERS.isdisjoint(folders[:-1])
        return None if is_choice or stem[0].isdigit() or _SETTINGS_WORDS.fullmatch(word) else f"call it config_{name}"
    if not suffix and folders[-1:] == ["bin"] and not _TOOLS_STEM.fullmatch(stem):
        return None
    if suffix == "md":
        return "call it README.md or NOTES.md"
    return "give it a suffix that says what it is, such as .py, .sh, .mk, .yaml, .csv or .bin; .txt fits any text"


def check_file_name(name: str) -> None:
    """Raises UsageError for a name that no file of a task or a program may have; of a file in folders it has these."""
    if not re.fullmatch(_FILE_NAME, name) or len(name) > _NAME_CHARACTERS:
        hint = f"use letters, digits, dots, - and _, and no more than {_NAME_CHARACTERS} with its folders"
        raise UsageError(f"{name[:80]!r} is no plain file name", hint=hint)
    if advice := form_fault(name):
        raise UsageError(f"{name} is a name of a kind that tools may obey, so no task or program has it", hint=advice)


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
