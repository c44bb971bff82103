"""Makes a task out of a folder with a program: writes ``task.toml`` beside it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from autoresearch.direction import MINIMIZE
from autoresearch.errors import Refused, UsageError
from autoresearch.tasks.folder_state import keep_baseline
from autoresearch.tasks.guessing import PREPARE, fixed_files
from autoresearch.tasks.loading import MANIFEST, load_task, program_in
from autoresearch.tasks.model import USUAL, Recipe, Task
from autoresearch.tasks.program import source_digest

MEMORY_MIB = 32_768
CACHE_FOLDER = "~/.cache/autoresearch"

_TEMPLATE = """\
# A task: {files} may change, the files under [harness] may not. A change here makes another task of it.
name = "{name}"
summary = ""
baseline = "{baseline}"  # the program that it began with; edits of it are runs of this task

[metric]
name = "{metric}"           # the program prints "{metric}: 1.23", or a line of JSON that has it
direction = "{direction}"      # "minimize" or "maximize"
source = "stdout"
# floor = 0.0               # a bound that no honest run passes, if one is known
{noise}

[budget]
unit = "seconds"            # wall clock: runs are compared on one machine only
amount = {seconds:g}

[limits]
seconds = {most_seconds:g}                # start-up and evaluation included
memory_mib = {memory_mib}
disk_mib = 4096
processes = 256
output_kib = 4096
{program}
[harness]
{harness}
{mounts}{python}"""
_UNKNOWN_NOISE = "# noise = 0.0               # standard deviation over seeds, if it is known"
_TWO_RUNS = "# by two runs: correct it when you know more"
_NO_SEED = "# two seeds gave the same: remove this line if a seed changes the number"
_MOUNTS = f"""
[mounts]                    # folders of this machine that a run may read
cache = "{CACHE_FOLDER}"
"""


def write_task(
    folder: Path,
    *,
    recipe: Recipe = USUAL,
    metric: str = "val_bpb",
    direction: str = MINIMIZE,
    seconds: float = 300,
    most_memory_mib: int = MEMORY_MIB,
    noise: float | None = None,
    venv: str = "",
) -> Path:
    """Write ``task.toml`` for the program in ``folder``, which prints its ``metric``; return its path.

    Pins what the program needs from beside it. A run may take ``seconds``, and three times as long with start-up and
    evaluation. It may use 32 GiB of memory, or ``most_memory_mib`` where that is less. ``venv`` is the absolute path of
    an environment of this machine that runs it, where that is not the node's own. Raises Refused when
    ``task.toml`` exists, UsageError when a file is missing, or a ``.py`` file is not Python.
    """
    path = folder / MANIFEST
    if path.exists():
        raise Refused(f"{path} exists already", hint="edit it, or move it away first")
    baseline, harness = program_in(folder, recipe), fixed_files(folder, recipe.edit)
    mounted = re.search(r"\.cache\W+autoresearch", harness.get(PREPARE, b"").decode("utf-8", "replace"))
    text = _TEMPLATE.format(
        files=" and ".join(recipe.edit),
        metric=metric,
        direction=direction,
        seconds=seconds,
        most_seconds=3 * seconds,
        baseline=source_digest(baseline.decode()).hex(),
        name=re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")[:64] or "task",
        memory_mib=min(MEMORY_MIB, most_memory_mib),
        noise=_UNKNOWN_NOISE
        if noise is None
        else f"noise = {noise:.2g}".ljust(28) + (_TWO_RUNS if noise else _NO_SEED),
        program=_program(recipe),
        harness="\n".join(f'"{name}" = "{hashlib.sha256(source).hexdigest()}"' for name, source in harness.items()),
        mounts=_MOUNTS if mounted else "",
        python=f"\n[python]\nvenv = {json.dumps(venv, ensure_ascii=False)}\n" if venv else "",
    )
    keep_baseline(folder, baseline)
    _create(path, text)
    load_task(folder)
    return path


def _program(recipe: Recipe) -> str:
    """The table [program]; nothing where it would say nothing."""
    stated = recipe.stated()
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in stated.items()]
    return "\n".join(["", "[program]", *lines, ""]) if stated else ""


def pin_baseline(folder: Path) -> Task:
    """Pin the program in a task folder as the task's baseline: its identity no longer follows the file.

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
