"""The networks of one home: which there are, which is in use, where a new one goes, what forgetting removes.

Also a participant's own finished runs of one network, published anew in another: signed there, each naming its origin.

Values are taken as they were reported: the other network verifies them. A run that is there already is left alone, so
this may be done again, also after it was killed in the middle. So is a program that another participant ran there with
the same seed: published a second time it would look like a copy.
"""

from __future__ import annotations

import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import msgspec

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import lock_device
from autoresearch.log.local import forget_local
from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.context import own_keys
from autoresearch.paths import FOLDER, NETWORKS, Paths, sync_path, write_refusals, write_whole
from autoresearch.record.kinds import BlobRef, Run, Task
from autoresearch.record.record import Network, Record
from autoresearch.text import did_you_mean, one_line
from autoresearch.trust.invite import Invitations
from autoresearch.trust.manifest import DEFAULT_MANIFEST, NetworkManifest
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.words import RunStatus

# Of an id, in hexadecimal: in the name of a folder, beside a name that two networks have, and what a person must type.
_FOLDER_DIGITS = 16
_SHOWN_DIGITS = 8
_LEAST_DIGITS = 4
_LEAST_LETTERS = 3
# What a folder's name begins with while its network is made; no network's does.
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True, slots=True)
class HomeNetwork:
    """One network of this home. ``name`` is unique here: two of one name have the first digits of their id with it."""

    name: str
    manifest: NetworkManifest
    paths: Paths
    in_use: bool

    @property
    def id(self) -> str:
        """The network's id, hexadecimal."""
        return self.manifest.network.id.hex()


@dataclass(frozen=True, slots=True)
class Contents:
    """What a log holds: its records, and the participants that signed them."""

    records: int
    participants: int


def home_networks(paths: Paths) -> list[HomeNetwork]:
    """The networks of this home, the first one first; the one in use is among them even when nothing is kept of it.

    Raises:
        UsageError: the manifest of one is damaged.
    """
    folder = paths.data / NETWORKS
    names = (
        ["", *sorted(path.name for path in folder.iterdir() if FOLDER.fullmatch(path.name))]
        if folder.is_dir()
        else [""]
    )
    places = [place for place in map(paths.of_network, names) if place == paths or _is_kept(place)]
    manifests = [(place, load_manifest(place.manifest)) for place in places]
    called = Counter(manifest.network.name for _, manifest in manifests)
    return [
        HomeNetwork(_name(manifest.network, unique=called[manifest.network.name] == 1), manifest, place, place == paths)
        for place, manifest in manifests
    ]


def find_home_network(paths: Paths, text: str) -> HomeNetwork:
    """The network that a person means by its name, the beginning of that, or of its id.

    Raises:
        NotFound: this home has none of that name.
        AmbiguousId: it has several.
    """
    networks = home_networks(paths)
    named = [network for network in networks if text in (network.name, network.manifest.network.name)]
    exact = [network for network in named if text == network.name]
    begun = [network for network in networks if len(text) >= _LEAST_LETTERS and network.name.startswith(text)]
    by_id = [network for network in networks if len(text) >= _LEAST_DIGITS and network.id.startswith(text.lower())]
    chosen = [network for network in networks if network.id == text] or exact or named or by_id or begun
    if len(chosen) > 1:
        raise AmbiguousId(
            f"“{one_line(text, 80)}” can mean several networks of this home", [network.name for network in chosen]
        )
    if not chosen:
        raise NotFound(
            f"this home has no network “{one_line(text, 80)}”",
            hint=did_you_mean(text, [network.name for network in networks])
            or "autoresearch network list shows those that it has; autoresearch network join INVITE adds one",
        )
    return chosen[0]


def network_to_use(paths: Paths, text: str) -> HomeNetwork:
    """The same; the built-in network, which needs no manifest, may also be one that this home has nothing of yet.

    Raises:
        NotFound: this home has none of that name.
        AmbiguousId: it has several.
    """
    try:
        return find_home_network(paths, text)
    except NotFound:
        if text != DEFAULT_MANIFEST.network.name:
            raise
        return HomeNetwork(text, DEFAULT_MANIFEST, place_for(paths, DEFAULT_MANIFEST.network), in_use=False)


def place_for(paths: Paths, network: Network) -> Paths:
    """Where a network's files lie, or will lie: the first network of a home needs no folder of its own."""
    for home in home_networks(paths):
        if home.manifest.network == network and _is_kept(home.paths):
            return home.paths
    # A network that was forgotten left there which records this device has signed in it.
    own, first = paths.of_network(_folder(network)), paths.of_network("")
    return own if own.log.parent.is_dir() or _is_kept(first) else first


def use_network(paths: Paths) -> None:
    """Have the network of these paths be the one in use; a process that is killed leaves the old one or the new one.

    Raises:
        Refused: that can't be written.
    """
    paths.create()
    with write_refusals(paths.in_use):
        write_whole(paths.in_use, f"{paths.folder}\n")


def found_network(paths: Paths, manifest: NetworkManifest, fill: Callable[[Paths], None]) -> Paths:
    """Make a new network's files beside those of this home, and have ``fill`` publish what it begins with.

    It appears when it is whole; what a killed process left is removed the next time. ``fill`` opens the notebook, so
    that no daemon runs meanwhile. Which network is in use stays as it is.

    Raises:
        Refused: something can't be written; and what ``fill`` raises.
    """
    paths.create()
    stage = paths.of_network(f"{_UNFINISHED}{secrets.token_hex(4)}")
    with write_refusals(hint="check its permissions"):
        with lock_device(paths.keys / "device.key"):
            for root in (paths.data, paths.state):
                for left in (root / NETWORKS).glob(f"{_UNFINISHED}*"):
                    shutil.rmtree(left, ignore_errors=True)
        try:
            save_manifest(stage.manifest, manifest)
            fill(stage)
            place = paths.of_network(_folder(manifest.network))
            stage.manifest.parent.replace(place.manifest.parent)
            sync_path(place.manifest.parent.parent)
        finally:
            for folder in (stage.log.parent, stage.local.parent):
                shutil.rmtree(folder, ignore_errors=True)
    return place


def forget_network(network: HomeNetwork) -> None:
    """Remove a network's log, blobs and local state, never a key; killed in the middle, it may be forgotten again.

    Which records this device signed in it stays, so that joining it again doesn't fork the device's history.

    Raises:
        Refused: it is in use, or something can't be removed.
    """
    if network.in_use:
        raise Refused(f"the network {network.name} is in use", hint="first use another: autoresearch network use NAME")
    paths = network.paths
    try:
        if not paths.folder and paths.heads.is_dir():
            own_heads = paths.of_network(_folder(network.manifest.network)).heads
            shutil.copytree(paths.heads, own_heads, dirs_exist_ok=True)
        if not paths.folder and paths.local.exists():
            forget_local(paths.local)  # the home's stars are in it
        for gone in (paths.blobs, paths.spool, paths.network, paths.log, *([paths.local] if paths.folder else [])):
            _remove(gone)
        Invitations(paths.manifest, network.manifest.network).forget()
        if not paths.folder:
            _remove(paths.heads)
        paths.manifest.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"{error.filename} can't be removed: {error.strerror}", hint="check its permissions") from error


def contents_of(network: HomeNetwork) -> Contents:
    """What the log of a network holds. Raises Refused when it can't be read."""
    manifest = network.manifest
    with Log.open(network.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log:
        roster, newest_ms = roster_of(log), log.records.newest_ms()
        return Contents(log.records.count(), len({roster.voter(key, newest_ms).root for key in log.devices.all()}))


def _is_kept(place: Paths) -> bool:
    return place.log.exists() or place.manifest.exists()


def _folder(network: Network) -> str:
    return f"{network.name}-{network.id.hex()[:_FOLDER_DIGITS]}"


def _name(network: Network, *, unique: bool) -> str:
    return network.name if unique else f"{network.name}-{network.id.hex()[:_SHOWN_DIGITS]}"


def _remove(path: Path) -> None:
    """A folder, or the files of a database: those of its unfinished changes first."""
    if path.is_dir():
        shutil.rmtree(path)
    for end in ("-wal", "-shm", ""):
        path.with_name(path.name + end).unlink(missing_ok=True)


_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class BroughtRuns:
    """How many runs were published now, and how many are still to come.

    ``skipped`` were left out because their program is not on this machine, ``repeated`` because another participant has
    run it in the other network.
    """

    brought: int
    skipped: int
    repeated: int
    left: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """The runs that another network lacks, parents first, and how many more are there as ``repeated`` by others."""

    runs: list[Record]
    repeated: int


def runs_to_bring(source: Log, target: Log, device: bytes, now_ms: int) -> Waiting:
    """The finished runs of a device's participant that are not in another network yet. Reads only."""
    own = _own(source, target, device, now_ms)
    published = {origin for author in own for origin in _published(target, author)}
    unpublished = [
        stored.record
        for task in dict.fromkeys(row.digest for row in source.tasks.all())
        for author in own
        for stored in source.runs.newest(task, author=author, limit=_ALL)
        if isinstance(run := stored.record.body, Run)
        and run.status == RunStatus.OK
        and _origin(stored.record) not in published
    ]
    runs = [run for run in unpublished if all(row.author in own for row in _alike(target, run))]
    ordered = _parents_first(sorted(runs, key=lambda run: (run.time, run.seq, run.id)))
    return Waiting(ordered, len(unpublished) - len(runs))


def bring_runs(origin: HomeNetwork, notebook: Notebook, now_ms: Callable[[], int], *, most: int) -> BroughtRuns:
    """Publish up to so many own runs of another network of this home. ``now_ms`` is the clock, Unix milliseconds.

    Raises:
        Refused: no root key speaks for this device there; or the day's quota is used up, or nothing can be written.
            What was published until then stays.
    """
    network = origin.manifest.network
    with ExitStack() as opened:
        log = opened.enter_context(Log.open(origin.paths.log, network, read_only=True))
        blobs = opened.enter_context(BlobStore(origin.paths.blobs, read_only=True))
        waiting = runs_to_bring(log, notebook.log, notebook.author, now_ms())
        moving = _Moving(log, blobs, notebook, _own(log, notebook.log, notebook.author, now_ms()))
        brought = skipped = 0
        if waiting.runs:
            notebook.speak_for_root(now_ms())
        for record in waiting.runs:
            if brought == most:
                break
            if moving.take(record, now_ms()):
                brought += 1
            else:
                skipped += 1
    return BroughtRuns(brought, skipped, waiting.repeated, len(waiting.runs) - brought - skipped)


class _Moving:
    """From one network's log and blobs to the notebook of another."""

    def __init__(self, log: Log, blobs: BlobStore, notebook: Notebook, own: frozenset[bytes]) -> None:
        self._log = log
        self._blobs = blobs
        self._notebook = notebook
        self._own = own
        self._there: dict[bytes, dict[bytes, bytes]] = {}

    def take(self, record: Record, now_ms: int) -> bool:
        """Publish one run with what it needs; whether its program is here and it fits into a record."""
        run = record.body_as(Run)
        if not self._copy(run.source) or not self._take_task(run.task, now_ms):
            return False
        again = msgspec.structs.replace(
            run,
            parent=self._parent(run.parent),
            log=run.log if run.log and self._copy(run.log) else None,
            checkpoint=run.checkpoint if run.checkpoint and self._copy(run.checkpoint) else None,
            origin=_origin(record),
        )
        try:
            published = self._notebook.publish_run_body(again, now_ms)
        except UsageError:  # with the id of its origin it is larger than a record of that network
            return False
        self._of(published.author)[_origin(record)] = published.id
        return True

    def _take_task(self, digest: bytes, now_ms: int) -> bool:
        """Have the task published there; whether it is."""
        if self._notebook.log.tasks.find(digest) is not None:
            return True
        row = self._log.tasks.find(digest)
        task = self._log.records.get(row.id).body if row else None
        files = (task.baseline, *task.harness.values()) if isinstance(task, Task) else ()
        if not isinstance(task, Task) or not all(self._copy(blob) for blob in files):
            return False
        self._notebook.publish_task_body(task, now_ms)
        return True

    def _parent(self, parent: bytes | None) -> bytes | None:
        """The run there that the parent's author published of it; else one of the same program and seed, or none."""
        record = self._log.records.find(parent) if parent else None
        if record is None:
            return None
        origin, authors = _origin(record), self._own if record.author in self._own else {record.author}
        moved = next((self._of(author)[origin] for author in authors if origin in self._of(author)), None)
        return moved or min(((row.time, row.id) for row in _alike(self._notebook.log, record)), default=(0, None))[1]

    def _of(self, author: bytes) -> dict[bytes, bytes]:
        if author not in self._there:
            self._there[author] = _published(self._notebook.log, author)
        return self._there[author]

    def _copy(self, blob: BlobRef) -> bool:
        """Have a blob there; whether it is here at all."""
        if self._notebook.blobs.has(blob.sha256):
            return True
        if not self._blobs.has(blob.sha256):
            return False
        with self._blobs.open(blob.sha256) as file:
            self._notebook.blobs.put_stream(iter(lambda: file.read(1 << 20), b""))
        return True


def _own(source: Log, target: Log, device: bytes, now_ms: int) -> frozenset[bytes]:
    return own_keys(source, device, now_ms) | own_keys(target, device, now_ms)


def _alike(log: Log, record: Record) -> list[HistoryRow]:
    """The finished runs there of the same program with the same seed."""
    run = record.body
    if not isinstance(run, Run):
        return []
    runs = log.runs.of_programs(run.task, [run.source_digest])
    rows = log.runs.history_of([run_id for _, replicate, _, run_id, _ in runs if replicate == run.replicate])
    return [row for row in rows if row.status == RunStatus.OK]


def _published(log: Log, author: bytes) -> dict[bytes, bytes]:
    """The runs that a device published in this network, withdrawn ones too, by the ids of their origins."""
    return {_origin(run): run.id for run in log.records.newest(kind="run", author=author, limit=_ALL)}


def _origin(run: Record) -> bytes:
    """The first record of a run: what comes from a network to which it was brought is still the same run."""
    return (isinstance(run.body, Run) and run.body.origin) or run.id


def _parents_first(runs: Iterable[Record]) -> list[Record]:
    """The same runs, each after its parent: the times of several devices need not be in that order."""
    by_id = {run.id: run for run in runs}
    order: TopologicalSorter[bytes] = TopologicalSorter()
    for run in by_id.values():
        parent = run.body.parent if isinstance(run.body, Run) else None
        order.add(run.id, *([parent] if parent in by_id and parent else []))
    return [by_id[run] for run in order.static_order()]
