"""Makes a task out of a folder in the shape of karpathy/autoresearch: ``prepare.py`` stays, ``train.py`` changes."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from pathlib import Path

from autoresearch.direction import MINIMIZE
from autoresearch.errors import Refused, UsageError
from autoresearch.tasks.folder_state import keep_baseline
from autoresearch.tasks.loading import MANIFEST, MAX_FILES, check_source, load_task
from autoresearch.tasks.model import ENTRY, Task
from autoresearch.tasks.source import source_digest

MEMORY_MIB = 32_768
CACHE_FOLDER = "~/.cache/autoresearch"
PREPARE = "prepare.py"

_TEMPLATE = """\
# A task: {entry} may change, the files under [harness] may not. A change here makes another task of it.
name = "{name}"
summary = ""
baseline = "{baseline}"  # the program that it began with; edits of {entry} are runs of this task

[metric]
name = "{metric}"           # {entry} prints "{metric}: 1.23", or a line of JSON that has it
direction = "{direction}"      # "minimize" or "maximize"
source = "stdout"
# floor = 0.0               # a bound that no honest run passes, if one is known
# noise = 0.0               # standard deviation over seeds, if it is known

[budget]
unit = "seconds"            # wall clock: runs are compared on one machine only
amount = {seconds:g}

[limits]
seconds = {most_seconds:g}                # start-up and evaluation included
memory_mib = {memory_mib}
disk_mib = 4096
processes = 256
output_kib = 4096

[harness]
{harness}
{mounts}"""
_MOUNTS = f"""
[mounts]                    # folders of this machine that a run may read
cache = "{CACHE_FOLDER}"
"""


def write_task(
    folder: Path,
    *,
    metric: str = "val_bpb",
    direction: str = MINIMIZE,
    seconds: float = 300,
    most_memory_mib: int = MEMORY_MIB,
) -> Path:
    """Write ``task.toml`` for the ``train.py`` in ``folder``, which prints its ``metric``; return its path.

    Pins ``prepare.py``, if there is one, and whatever else the two import from beside them. A run may take ``seconds``,
    and three times as long with start-up and evaluation. It may use 32 GiB of memory, or ``most_memory_mib`` where that
    is less. Raises Refused when ``task.toml`` exists, UsageError when a file is missing or is not Python.
    """
    path = folder / MANIFEST
    if path.exists():
        raise Refused(f"{path} exists already", hint="edit it, or move it away first")
    harness = fixed_files(folder)
    baseline = (folder / ENTRY).read_bytes()
    mounted = re.search(r"\.cache\W+autoresearch", harness.get(PREPARE, b"").decode("utf-8"))
    text = _TEMPLATE.format(
        entry=ENTRY,
        metric=metric,
        direction=direction,
        seconds=seconds,
        most_seconds=3 * seconds,
        baseline=source_digest(baseline.decode()).hex(),
        name=re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:64] or "task",
        memory_mib=min(MEMORY_MIB, most_memory_mib),
        harness="\n".join(f'"{name}" = "{hashlib.sha256(source).hexdigest()}"' for name, source in harness.items()),
        mounts=_MOUNTS if mounted else "",
    )
    keep_baseline(folder, baseline)
    _create(path, text)
    load_task(folder)
    return path


def pin_baseline(folder: Path) -> Task:
    """Pin the ``train.py`` in a task folder as the task's baseline: its identity no longer follows the file.

    Raises Refused when ``task.toml`` pins one already, UsageError when the folder is no task.
    """
    import tomlkit  # the command line starts without it

    task = load_task(folder)
    if task.is_pinned:
        raise Refused(f"{folder / MANIFEST} pins its baseline already", hint="autoresearch run")
    keep_baseline(folder, task.baseline)
    path = folder / MANIFEST
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document.add("baseline", source_digest(task.baseline.decode()).hex())
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(tomlkit.dumps(document), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        temporary.unlink(missing_ok=True)
    return load_task(folder)


def fixed_files(folder: Path) -> dict[str, bytes]:
    """The files beside ``train.py`` that it needs: ``prepare.py``, if there is one, and what the two import from there.

    Raises UsageError when ``train.py`` is missing, or one of them is not Python.
    """
    found: dict[str, bytes] = {}
    pending = [ENTRY, *([PREPARE] if (folder / PREPARE).is_file() else [])]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        try:
            found[name] = (folder / name).read_bytes()
        except OSError as error:
            hint = "a task needs a train.py, the program to change"
            raise UsageError(f"{folder / name} can't be read: {error.strerror}", hint=hint) from error
        check_source(folder / name, found[name])
        modules = (f"{module}.py" for module in _imported(found[name].decode("utf-8")))
        pending += [module for module in modules if (folder / module).is_file()]
    del found[ENTRY]
    if len(found) > MAX_FILES:
        raise UsageError(f"{folder} has {len(found)} files that train.py needs", hint=f"{MAX_FILES} are allowed")
    return dict(sorted(found.items()))


def _imported(source: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def _create(path: Path, text: str) -> None:
    """Write a new file whole: a crash leaves none, and a file that appeared meanwhile stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.link(temporary, path)
    except FileExistsError as error:
        raise Refused(f"{path} exists already", hint="edit it, or move it away first") from error
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        temporary.unlink(missing_ok=True)
