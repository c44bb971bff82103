"""Projects: how fast a component is found among many and installed, and what counting steps costs in training."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from autoresearch.ask.registry.choosing import resolve, search
from autoresearch.ask.registry.installing import checked_release, write_tree
from autoresearch.ask.registry.preparing import prepared
from autoresearch.ask.requests import Description
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.kinds import BlobRef, Release
from autoresearch.record.record import DEFAULT_NETWORK, seal
from autoresearch.task.release import File
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from benchmarks.project_exchange import measure_exchange
from benchmarks.project_steps import measure_learning, measure_steps

COMPARED = (
    "the files of the same component written one by one, without checks and without packages (write_ms); "
    "and SARSA written by hand around the bare environment (steps_ratio)"
)

RELEASES, QUICK_RELEASES = 10_000, 1000
PUBLISHERS = 200
VERSIONS = 8
ROUNDS = 20
START_MS = 1_800_000_000_000
TREE = f"h1:{'ab' * 32}"
TYPES = ("environment", "policy", "trainer", "dataset")
WORDS = [
    "deep",
    "wide",
    "small",
    "sparse",
    "noisy",
    "continuous",
    "discrete",
    "tabular",
    "pixel",
    "maze",
    "arm",
    "walker",
    "replay",
    "target",
    "soft",
    "double",
]
ASKED = ("maze", "tabular walker", "component_77", "soft double replay")


def measure(*, quick: bool) -> dict[str, float]:
    """Milliseconds, the median of many: of a search, of resolving a name, of an installation."""
    count = QUICK_RELEASES if quick else RELEASES
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        figures = _found(folder, count) | _installed(folder, 3 if quick else ROUNDS)
    trained = measure_steps(quick=quick) | measure_learning(quick=quick)
    return {"releases": float(count), **figures, **trained, **measure_exchange(quick=quick)}


def _found(folder: Path, count: int) -> dict[str, float]:
    chance = random.Random(16)
    trust = Trust(participants=frozenset(_publisher(number).public for number in range(PUBLISHERS // 2)))
    with Log.open(folder / "log.sqlite", DEFAULT_NETWORK, trust=trust) as log:
        _fill(log, count, chance)
        questions = [(words, kind) for words in ASKED for kind in ("", "policy")]
        for words, kind in questions:
            search(log, words, kind=kind)
        searched = [_milliseconds(partial(search, log, words, kind=kind)) for words, kind in questions * 3]
        listed = [_milliseconds(partial(search, log, kind=kind)) for kind in TYPES * 3]
        trusted = [number for number in range(count // VERSIONS) if number % PUBLISHERS < PUBLISHERS // 2]
        named = [(TYPES[number % len(TYPES)], f"component_{number}") for number in trusted[:100]]
        resolved = [_milliseconds(partial(resolve, log, kind, name)) for kind, name in named]
    return {
        "search_ms": statistics.median(searched),
        "search_worst_ms": max(searched),
        "list_type_ms": statistics.median(listed),
        "resolve_ms": statistics.median(resolved),
    }


def _fill(log: Log, count: int, chance: random.Random) -> None:
    batch: list[tuple[bytes, bytes]] = []
    seqs: Counter[int] = Counter()
    for number in range(count):
        place = number // VERSIONS % PUBLISHERS
        seqs[place] += 1
        words = " ".join(chance.choices(WORDS, k=12))
        body = Release(
            name=f"component_{number // VERSIONS}",
            version=f"1.{number % VERSIONS}.0",
            summary=words[:60],
            bundle=BlobRef(sha256=chance.randbytes(32), size=10_240),
            metadata={
                "type": TYPES[number // VERSIONS % len(TYPES)],
                "tree": TREE,
                "description": words,
                "class_name": "main:Main",
            },
        )
        seq, owner = seqs[place], _publisher(place)
        prev = b"" if seq == 1 else bytes(32)
        made = seal(owner, DEFAULT_NETWORK, "release", body, seq=seq, prev=prev, time_ms=START_MS + number)
        batch.append((made.raw, made.signature))
    stored = log.writer.ingest(batch, now_ms=START_MS + count)
    assert all(verdict.record for verdict in stored), stored[0]


def _install(log: Log, blobs: BlobStore, release: bytes, folder: Path) -> None:
    write_tree(checked_release(log, blobs, release).files, folder)


def _installed(folder: Path, rounds: int) -> dict[str, float]:
    _write_wheel(folder / "wheels")
    files = [File(f"part{number}.py", b"VALUE = 1\n" * 100) for number in range(20)]
    files += [File("main.py", b"class Main:\n    pass\n"), File("requirements.txt", b"tiny_a>=1\n")]
    said = Description(type="policy", name="small", version="1.0.0", class_name="main:Main")
    owner = _publisher(0)
    with Log.open(folder / "small.sqlite", DEFAULT_NETWORK) as log, BlobStore(folder / "blobs") as blobs:
        made = prepared(files, said)
        alone = prepared(files[:-1], said)
        with_packages = log.writer.append(owner, "release", made.body(blobs.put(made.bundle)), now_ms=START_MS).id
        plain = log.writer.append(owner, "release", alone.body(blobs.put(alone.bundle)), now_ms=START_MS).id
        with _local_packages(folder / "wheels"):
            _install(log, blobs, with_packages, folder / "warm")
            whole = [
                _milliseconds(partial(_install, log, blobs, with_packages, folder / f"whole{number}"))
                for number in range(rounds)
            ]
        without = [
            _milliseconds(partial(_install, log, blobs, plain, folder / f"plain{number}")) for number in range(rounds)
        ]
    written = [_milliseconds(partial(_write, files, folder / f"written{number}")) for number in range(rounds)]
    return {
        "install_ms": statistics.median(whole),
        "install_without_packages_ms": statistics.median(without),
        "write_ms": statistics.median(written),
    }


def _write(files: list[File], folder: Path) -> None:
    folder.mkdir()
    for file in files:
        (folder / file.path).write_bytes(file.content)


def _publisher(number: int) -> KeyPair:
    return KeyPair.from_seed((number + 1).to_bytes(32, "big"))


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _write_wheel(folder: Path) -> None:
    """A package without needs, as pip reads it."""
    folder.mkdir()
    about = "tiny_a-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny_a-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_a.py", "VALUE = 1\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny_a\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


@contextmanager
def _local_packages(folder: Path) -> Iterator[None]:
    """Packages come from a folder, whatever this machine's settings are: a cache that is warm."""
    before = dict(os.environ)
    os.environ.update(PIP_CONFIG_FILE=os.devnull, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(folder))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
