"""From a folder with a program to a task, and from a published task to a folder. Runs nothing.

``task.toml`` written for a program; files beside a task that are no part of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from autoresearch.beneath import remove_beneath
from autoresearch.errors import Refused, UsageError
from autoresearch.paths import put_folder
from autoresearch.task import loading
from autoresearch.task.folder_state import create_file, keep_baseline, replace_file, write_files
from autoresearch.task.model import USUAL, Budget, Evaluator, Limits, Metric, Python, Recipe, Task
from autoresearch.task.needed import PREPARE, Needed, needed_files
from autoresearch.task.program import check_file_names, source_digest, split_program
from autoresearch.text import MAXIMIZE, MINIMIZE, latin

# What a run may use of a program that nobody measured.
MEMORY_MIB = 8192
# The task of a folder whose name has no Latin letter or digit.
UNNAMED = "task"
DISK_MIB, PROCESSES, OUTPUT_KIB = 4096, 256, 4096

_TEMPLATE = """\
# A task: {files} may change, the files under [harness] may not. A change here makes another task of it.
name = "{name}"
summary = ""
{baseline}

[metric]
name = "{metric}"           # {who} prints "{metric}: 1.23", or a line of JSON that has it
direction = "{direction}"      # {which}
source = "{source}"
{floor}
{noise}

[budget]
unit = "seconds"            # wall clock: runs are compared on one machine only
amount = {seconds:g}                  # a change may take 1.6 times as long as the baseline

[limits]
seconds = {most_seconds:g}                # start-up and evaluation included
memory_mib = {memory_mib}
disk_mib = {disk_mib}
processes = {processes}
output_kib = {output_kib}
{program}
[harness]
{harness}
{inputs}{mounts}{python}{evaluation}"""
_BASELINE = 'baseline = "{}"  # the program that it began with; edits of it are runs of this task'
_NO_BASELINE = "# no baseline yet: fill in the marked places, then: autoresearch task pin DIR"
_UNKNOWN_FLOOR = "# floor = 0.0               # a bound that no honest run passes, if one is known"
_FLOOR = "# a bound that no honest run passes: values beyond it are not believed"
_UNKNOWN_NOISE = "# noise = 0.0               # standard deviation over seeds, if it is known"
_TWO_RUNS = """# by two runs: correct it when you know more
noise_runs = 2              # in so many runs it was seen: remove this line when you know it"""
_NO_SEED = "# two seeds gave the same: remove this line if a seed changes the number"
_INPUTS = """
[inputs]                    # read-only data, where it lies: other data is another task
"""
_MOUNTS = """
[mounts]                    # folders of this machine that a run may read
"""


def draft_task(folder: Path, recipe: Recipe, needed: Needed, *, seconds: float, memory_mib: int, venv: str) -> Task:
    """The task of a program of which nobody knows yet what it prints: its runs have no value.

    Beside time and memory it has the limits of the task that is written for it.

    Raises UsageError where there is no such program.
    """
    program = loading.program_in(folder, recipe)
    return Task(
        name="draft",
        metric=Metric(name="", direction="minimize", source="stdout"),
        budget=Budget(unit="seconds", amount=0.0),
        limits=Limits(
            seconds=seconds, memory_mib=memory_mib, disk_mib=DISK_MIB, processes=PROCESSES, output_kib=OUTPUT_KIB
        ),
        mounts=needed.mounts | {str(number): mount for number, mount in enumerate(needed.folders)},
        inputs=needed.inputs,
        python=Python(venv=venv) if venv else None,
        harness=needed.fixed,
        baseline=program,
        data={},
        folder=folder,
        program=program,
        recipe=recipe,
    )


def write_task(  # noqa: PLR0913 - what a task.toml says
    folder: Path,
    *,
    needed: Needed | None = None,
    recipe: Recipe = USUAL,
    metric: str = "val_bpb",
    direction: str = MINIMIZE,
    is_guess: bool = False,
    seconds: float = 300,
    most_memory_mib: int = MEMORY_MIB,
    floor: float | None = None,
    noise: float | None = None,
    venv: str = "",
    mounts: Sequence[str] = (),
    evaluator: Evaluator | None = None,
) -> Path:
    """Write ``task.toml`` for the program in ``folder``, which prints its ``metric``; return its path.

    Pins what is ``needed`` from beside the program; None: what its text names. ``is_guess``: the direction is one by
    the metric's name. A run may take ``seconds``, and three times as long with start-up and evaluation. It may use
    ``most_memory_mib``. ``floor`` is the bound of the metric, where it has one. ``venv`` is the absolute path of an
    environment of this machine that runs it, where that is not the node's own; ``mounts`` are folders that runs may
    read, such as ``~/.cache/name``. With an ``evaluator`` that measures, and the baseline is not pinned yet: the
    program is to be changed first. Raises Refused when ``task.toml`` exists, UsageError when a file is missing, or a
    ``.py`` file is not Python.
    """
    path = folder / loading.MANIFEST
    if os.path.lexists(path):
        raise Refused(f"{path} exists already", hint="edit it, or move it away first")
    baseline = loading.program_in(folder, recipe)
    needed = needed or needed_files(folder, recipe, mounts)
    text = _TEMPLATE.format(
        files=" and ".join(recipe.edit),
        metric=metric,
        direction=direction,
        which=f'"{MINIMIZE}" or "{MAXIMIZE}"' + ("; a guess by the name: look at it" if is_guess else ""),
        seconds=seconds,
        most_seconds=3 * seconds,
        baseline=_NO_BASELINE if evaluator else _BASELINE.format(source_digest(baseline.decode()).hex()),
        who=evaluator.command if evaluator else "the program",
        source="evaluator" if evaluator else "stdout",
        name=name_of_task(folder) or UNNAMED,
        memory_mib=most_memory_mib,
        disk_mib=DISK_MIB,
        processes=PROCESSES,
        output_kib=OUTPUT_KIB,
        floor=_UNKNOWN_FLOOR if floor is None else f"floor = {floor!r}".ljust(28) + _FLOOR,
        noise=_UNKNOWN_NOISE
        if noise is None
        else f"noise = {noise:.2g}".ljust(28) + (_TWO_RUNS if noise else _NO_SEED),
        program=_program_table(recipe),
        harness="\n".join(
            f'"{name}" = "{hashlib.sha256(source).hexdigest()}"' for name, source in needed.fixed.items()
        ),
        inputs=_inputs_table(needed),
        mounts=_mounts_table(needed),
        python=f"\n[python]\nvenv = {json.dumps(venv, ensure_ascii=False)}\n" if venv else "",
        evaluation=_evaluation_table(evaluator) if evaluator else "",
    )
    if evaluator is None:
        keep_baseline(folder, baseline)
    create_file(folder, loading.MANIFEST, text)
    try:
        loading.load_task(folder)
    except UsageError:
        remove_beneath(folder, loading.MANIFEST)
        raise
    return path


def name_of_task(folder: Path) -> str:
    """The name of a task by its folder's: ``Größe 2`` is ``grosse-2``. Empty where that has no Latin letter."""
    return re.sub(r"[^a-z0-9]+", "-", latin(folder.resolve().name).lower()).strip("-")[:64].strip("-")


def _inputs_table(needed: Needed) -> str:
    """The table [inputs]: what is shown where it lies."""
    lines = []
    for place, entry in needed.inputs.items():
        files = f", files = {entry.files}" if entry.files else ""
        lines.append(f'{_key(place)} = {{ bytes = {entry.bytes}, sha256 = "{entry.sha256}"{files} }}\n')
    return _INPUTS + "".join(lines) if lines else ""


def _key(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _mounts_table(needed: Needed) -> str:
    """The table [mounts]: each folder by its own name, and what lies elsewhere by its place."""
    names: dict[str, str] = {}
    for folder in needed.folders:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", latin(Path(folder).name)).strip("-")[:48] or "folder"
        names[f"{name}-{len(names) + 1}" if name in names else name] = folder
    lines = [f"{name} = {_key(folder)}\n" for name, folder in names.items()]
    lines += [f"{_key(place)} = {_key(path)}\n" for place, path in needed.mounts.items()]
    return _MOUNTS + "".join(lines) if lines else ""


def _program_table(recipe: Recipe) -> str:
    """The table [program]; nothing where it would say nothing."""
    stated = recipe.stated()
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in stated.items()]
    return "\n".join(["", "[program]", *lines, ""]) if stated else ""


def _evaluation_table(evaluator: Evaluator) -> str:
    """The table [evaluation]: what an evaluator has to say, and what is not as usual."""
    usual = msgspec.to_builtins(Evaluator(command="", artifact=""))
    values = msgspec.to_builtins(evaluator)
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value != usual[key]]
    return "\n[evaluation]                # measures what the program left, in a sandbox without it\n" + "".join(lines)


def pin_fixed_files(folder: Path) -> list[str]:
    """Pin the fixed files in a task folder as they are now: the names of those that task.toml pinned otherwise.

    Where it pins a baseline, runs were measured with these files: nothing is pinned anew. Raises UsageError when the
    folder is no task with these files; task.toml is then as it was.
    """
    import tomlkit  # the command line starts without it

    text = loading.read_file(folder, loading.MANIFEST)
    try:
        document = tomlkit.parse(text.decode())
    except ValueError:
        return []  # loading says what is wrong
    pins = document.get("harness")
    if document.get("baseline") or not isinstance(pins, dict):
        return []
    digests = {name: hashlib.sha256(loading.read_file(folder, name)).hexdigest() for name in pins}
    changed = [name for name, digest in digests.items() if pins[name] != digest]
    for name in changed:
        pins[name] = digests[name]
    if changed:
        replace_file(folder, loading.MANIFEST, tomlkit.dumps(document).encode())
        try:
            loading.load_task(folder)
        except UsageError:
            replace_file(folder, loading.MANIFEST, text)
            raise
    return changed


def pin_baseline(folder: Path) -> Task:
    """Pin the program in a task folder as the task's baseline: its identity no longer follows the file.

    Raises Refused when ``task.toml`` pins one already, UsageError when the folder is no task.
    """
    import tomlkit  # the command line starts without it

    task = loading.load_task(folder)
    if task.is_pinned:
        raise Refused(
            f"{folder / loading.MANIFEST} pins its baseline already",
            hint=f"autoresearch run {shlex.quote(str(folder))}",
        )
    keep_baseline(folder, task.baseline)
    document = tomlkit.parse(loading.read_file(folder, loading.MANIFEST).decode().replace(f"{_NO_BASELINE}\n", ""))
    document.add("baseline", source_digest(task.baseline.decode()).hex())
    replace_file(folder, loading.MANIFEST, tomlkit.dumps(document).encode())
    return loading.load_task(folder)


def side_file(name: str, definition: Mapping[str, object], folder: Path | None = None) -> bytes:
    """A file beside ``task.toml`` that is no part of the task, such as ``changes.toml``; empty where there is none.

    Records don't hold it. So a task with the ``prepare.py`` of a task that ships has the files of that one where its
    own ``folder`` lacks them. Raises UsageError when the file can't be read.
    """
    if folder is not None and os.path.lexists(folder / name):
        return loading.read_file(folder, name)
    harness = definition.get("harness")
    pin = harness.get(PREPARE) if isinstance(harness, Mapping) else None
    for shipped in loading.shipped_tasks() if pin else ():
        if hashlib.sha256(shipped.harness[PREPARE]).digest() == pin:
            return loading.read_file(shipped.folder, name) if (shipped.folder / name).exists() else b""
    return b""


def rebuild_task(
    definition: Mapping[str, object],
    digest: bytes,
    *,
    harness: Mapping[str, bytes],
    baseline: bytes,
    summary: str,
    folder: Path,
) -> Task:
    """Write a published task as a new folder and load it: ``digest`` is checked, and the folder appears whole or not.

    A folder that is there already, and not empty, is loaded if it is this task. Mounts, which are this machine's own,
    are left out.

    Raises:
        Refused: the files are not those of the definition, or something else is in the folder's place.
        UsageError: the definition is no task.
    """
    if is_taken(folder):
        return _checked(folder, digest)
    program = split_program(baseline.decode("utf-8", "replace"))
    try:
        check_file_names((*harness, *program))
    except UsageError as error:
        raise UsageError(f"the task has a file with an impossible name: {error}") from error
    if both := sorted(harness.keys() & program.keys()):
        raise UsageError(f"the task has a file with an impossible name: {both[0]} is in its program, too")
    with _made_whole(folder) as temporary:
        write_files(temporary, {**harness, **{name: text.encode() for name, text in program.items()}})
        digest_of_baseline = source_digest(baseline.decode("utf-8", "replace"))
        manifest = manifest_text(definition, summary=summary, baseline=digest_of_baseline)
        replace_file(temporary, loading.MANIFEST, manifest.encode())
        keep_baseline(temporary, baseline)
        _checked(temporary, digest)
    return loading.load_task(folder)


def copy_task(task: Task, place: Path) -> None:
    """Copy a task's files into a new folder, which appears whole or not."""
    with _made_whole(place) as temporary:
        write_files(temporary, task.harness)
        write_program(temporary, task.baseline.decode())
        keep_baseline(temporary, task.baseline)
        for name in (loading.CHANGES, loading.NAMES):
            if content := side_file(name, task.definition(), task.folder):
                replace_file(temporary, name, content)
        replace_file(temporary, loading.MANIFEST, loading.read_file(task.folder, loading.MANIFEST))


@contextmanager
def _made_whole(folder: Path) -> Iterator[Path]:
    """A folder to fill that appears as ``folder`` when the block ends; after an error nothing is left."""
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        put_folder(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_program(folder: Path, program: str) -> None:
    """Write the files of a program into a folder."""
    write_files(folder, {name: text.encode() for name, text in split_program(program).items()})


def is_taken(folder: Path) -> bool:
    """Whether something is in a folder's place: an empty folder is none."""
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


def _checked(folder: Path, digest: bytes) -> Task:
    task = loading.load_task(folder)
    if task.digest != digest:
        raise Refused(f"{folder} is another task than {digest.hex()[:12]}…", hint="give a new folder")
    return task


def manifest_text(definition: Mapping[str, object], *, summary: str = "", baseline: bytes) -> str:
    """The ``task.toml`` of a published task; ``baseline`` is the digest that it pins. Raises UsageError."""
    import tomlkit  # the command line starts without it

    table: dict[str, object] = {"name": definition.get("name", "")} | ({"summary": summary} if summary else {})
    table |= {key: value for key, value in definition.items() if key not in ("name", "summary", "baseline")}
    table["baseline"] = baseline.hex()
    try:
        return tomlkit.dumps({key: _plain(value) for key, value in table.items()})
    except (TypeError, ValueError) as error:
        raise UsageError(f"the task's definition can't be written as {loading.MANIFEST}: {error}") from error


def _plain(value: object) -> object:
    """A value of a definition as ``task.toml`` has it: digests in hex."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
