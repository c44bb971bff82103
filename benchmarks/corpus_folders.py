"""Small folders with programs: what is right, and what ``autoresearch task new`` and ``run`` make of each.

They lie in ``tests/programs/folders``: a file describes a folder and says what is right, which the run does not see.

    python -m benchmarks.corpus_folders             all of them, as a Markdown table
    python -m benchmarks.corpus_folders NAME …      some of them, with what was not right
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks.corpus import CORPUS, PARTS, Judgement, Result, Verdict, family_table, results_of

COMMAND_SECONDS = 240
BUG = "this is a bug in autoresearch"
Command = Callable[..., subprocess.CompletedProcess[str]]


@dataclass(frozen=True, slots=True)
class StrangerFolder:
    """A folder with a program, and what is right."""

    part: str
    name: str
    files: Mapping[str, str]
    large: Mapping[str, int]
    """Files of so many zero bytes."""
    many: Mapping[str, int]
    """So many small files; ``{}`` in the name is the number."""
    links: Mapping[str, str]
    pipes: Sequence[str]
    options: Sequence[str]
    results: Sequence[Result]
    hint: str
    """A regular expression that the refusal must hold; empty: it becomes a task."""
    tools: Sequence[str]
    packages: Sequence[str]

    def __str__(self) -> str:
        return self.name

    @property
    def family(self) -> str:
        """Whether it is to become a task."""
        return "refusals" if self.hint else "tasks"

    def missing(self) -> list[str]:
        """The tools and packages that it needs and this machine lacks."""
        tools = [tool for tool in self.tools if shutil.which(tool) is None]
        return tools + [package for package in self.packages if find_spec(package) is None]

    def write(self, place: Path) -> Path:
        """Write the folder, as a person has it."""
        contents = {name: text.encode() for name, text in self.files.items()}
        contents |= {name: bytes(size) for name, size in self.large.items()}
        contents |= {name.format(i): b"P2\n" for name, count in self.many.items() for i in range(count)}
        for name, content in contents.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        for name, target in self.links.items():
            (place / name).symlink_to(target)
        for name in self.pipes:
            os.mkfifo(place / name)
        return place


def stranger_folders(part: str) -> list[StrangerFolder]:
    """The folders of a half of the corpus."""
    return [_folder(part, path) for path in sorted((CORPUS / "folders" / part).glob("*.toml"))]


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for programs and the node's home: on the disk, since a run has a ``/dev`` of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
        Path(scratch).chmod(0o755)
        yield Path(scratch)


def run_command(*words: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """The command line, as a person starts it."""
    command = [sys.executable, "-m", "autoresearch_cli", *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def judge_folder(folder: StrangerFolder, scratch: Path, run: Command = run_command) -> Judgement:
    """Make the folder a task and run it once, both by the command line."""
    environment = {**os.environ, "AUTORESEARCH_HOME": str(scratch / "home")}
    verdict, reason = _outcome(folder, folder.write(scratch / folder.name), partial(run, environment=environment))
    return Judgement(folder.part, folder.family, folder.name, verdict, reason)


def judge_folders(folders: Sequence[StrangerFolder]) -> list[Judgement]:
    """Those of the folders that can run on this machine."""
    with scratch_folder() as scratch:
        return [judge_folder(folder, scratch) for folder in folders if not folder.missing()]


def _outcome(folder: StrangerFolder, place: Path, command: Command) -> tuple[Verdict, str]:
    before = _names(place)
    new = command("task", "new", str(place), "--once", "--json", *folder.options)
    if BUG in new.stderr:
        return Verdict.WRONG, _end(new.stderr)
    if folder.hint:
        if new.returncode == 0:
            return Verdict.WRONG, f"it became a task: {new.stdout[:200]}"
        if left := _names(place) - before:
            return Verdict.WRONG, f"it was refused, and left {', '.join(sorted(left))}"
        is_right = re.search(folder.hint, new.stderr) is not None
        return (Verdict.RIGHT, "") if is_right else (Verdict.UNSURE, _end(new.stderr))
    if new.returncode != 0:
        return Verdict.UNSURE, _end(new.stderr)
    task = json.loads(new.stdout)
    taken = f"{task['metric']}, {task['direction']}"
    results = [
        each for each in folder.results if each.has_name(task["metric"]) and task["direction"] in each.directions
    ]
    if not results:
        return Verdict.WRONG, f"{taken} was taken"
    run = command("run", str(place), "--json")
    try:
        value = json.loads(run.stdout)["run"]["run"]["value"]
    except (ValueError, KeyError, TypeError):
        value = None
    if value is None:
        return Verdict.UNSURE, f"its run gave no value: {_end(run.stderr)}"
    return (Verdict.RIGHT, "") if results[0].fits(value, diverged=False) else (Verdict.WRONG, f"{taken}: {value}")


def _names(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


def _end(text: str) -> str:
    return " / ".join(text.strip().splitlines()[-3:])[-400:]


def _folder(part: str, path: Path) -> StrangerFolder:
    entry = tomllib.loads(path.read_text())
    return StrangerFolder(
        part,
        path.stem,
        entry["files"],
        entry.get("large", {}),
        entry.get("many", {}),
        entry.get("links", {}),
        entry.get("pipes", ()),
        entry.get("options", ()),
        results_of(entry),
        entry.get("hint", ""),
        entry.get("tools", ()),
        entry.get("needs", ()),
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    names = parser.parse_args().names
    folders = [folder for part in PARTS for folder in stranger_folders(part)]
    judgements = judge_folders([folder for folder in folders if not names or folder.name in names])
    for each in judgements if names else ():
        print(f"{each.title}: {each.verdict}. {each.reason}")
    print(family_table(judgements))


if __name__ == "__main__":
    main()
