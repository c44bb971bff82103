"""From a folder to a task: reads ``task.toml`` and the files that it pins; every fault is a UsageError."""

from __future__ import annotations

import functools
import hashlib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, get_args

import msgspec

from autoresearch.beneath import LeadsOut, open_beneath
from autoresearch.errors import UsageError
from autoresearch.paths import typed_path
from autoresearch.record.encoding import EncodingError, encode
from autoresearch.task.folder_state import STATE_FOLDER, kept_baselines
from autoresearch.task.listing import LINK_OUT, FolderListing, list_folder
from autoresearch.task.model import PLACE, Evaluation, Evaluator, Header, Python, Recipe, Task, TaskSettings, TaskTable
from autoresearch.task.needs import parse_lock
from autoresearch.task.program import ENTRY, PLAIN_NAME, check_file_names, join_files, source_digest
from autoresearch.text import did_you_mean, read_toml, unreadable

S = TypeVar("S", bound=TaskTable)
MANIFEST = "task.toml"
# What may lie beside it and is no part of the task: patches for the search, and what a program may name.
CHANGES, NAMES = "changes.toml", "names.toml"
MAX_FILE_BYTES = 1 << 20
MAX_FILES = 64
MAX_PLACE = 200

_HEX_SHA256 = re.compile(r"[0-9a-f]{64}")
_PACKAGE = Path(__file__).parent


# The first task of a demo, a folder of the shipped one: a run takes seconds.
QUICK_TASK = "moons"


def shipped_task(name: str = "") -> Task:
    """The task that comes with the program: the checkout's ``experiments/``, or the copy in the installed package.

    With a ``name`` another one, in a folder of that name there.
    """
    return _shipped(_shipped_folder() / name)


@functools.cache
def _shipped(folder: Path) -> Task:
    """What comes with the program stays while it runs, and is read once."""
    return load_task(folder)


def _shipped_folder() -> Path:
    root = _PACKAGE.parents[1]
    checkout = root / "experiments"
    # an installed package lies beside strangers' packages, and one of those may be called experiments
    is_checkout = (root / "pyproject.toml").is_file() and (checkout / MANIFEST).is_file()
    return checkout if is_checkout else _PACKAGE / "shipped"


def default_task() -> Task:
    """The task that a node works on where nobody named one: a run of it takes seconds on any machine."""
    return shipped_task(QUICK_TASK)


def shipped_by_name(name: str) -> Task | None:
    """The task of this name among those that come with the program: ``grammar``, ``moons``, ``gpt-small``."""
    return next((task for task in shipped_tasks() if task.name == name), None)


def shipped_as(task: Task) -> Task:
    """The task that ships under the name of a task, else the one that ships: whose files are everybody's own."""
    return shipped_by_name(task.name) or shipped_task()


def shipped_tasks() -> Iterator[Task]:
    """All tasks that come with the program; the one in whose folder the others lie is first."""
    first = shipped_task()
    yield first
    for manifest in sorted(first.folder.glob(f"*/{MANIFEST}")):
        yield _shipped(manifest.parent)


def folder_of_task(text: str) -> Path:
    """The task folder that was named.

    Raises:
        UsageError: it does not exist, can be no path, or is no task's.
    """
    folder = typed_path(text)
    if not (folder / MANIFEST).is_file():
        raise UsageError(f"{folder} has no {MANIFEST}", hint=f"autoresearch task new {shlex.quote(str(folder))}")
    return folder.resolve()


def load_task(folder: Path, *, program: bytes | None = None) -> Task:
    """Read a task folder. Raises UsageError naming the file, the key and what to do about it.

    ``program`` takes the place of the ``train.py`` that is there, which may be broken or gone.
    """
    path = folder / MANIFEST
    try:
        table = read_toml(read_file(folder, MANIFEST))
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="correct the file at that place") from error
    header = _converted(path, table, Header, "")
    recipe = _recipe(path, header)
    program = program_in(folder, recipe, header.harness) if program is None else program
    harness = _harness(path, header.harness, is_optional=header.metric.source == "stdout")
    _check_mounts(path, header.mounts)
    _check_inputs(path, header)
    if header.python is not None:
        _check_python(path, header.python, harness)
    task = Task(
        **{name: getattr(header, name) for name in TaskSettings.__struct_fields__},
        harness=harness,
        baseline=_baseline(path, header, program),
        data={name: bytes.fromhex(pin) for name, pin in _pins(path, "data", header.data).items()},
        folder=folder,
        program=program,
        is_pinned=bool(header.baseline),
        evaluation=_evaluation(path, header),
        evaluator=_evaluator(path, header),
        recipe=recipe,
    )
    try:
        encode(task.definition())
    except EncodingError as error:
        raise UsageError(f"{path} can't be published: {error}", hint=f"correct it in {MANIFEST}") from error
    return task


def _baseline(path: Path, header: Header, program: bytes) -> bytes:
    """The program that ``task.toml`` pins: the one in the folder, or the copy that was kept when it was changed."""
    pin, names = header.baseline, ", ".join(header.program.edit)
    if not pin or source_digest(program.decode()).hex() == pin:
        return program
    for copy in kept_baselines(path.parent):
        if source_digest(copy.decode()).hex() == pin:
            return copy
    raise UsageError(
        f"{path} pins another {names} as its baseline, and that is not in {path.parent / STATE_FOLDER}",
        hint=f"get the task anew, then copy your {names} there: autoresearch task get NAME DIR",
    )


def program_in(folder: Path, recipe: Recipe, fixed: Collection[str] = ()) -> bytes:
    """The program in a folder as one text; ``fixed`` are the names of the task's own files.

    Raises UsageError naming the file that is missing or is no program.
    """
    files = {name: _text(folder / name, read_file(folder, name)) for name in program_names(folder, recipe, fixed)}
    for name, content in files.items():
        if name.endswith(".py"):
            check_source(folder / name, content.encode())
    try:
        return join_files(files).encode()
    except UsageError as error:
        raise UsageError(f"{folder}: {error}", hint=error.hint) from error


def program_names(folder: Path, recipe: Recipe, fixed: Collection[str]) -> tuple[str, ...]:
    """The names of a program's files, whether they are in the folder or not; those that ``*`` stands for are.

    Raises UsageError where it stands for a link that leads out of the folder.
    """
    patterns = [pattern.split("/") for pattern in recipe.edit if "*" in pattern]
    listing = list_folder(folder) if patterns else FolderListing()
    for name in (name for name, reason in listing.left_out.items() if reason.startswith(LINK_OUT)):
        parts = name.split("/")  # a link may take the place of a folder
        if any(fnmatchcase(name, "/".join(pattern[: len(parts)])) for pattern in patterns):
            read_file(folder, name)
    names = (name for name in listing.names if all(PLAIN_NAME.fullmatch(part) for part in name.split("/")))
    return recipe.files_among(names, {MANIFEST, CHANGES, NAMES, *fixed})


def check_source(path: Path, content: bytes) -> None:
    """Refuse with a UsageError naming ``path`` what is no program: neither Python in UTF-8 nor the text of files."""
    text = _text(path, content)
    try:
        source_digest(text)
    except UsageError as error:
        raise UsageError(f"{path}: {error}", hint=error.hint) from error


def _text(path: Path, content: bytes) -> str:
    try:  # Python passes over a byte order mark
        return content.decode("utf-8-sig" if path.suffix == ".py" else "utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {unreadable(error)}", hint="save it as UTF-8 text") from error


def _converted(path: Path, table: Mapping[str, Any], kind: type[S], prefix: str) -> S:
    _refuse_unknown_keys(path, table, kind, prefix)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        sentence, _, where = str(error).partition(" - at `$")
        if "matching regex" in sentence:
            sentence = "this is no name of the form that belongs there"
        key = prefix + where.strip("`.") or "the file"
        raise UsageError(f"{path}, {key}: {sentence}", hint=f"correct {key} in {MANIFEST}") from error


def _refuse_unknown_keys(path: Path, table: Mapping[str, Any], section: type[TaskTable], prefix: str) -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(section)}
    for key, value in table.items():
        if key not in fields:
            near = did_you_mean(key, fields).replace("mean ", f"mean {prefix}")
            raise UsageError(
                f"{path}: {prefix}{key} is not a key of a task", hint=near or f"known keys: {', '.join(fields)}"
            )
        for inner in get_args(fields[key].type) or (fields[key].type,):
            if isinstance(inner, type) and issubclass(inner, TaskTable) and isinstance(value, dict):
                _refuse_unknown_keys(path, value, inner, f"{prefix}{key}.")


def _recipe(path: Path, header: Header) -> Recipe:
    recipe = header.program
    for name in recipe.edit:
        if name in header.harness:
            hint = f"remove it there, or from the files that may change: {', '.join(recipe.edit)}"
            raise UsageError(f"{path}: {name} is not part of the harness", hint=hint)
        if name == MANIFEST or recipe.edit.count(name) > 1:
            raise UsageError(f"{path}: program.edit can't name {name}", hint="name each file that may change once")
    if header.metric.source == "referee" and ENTRY not in recipe.edit:
        raise UsageError(f"{path}: the referee asks the build_model() of {ENTRY}", hint=f"add {ENTRY} to program.edit")
    _check_words(path, "program.command", recipe.command)
    if recipe.build:
        _check_words(path, "program.build", recipe.build)
    return recipe


def _check_words(path: Path, key: str, line: str) -> None:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{path}: {key} can't be read: {error}", hint="close its quotes") from error
    if not words:
        raise UsageError(f"{path}: {key} is empty", hint='such as "bash run.sh"')


def _harness(path: Path, declared: dict[str, str], *, is_optional: bool) -> dict[str, bytes]:
    if not declared and not is_optional:
        raise UsageError(f"{path}: [harness] names no file", hint='pin the fixed files, such as "prepare.py"')
    contents: dict[str, bytes] = {}
    for name, pin in _pins(path, "harness", declared).items():
        contents[name] = read_file(path.parent, name)
        digest = hashlib.sha256(contents[name]).hexdigest()
        if digest != pin:
            raise UsageError(
                f"{path.parent / name} is not the file that {MANIFEST} pins",
                hint=f'restore it, or for a new task pin it: "{name}" = "{digest}"',
            )
    return contents


def _pins(path: Path, section: str, declared: dict[str, str]) -> dict[str, str]:
    if len(declared) > MAX_FILES:
        raise UsageError(f"{path}: [{section}] names {len(declared)} files", hint=f"{MAX_FILES} are allowed")
    try:
        check_file_names(declared)
    except UsageError as error:
        raise UsageError(f"{path}, {section}: {error}", hint=error.hint) from error
    for name, pin in declared.items():
        if section == "data" and "/" in name:
            raise UsageError(f"{path}: data.{name} is in a folder", hint="name files that prepare.py writes: no folder")
        if not _HEX_SHA256.fullmatch(pin):
            hint = f"the output of: sha256sum {name}"
            raise UsageError(f"{path}: {section}.{name} is not a SHA-256 in lower-case hex", hint=hint)
    return declared


def _evaluation(path: Path, header: Header) -> Evaluation | None:
    if header.metric.source != "referee":
        return None
    evaluation = _section(path, header, Evaluation)
    if header.metric.direction != "minimize":
        raise UsageError(f"{path}: the referee measures bits, fewer are better", hint='metric.direction = "minimize"')
    if evaluation.text not in header.data:
        raise UsageError(f"{path}: evaluation.text, {evaluation.text}, is not a file of [data]", hint="pin it there")
    _check_withheld(path, header, evaluation.withheld)
    return evaluation


def _evaluator(path: Path, header: Header) -> Evaluator | None:
    if header.metric.source != "evaluator":
        if header.evaluation is not None and header.metric.source != "referee":
            hint = 'set metric.source = "evaluator", or "referee" for a language model'
            raise UsageError(f"{path}: [evaluation] is for the referee and for an evaluator", hint=hint)
        return None
    evaluator = _section(path, header, Evaluator)
    _check_withheld(path, header, evaluator.withheld)
    if evaluator.artifact in (MANIFEST, *header.program.edit, *header.harness):
        raise UsageError(
            f"{path}: evaluation.artifact, {evaluator.artifact}, is a file of the task", hint="name another"
        )
    _check_words(path, "evaluation.command", evaluator.command)
    if evaluator.answers:
        _check_words(path, "evaluation.answers", evaluator.answers)
    return evaluator


def _section(path: Path, header: Header, kind: type[S]) -> S:
    """The table [evaluation], whose keys follow from who measures."""
    if header.evaluation is None:
        who = "referee needs to know what to ask" if kind is Evaluation else "evaluator needs to be named"
        raise UsageError(f"{path}: the {who}", hint="add a table [evaluation]")
    return _converted(path, header.evaluation, kind, "evaluation.")


def _check_withheld(path: Path, header: Header, withheld: Sequence[str]) -> None:
    for name in withheld:
        if name not in header.data and name not in header.harness and name not in header.inputs:
            hint = "name files of [data], [harness] or [inputs]"
            raise UsageError(f"{path}: evaluation.withheld names {name}, which the task doesn't have", hint=hint)


def _check_python(path: Path, python: Python, harness: Mapping[str, bytes]) -> None:
    if bool(python.requirements) == bool(python.venv):
        hint = 'requirements = "requirements.txt", or venv = "~/my-project/.venv"'
        raise UsageError(f"{path}: [python] needs one of requirements and venv", hint=hint)
    if python.venv:
        if python.base:
            raise UsageError(f"{path}: python.base goes with python.requirements", hint="remove it")
        _check_folder(path, "python.venv", python.venv, such='"~/my-project/.venv"')
        return
    name = python.requirements
    if name not in harness:
        raise UsageError(
            f"{path}: {name} is not pinned under [harness]",
            hint=f"autoresearch task lock {shlex.quote(str(path.parent))}",
        )
    if not parse_lock(harness[name].decode("utf-8", "replace"), str(path.parent / name)):
        raise UsageError(f"{path.parent / name} names no package", hint="remove [python] from task.toml")


def _check_mounts(path: Path, declared: dict[str, str]) -> None:
    for name, folder in declared.items():
        if not (PLAIN_NAME.fullmatch(name) or name.startswith(PLACE)):
            hint = f"use letters, digits, - and _, or begin it with {PLACE} for a place in the working folder"
            raise UsageError(f"{path}: mounts.{name!r} is not a plain name", hint=hint)
        if name.startswith(PLACE) and not folder.startswith(("/", "~/")):
            _check_place(path, f"mounts.{name}", folder)
        else:
            _check_folder(path, f"mounts.{name}", folder, such='"~/.cache/name"')


def _check_inputs(path: Path, header: Header) -> None:
    """The places of inputs and mounts: each for itself, and none above or below another or a file of the task."""
    mounted = {name.removeprefix(PLACE) for name in header.mounts if name.startswith(PLACE)}
    places = mounted | set(header.inputs)
    for place in places:
        _check_place(path, f"inputs.{place}", place)
    files = {*header.harness, *header.program.edit}
    for name in sorted(places | files):
        others = places | files if name in places else places
        if above := next((str(other) for other in PurePosixPath(name).parents if str(other) in others), ""):
            raise UsageError(
                f"{path}: {name} lies in {above}, which is shown to runs as a whole", hint="name one of them"
            )
    if both := sorted(places & files):
        raise UsageError(f"{path}: {both[0]} is a file of the task, so it is no input", hint="remove it from [inputs]")


def _check_place(path: Path, key: str, place: str) -> None:
    parts = place.split("/")
    if place.isprintable() and len(place) <= MAX_PLACE and not {"", ".", ".."} & set(parts):
        return
    hint = 'such as "data/train.bin": a path below the task folder'
    raise UsageError(f"{path}: {key[:80]!r} is no place in the working folder of a run", hint=hint)


def _check_folder(path: Path, key: str, folder: str, *, such: str) -> None:
    if not folder.startswith(("/", "~/")) or ".." in Path(folder).parts:
        raise UsageError(f"{path}: {key} is not an absolute folder", hint=f"such as {such}")
    if Path.home().is_relative_to(Path(folder).expanduser()):
        raise UsageError(
            f"{path}: {key} would show runs your whole home folder, with your keys",
            hint=f"name a folder with what runs need alone, such as {such}",
        )


def read_file(folder: Path, name: str) -> bytes:
    """A file of a task folder. Raises UsageError where it is missing, too large, elsewhere, or can't be read."""
    path, root = folder / name, folder.resolve()
    if root.is_relative_to(shipped := _shipped_folder()):  # these tasks share files by links
        root, name = shipped, str(root.relative_to(shipped) / name)
    try:
        with open_beneath(root, name) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        hint = "a task folder holds task.toml, train.py and the files that task.toml pins"
        if not folder.is_dir():
            raise UsageError(
                f"the folder {folder} is gone",
                hint="put it back, or go on with another: autoresearch task list, autoresearch task get NAME DIR",
            ) from error
        if path.name == MANIFEST:
            hint = f"autoresearch task new {shlex.quote(str(path.parent))} makes the program there a task"
        elif (folder / MANIFEST).is_file():
            hint = f"rename it back, or name the file that is there now in {folder / MANIFEST}"
        if path.with_name("agent.ini").exists():
            hint = "this is a project: autoresearch publish, then autoresearch work with the name of its task"
        raise UsageError(f"{path} does not exist", hint=hint) from error
    except NotADirectoryError as error:
        raise UsageError(f"{folder} is not a folder", hint="name a folder") from error
    except OSError as error:
        hint = "copy the file there" if isinstance(error, LeadsOut) else "check the path and its permissions"
        raise UsageError(f"{path} can't be read: {error.strerror}", hint=hint) from error
    if len(content) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES >> 10} KiB", hint="files of a task are small sources")
    return content
