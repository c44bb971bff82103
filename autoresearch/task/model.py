"""What a task is: a fixed question, its bounds, and the files that make it the same question everywhere.

Also which values of its metric anybody can have measured. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from autoresearch.record.encoding import encode
from autoresearch.record.kinds import Run
from autoresearch.task.needs import Package, parse_lock
from autoresearch.task.program import ENTRY, MAX_PROGRAM_FILES, is_tool_file, source_digest

# How far below the task's floor a measured value may lie: the floor is exact only on average.
FLOOR_TOLERANCE = 0.002
# No harness reports what is this large.
_BEYOND = 1e12


def possible_value(value: object, *, sign: float = 1.0, floor: float | None = None) -> float | None:
    """The value as a number, or None where nobody can have measured it: absurdly large, or past the task's floor.

    ``sign`` is that of the task's direction (:func:`autoresearch.text.sign_of`).
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_BEYOND < value < _BEYOND:
        return None
    return float(value) if floor is None or sign * value >= sign * floor - FLOOR_TOLERANCE else None


_SEED_DOMAIN = b"autoresearch/seed/1"
_EVALUATION_DOMAIN = b"autoresearch/evaluation-seed/1"
_EPISODE_DOMAIN = b"autoresearch/episode-seed/1"
# Keys of task.toml that came after tasks had been published, by their table.
_LATER = {"Evaluation": {"world"}, "Evaluator": {"answers", "fresh"}, "Limits": {"card", "program_kib"}}

# The most entries of [inputs]: the definition has to fit into a record.
MAX_INPUTS = 32
# What the name of a mount begins with that has a place in the working folder of a run.
PLACE = "./"

_Slug = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9._-]*\Z", max_length=64)]
_Metric = Annotated[str, Meta(pattern=r"\A[^\W\d][\w./@%+-]*\Z", max_length=64)]
_File = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9._-]*\Z", max_length=64)]
_FileInFolders = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*\Z", max_length=64)
]
_Pattern = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9_*][A-Za-z0-9._*-]*(?:/[A-Za-z0-9_*][A-Za-z0-9._*-]*)*\Z", max_length=64)
]
_Line = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f]*\Z", max_length=280)]
_Amount: TypeAlias = Annotated[float, Meta(gt=0, le=1e24)]
_Size: TypeAlias = Annotated[int, Meta(ge=1, le=2**40)]


class TaskTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of ``task.toml``: the fields are its keys, the types say what may stand there."""


class Metric(TaskTable, frozen=True, kw_only=True):
    """What is compared. ``floor`` is a bound that no honest run passes; ``noise`` the standard deviation over seeds.

    With ``noise_runs`` the noise was seen in so many runs: intervals have one degree of freedom less than that.

    ``source`` is where the number comes from: from the referee, which asks the trained model (see :class:`Evaluation`);
    from the task's evaluator (see :class:`Evaluator`); from the harness, which measures inside the run; or from what
    the program prints.
    """

    name: _Metric
    direction: Literal["minimize", "maximize"]
    source: Literal["referee", "evaluator", "harness", "stdout"] = "harness"
    floor: Annotated[float, Meta(ge=-1e24, le=1e24)] | None = None
    noise: Annotated[float, Meta(ge=0, le=1e24)] | None = None
    noise_runs: Annotated[int, Meta(ge=2, le=10_000)] | None = None


class Budget(TaskTable, frozen=True, kw_only=True):
    """What a run may spend: work units that the harness counts, seconds of wall clock, or training episodes.

    Of episodes each run states how many it had, so that runs with any budget are compared. What they cost depends on
    the agent, not on the baseline: the task's limits alone bound it.
    """

    unit: Literal["work", "seconds", "episodes"]
    amount: _Amount


class Evaluation(TaskTable, frozen=True, kw_only=True):
    """How the referee measures a language model: bits per token on a text that ``train.py`` never sees.

    ``text`` is a file of [data]: documents of ``length`` tokens, each a byte, or two in little-endian order where
    ``vocabulary`` is above 256. ``train.py`` leaves a checkpoint and has ``build_model()``, which takes no argument and
    returns a torch module: from int64 tokens (documents, positions) to logits (documents, positions, ``vocabulary``)
    for the token that follows; before the first token stands a 0. ``values`` is how many numbers a checkpoint may hold.
    Two evaluations of one checkpoint lie within ``tolerance`` of each other. ``withheld`` are further files of [data]
    and [harness] that ``train.py`` doesn't see. With ``fresh``, ``python prepare.py fresh`` writes ``fresh.bin``, other
    text of the same kind from the seed AUTORESEARCH_SEED, and, where what a perfect model would need is known,
    ``fresh.bits`` and ``text.bits``: float64 bits of each document of the new text and of ``text``.

    With ``world``, ``python prepare.py world`` writes all files of [data] as they are in another world drawn from that
    seed: data of the same family that no program can have been written for; and, where known, ``world.bits``: float64
    bits that a perfect model would need for each document of that world's ``text``. Changes are compared there. A task
    on real data has no other world: a model that is as good without what it learned is refused instead.
    """

    text: _File
    vocabulary: Annotated[int, Meta(ge=2, le=65536)]
    length: Annotated[int, Meta(ge=1, le=1 << 20)]
    values: Annotated[int, Meta(ge=1, le=1 << 40)]
    tolerance: Annotated[float, Meta(gt=0, le=1)] = 0.0005
    withheld: Annotated[list[_FileInFolders], Meta(max_length=16)] = []
    fresh: bool = False
    world: bool = False


class Recipe(TaskTable, frozen=True, kw_only=True):
    """Which files a program has, and how it is started: ``build``, if there is one, then ``command``, in one sandbox.

    Both are words as a shell would split them, without a shell. ``edit`` are the files that may change; ``*.py`` stands
    for all Python files of the folder that are not pinned, of which programs may have different ones; ``src/*.py`` for
    those of another folder.
    """

    command: Annotated[_Line, Meta(min_length=1)] = "python train.py"
    build: _Line = ""
    edit: Annotated[tuple[_Pattern, ...], Meta(min_length=1, max_length=MAX_PROGRAM_FILES)] = (ENTRY,)

    def stated(self) -> dict[str, object]:
        """What differs from a lone ``train.py``, as plain values."""
        values = {"command": self.command, "build": self.build, "edit": list(self.edit)}
        return {key: value for key, value in values.items() if getattr(USUAL, key) != getattr(self, key)}

    def files_among(self, names: Iterable[str], fixed: Collection[str]) -> tuple[str, ...]:
        """The files of a program among those of a folder: those that ``edit`` names, then those that it stands for."""
        named = [name for name in self.edit if "*" not in name]
        others = (name for name in sorted(names) if name not in named and name not in fixed and not is_tool_file(name))
        patterns = [pattern for pattern in self.edit if "*" in pattern]
        meant = (name for name in others if any(_stands_for(pattern, name) for pattern in patterns))
        return (*named, *meant)

    def fault(self, names: Iterable[str], fixed: Collection[str]) -> str | None:
        """Why files with these names are no program, as a sentence, or None. ``fixed`` are the pinned files."""
        names = tuple(names)
        if names == self.files_among(names, fixed):
            return None
        return f"the program is {', '.join(names)}; the task's is {', '.join(self.edit)}"


def _stands_for(pattern: str, name: str) -> bool:
    """Whether a pattern is for a file: ``*`` stands for no folder."""
    return pattern.count("/") == name.count("/") and fnmatchcase(name, pattern)


USUAL = Recipe()
"""The recipe of a task that names none: Python runs a lone ``train.py``."""


class Evaluator(TaskTable, frozen=True, kw_only=True):
    """How a task measures what a program leaves, where that is no language model.

    The program leaves the file ``artifact``, of at most ``artifact_mib``, in its working folder. Then ``command`` runs
    in a sandbox of its own, beside [harness] and the artifact, and prints the number. It reads all of [data], and draws
    what it draws from AUTORESEARCH_SEED. ``withheld`` are files of [data] and [harness] that the program doesn't see.
    Two evaluations of one artifact lie within ``tolerance`` of each other.

    With ``answers`` the evaluator can ask: that command runs beside it in another sandbox, with the program's files and
    the artifact. Each reads what the other writes: the descriptors are in AUTORESEARCH_TALK_READ and _WRITE.

    The evaluator's seed follows from the run's, so a program can work it out; only in pairs it can't. With ``fresh``
    each evaluation has a seed of its own: the author's is random and drawn when the program has ended, a verifier's
    follows from its proof.
    """

    command: Annotated[_Line, Meta(min_length=1)]
    artifact: _File
    artifact_mib: Annotated[int, Meta(ge=1, le=256)] = 64
    answers: _Line = ""
    tolerance: Annotated[float, Meta(gt=0, le=1e24)] = 0.0005
    withheld: Annotated[list[_FileInFolders], Meta(max_length=16)] = []
    fresh: bool = False


class Limits(TaskTable, frozen=True, kw_only=True):
    """Where the sandbox stops a run: wall-clock seconds, memory, disk, processes, captured output.

    ``program_kib`` is the largest size of a program: what it brings along need not be learned. With ``card`` only
    nodes with a graphics card run and check programs: a processor would not end in time.
    """

    seconds: _Amount = 900.0
    memory_mib: _Size = 2048
    disk_mib: _Size = 256
    processes: _Size = 64
    output_kib: _Size = 1024
    program_kib: _Size = 64
    card: bool = False


class Python(TaskTable, frozen=True, kw_only=True):
    """Which Python runs a task's programs and its harness, where it is not the node's own.

    ``requirements`` is a file of [harness]: the packages, locked. Each machine makes an environment of them, with
    ``base`` on top of the node's own packages. ``venv`` is an environment of this machine instead (``~`` unexpanded).
    """

    requirements: Annotated[str, Meta(pattern=r"\A([A-Za-z0-9_][A-Za-z0-9._-]*)?\Z", max_length=64)] = ""
    base: bool = False
    venv: _Line = ""


class Input(TaskTable, frozen=True, kw_only=True):
    """A file or a folder that programs read where it lies: its size, its digest, and of a folder how many files it has.

    The digest is described in docs/reference/task-toml.md: of a file up to 64 MiB it is what ``sha256sum`` says.
    """

    bytes: Annotated[int, Meta(ge=0, le=1 << 60)]
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    files: Annotated[int, Meta(ge=0, le=1 << 40)] = 0


class TaskSettings(TaskTable, frozen=True, kw_only=True):
    """The keys of ``task.toml`` that a task has as they are."""

    name: _Slug
    summary: _Line = ""
    metric: Metric
    budget: Budget
    limits: Limits = Limits()
    mounts: dict[str, _Line] = {}
    inputs: Annotated[dict[_Line, Input], Meta(max_length=MAX_INPUTS)] = {}
    python: Python | None = None


class Header(TaskSettings, frozen=True, kw_only=True):
    """The whole of ``task.toml``, before the files that it names are read.

    ``baseline`` is the digest of the program that the task began with, in hex. Without it the program in the folder is
    the baseline.
    """

    baseline: Annotated[str, Meta(pattern=r"\A([0-9a-f]{64})?\Z")] = ""
    program: Recipe = USUAL
    harness: dict[str, str] = {}
    data: dict[str, str] = {}
    evaluation: dict[str, object] | None = None


class Task(TaskSettings, frozen=True, kw_only=True):
    """A fixed question: the program may change, everything else here may not.

    ``harness`` holds the fixed files by name, ``baseline`` the program that the task began with (one text, see
    :mod:`autoresearch.task.program`), ``data`` the SHA-256 of each file that ``python prepare.py`` makes, ``mounts``
    folders of this machine that a run may read (``~`` unexpanded). ``inputs`` are data that is shown to runs where it
    lies, by its place below the folder; a mount ``./place`` says where this machine has it. ``program`` is the one that
    is in the folder now, edited or not. Without ``is_pinned`` the two are always the same: ``task.toml`` names no
    baseline, so an edit makes another task.
    """

    harness: Mapping[str, bytes]
    baseline: bytes
    data: Mapping[str, bytes]
    folder: Path
    program: bytes
    is_pinned: bool = True
    evaluation: Evaluation | None = None
    recipe: Recipe = USUAL
    evaluator: Evaluator | None = None

    def definition(self) -> dict[str, object]:
        """What makes it this question, as plain values: the same on every machine, whoever publishes it.

        The baseline stands there as a program, by its canonical digest. The summary, the folder and this machine's
        mounts and environment are not part of it.
        """
        definition: dict[str, object] = {
            "name": self.name,
            "metric": {key: value for key, value in msgspec.to_builtins(self.metric).items() if value is not None},
            "budget": msgspec.to_builtins(self.budget),
            "limits": _stated(self.limits),
            "harness": {name: hashlib.sha256(content).digest() for name, content in self.harness.items()},
            "data": dict(self.data),
            "baseline": source_digest(self.baseline.decode()),
        }
        if stated := self.recipe.stated():
            definition["program"] = stated
        if self.evaluation is not None:
            definition["evaluation"] = _stated(self.evaluation)
        if self.evaluator is not None:
            definition["evaluation"] = _stated(self.evaluator)
        if self.inputs:
            definition["inputs"] = {
                place: {"bytes": entry.bytes, "sha256": bytes.fromhex(entry.sha256)}
                | ({"files": entry.files} if entry.files else {})
                for place, entry in self.inputs.items()
            }
        if self.packages:
            assert self.python is not None
            definition["python"] = {
                "requirements": self.python.requirements,
                **({"base": True} if self.python.base else {}),
            }
        return definition

    @property
    def packages(self) -> list[Package]:
        """The packages that its programs need besides the node's own, locked; none where it names no such file."""
        if self.python is None or not self.python.requirements:
            return []
        name = self.python.requirements
        return parse_lock(self.harness[name].decode("utf-8", "replace"), name)

    @property
    def hidden(self) -> frozenset[str]:
        """The files of harness and data, and the inputs, that the program doesn't see."""
        if self.evaluation is not None:
            return frozenset({self.evaluation.text, *self.evaluation.withheld})
        return frozenset(() if self.evaluator is None else self.evaluator.withheld)

    @property
    def digest(self) -> bytes:
        """The task's identity: SHA-256 of the DAG-CBOR encoding of its definition."""
        return hashlib.sha256(encode(self.definition())).digest()


def _stated(section: TaskTable) -> dict[str, object]:
    """A table as plain values. Keys of a later version are left out where they say nothing: digests stay the same."""
    values = msgspec.to_builtins(section)
    unset = {field.name for field in msgspec.structs.fields(section) if values[field.name] == field.default}
    later = _LATER.get(type(section).__name__, set())
    return {key: value for key, value in values.items() if key not in later or key not in unset}


def evaluation_seed(seed: int) -> int:
    """The seed of the evaluator in a run with this seed, below 2**63, without ``fresh``. A program can know it."""
    return int.from_bytes(hashlib.sha256(_EVALUATION_DOMAIN + seed.to_bytes(8, "big")).digest()[:8], "big") >> 1


def episode_seed(seed: int, number: int) -> int:
    """The seed of one episode of an evaluation with this seed, below 2**128: that of one episode tells no other.

    ``numpy.random.SeedSequence``, and so every generator of numpy and Gymnasium, uses all of its bits.
    """
    return int.from_bytes(hashlib.sha256(_EPISODE_DOMAIN + b"%d/%d" % (seed, number)).digest()[:16], "big")


def seed_for(task_digest: bytes, source_digest: bytes, replicate: int) -> int:
    """The seed of one run, below 2**63: nobody chooses it. Replicate 0 is the discovery, 1 and up its repetitions.

    Raises ValueError for a digest that is not 32 bytes or a negative replicate.
    """
    if len(task_digest) != 32 or len(source_digest) != 32 or replicate < 0:
        raise ValueError("a seed follows from two digests of 32 bytes and a replicate of 0 or more")
    material = _SEED_DOMAIN + task_digest + source_digest + replicate.to_bytes(8, "big")
    return int.from_bytes(hashlib.sha256(material).digest()[:8], "big") >> 1


def has_chosen_seed(run: Run) -> bool:
    """Whether a run's seed is not the one that follows: its author chose it, which the record proves by itself."""
    return run.seed != seed_for(run.task, run.source_digest, run.replicate)
