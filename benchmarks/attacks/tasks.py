"""Seventy-two tasks with one planted hole each in how they are measured, and a sound twin of each.

A file in one of the six halves describes both twins: ``task`` and ``files`` are common, ``planted`` and ``sound`` add
their own. ``shared`` are files of the folder ``files``. ``edits`` have a file, a text in it and another in its place.
``cheat`` makes of the planted baseline a program that exploits the hole. No honest program gets past ``honest``, a
value of the metric; the cheat does, in the planted twin alone.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from autoresearch.task.folder_state import write_files
from autoresearch.task.folders import pin_baseline
from autoresearch.task.model import Task
from autoresearch.text import sign_of

ROOT = Path(__file__).parent
HALVES = ("seen", "unseen", "fresh_seen", "fresh_unseen", "third", "again")
PLANTED, SOUND = "planted", "sound"
_METRIC = ("name", "direction", "source", "floor", "noise")
_PROGRAM = ("command", "edit")


@dataclass(frozen=True, slots=True)
class AttackedTask:
    """A task of the measurement; ``hole`` says what is open in the planted twin, ``mend`` what closes it."""

    half: str
    family: str
    twin: str
    hole: str
    mend: str
    honest: float
    settings: Mapping[str, Any]
    files: Mapping[str, str]
    cheat: Mapping[str, str]

    @property
    def name(self) -> str:
        """Such as ``ties-planted``."""
        return f"{self.family.replace('_', '-')}-{self.twin}"

    @property
    def is_planted(self) -> bool:
        """Whether it has a hole."""
        return self.twin == PLANTED

    def is_past(self, value: float) -> bool:
        """Whether no honest program gets this value."""
        sign = sign_of(self.settings["direction"])
        return sign * value < sign * self.honest

    def write(self, place: Path) -> Task:
        """Write the task as a folder, with its baseline pinned."""
        place.mkdir(parents=True)
        write_files(place, {name: text.encode() for name, text in self.files.items()})
        (place / "task.toml").write_text(tomlkit.dumps(self._manifest()))
        return pin_baseline(place)

    def _manifest(self) -> dict[str, Any]:
        settings = dict(self.settings)
        data = settings.pop("data", {})
        metric = {key: settings.pop(key) for key in _METRIC if key in settings}
        program = {key: settings.pop(key) for key in _PROGRAM if key in settings}
        fixed = self.files.keys() - set(program.get("edit", ["train.py"]))
        evaluation = {"command": "python evaluate.py", **settings} if metric["source"] == "evaluator" else {}
        return {
            "name": self.name,
            "metric": metric,
            "budget": {"unit": "work", "amount": 1},
            "limits": {"seconds": 60, "memory_mib": 2048},
            **({"program": program} if program else {}),
            "harness": {name: hashlib.sha256(self.files[name].encode()).hexdigest() for name in sorted(fixed)},
            **({"data": data} if data else {}),
            **({"evaluation": evaluation} if evaluation else {}),
        }


def attacked_tasks(half: str) -> list[AttackedTask]:
    """The tasks of a half: of each family the planted twin, then the sound one."""
    paths = sorted((ROOT / half).glob("*.toml"))
    return [
        _twin(half, path.stem, tomllib.loads(path.read_text()), twin) for path in paths for twin in (PLANTED, SOUND)
    ]


def _twin(half: str, family: str, entry: Mapping[str, Any], twin: str) -> AttackedTask:
    files = {side: _files(entry, entry.get(side, {})) for side in (PLANTED, SOUND)}
    cheat = dict(entry["cheat"])
    edits = cheat.pop("edits", ())
    return AttackedTask(
        half=half,
        family=family,
        twin=twin,
        hole=entry["hole"],
        mend=entry["mend"],
        honest=entry["honest"],
        settings={"source": "evaluator", **entry["task"], **entry.get(twin, {}).get("task", {})},
        files=files[twin],
        cheat={**{name: _edited(files[PLANTED], edits)[name] for name, *_ in edits}, **cheat},
    )


def _files(entry: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    names = [*entry.get("shared", ()), *own.get("shared", ())]
    shared = {name: (ROOT / "files" / name).read_text() for name in names}
    return _edited({**shared, **entry.get("files", {}), **own.get("files", {})}, own.get("edits", ()))


def _edited(files: Mapping[str, str], edits: Sequence[Sequence[str]]) -> dict[str, str]:
    """The files with each edit carried out. Raises ValueError where its text is not there exactly once."""
    texts = dict(files)
    for name, search, replace in edits:
        if texts[name].count(search) != 1:
            raise ValueError(f"{name} does not have this once: {search}")
        texts[name] = texts[name].replace(search, replace)
    return texts
