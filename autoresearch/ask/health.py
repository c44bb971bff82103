"""What ails a node, found by one function: status, readiness, pages, events and ``node doctor`` show the same.

A condition is a check that is not ok. It has the remedy beside it.
"""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from errno import EMFILE, ENFILE
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from autoresearch.ask.node import Check, PeerView
from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.paths import Paths
from autoresearch.run.sandbox.cards import card_of, named_devices
from autoresearch.settings import Settings, load_settings
from autoresearch.text import counted, duration, size
from autoresearch.trust.identity import load_identity
from autoresearch.words import Part, Result

if TYPE_CHECKING:
    from autoresearch.log.log import Log

# With less nothing can be written, whatever the settings allow.
LEAST_FREE_BYTES = 1 << 20
# Clocks that differ by less from the peers' do no harm.
SKEW_MS = 60_000
NO_DESCRIPTORS = "no more files can be opened"
MORE_DESCRIPTORS = "autoresearch down && ulimit -n 1024 && autoresearch up: as a service, LimitNOFILE=1024 in its unit"
# A daemon with a network, a worker and some listeners has about 60 open.
LEAST_DESCRIPTORS = 256
# With fewer left the next run, connection or page can fail.
SPARE_DESCRIPTORS = 16
SET_CLOCK = "set the clock: timedatectl set-ntp true"


def examine(paths: Paths, environment: Mapping[str, str], now_ms: int, *, log: Log | None = None) -> list[Check]:
    """Every check of a node's home; ``log`` where it is open. Of a home that can't be read there is one check.

    Changes nothing, and raises nothing: what keeps a check from being made is what it found.
    """
    checks = [guarded(Part.HOME, lambda: _home(paths))]
    if checks[0].result == Result.FAILED and not _is_readable(paths):
        return checks
    settings = Settings()
    try:
        settings = load_settings(paths.settings, environment)[0]
        checks.append(passed(Part.SETTINGS, f"{counted(settings.work.workers, 'worker')}, from {paths.settings}"))
    except AutoresearchError as error:
        checks.append(failed(Part.SETTINGS, error))
    checks += [
        guarded(Part.DEVICE, lambda: _device(settings.work.device)),
        guarded(Part.DISK, lambda: _disk(paths, settings.storage.minimum_free_mib << 20)),
    ]
    if not paths.data.exists():  # nothing was ever kept here; what reads a log takes longest to load
        return checks
    checks += [
        guarded(Part.BLOBS, lambda: _blobs(paths, settings.storage.blobs_mib << 20)),
        guarded(Part.KEYS, lambda: _keys(paths)),
    ]
    try:
        with nullcontext(log) if log else _open_log(paths) as opened:
            me = _own_key(paths)
            return [
                *checks,
                guarded(Part.LOG, partial(_complete, opened, me)),
                guarded(Part.FORK, partial(_unforked, opened, me)),
                guarded(Part.CLOCK, partial(_clock, opened, me, now_ms)),
            ]
    except (AutoresearchError, OSError, ValueError) as error:
        return [*checks, failed(Part.LOG, error)]


def conditions(checks: Sequence[Check]) -> list[Check]:
    """What is not ok, the failures first."""
    return sorted(
        (check for check in checks if check.result != Result.OK), key=lambda check: check.result != Result.FAILED
    )


def is_usable(checks: Sequence[Check]) -> bool:
    """Whether no condition keeps the node from its work."""
    return all(check.result != Result.FAILED for check in checks)


def guarded(name: str, look: Callable[[], Check]) -> Check:
    """The check, or what kept it from being made."""
    try:
        return look()
    except (AutoresearchError, OSError, ValueError) as error:  # ValueError: stored bytes that are no record
        return failed(name, error)


def passed(name: str, detail: str) -> Check:
    """A check that found nothing wrong."""
    return Check(name=name, result=Result.OK, detail=detail)


def failed(name: str, error: Exception) -> Check:
    """The check that an error is."""
    if isinstance(error, AutoresearchError):
        return Check(name=name, result=Result.FAILED, detail=str(error), fix=error.hint)
    if not isinstance(error, OSError):  # of a database, or of bytes in it that spell no record
        from autoresearch.log.connection import REPAIR

        return Check(name=name, result=Result.FAILED, detail=f"it can't be read: {error}", fix=REPAIR)
    if error.errno in (EMFILE, ENFILE):
        return Check(name=name, result=Result.FAILED, detail=NO_DESCRIPTORS, fix=MORE_DESCRIPTORS)
    place = f": {error.filename}" if error.filename else ""
    return Check(name=name, result=Result.FAILED, detail=f"{error.strerror or error}{place}", fix="look at that place")


def warning(name: str, sentence: str) -> Check:
    """A condition that a sentence tells; what follows an arrow in it is the remedy."""
    detail, _, fix = sentence.partition(" → ")
    return Check(name=name, result=Result.WARNING, detail=detail, fix=fix)


def open_files() -> Check:
    """Whether this process may open as many files and connections as it needs."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sum(_is_open(number) for number in range(min(most, 4 * LEAST_DESCRIPTORS)))
    detail = f"{used} of {most} are open"
    if most - used < SPARE_DESCRIPTORS:
        return Check(name=Part.OPEN_FILES, result=Result.FAILED, detail=detail, fix=MORE_DESCRIPTORS)
    if most < LEAST_DESCRIPTORS:
        return warning(Part.OPEN_FILES, f"{detail}; a node can need {LEAST_DESCRIPTORS} → {MORE_DESCRIPTORS}")
    return passed(Part.OPEN_FILES, detail)


def _is_open(descriptor: int) -> bool:
    """Asks for each number: to list them would take one."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def of_peers(peers: Sequence[PeerView]) -> list[Check]:
    """The conditions that the connected peers show: all are strangers, or their clocks differ from this one."""
    connected = [peer for peer in peers if peer.connected]
    checks = []
    if connected and all(peer.other_network for peer in connected):
        text = "all connected peers are in another network"
        checks.append(warning(Part.PEERS, f"{text} → all must join the same one: autoresearch network show"))
    skew = skew_ms(peers)
    if skew is not None and abs(skew) > SKEW_MS:
        way = "behind" if skew > 0 else "ahead of"
        text = f"this clock is {duration(abs(skew))} {way} the peers'; peers hold back records that are far ahead"
        checks.append(warning(Part.CLOCK, f"{text} → {SET_CLOCK}"))
    return checks


def skew_ms(peers: Sequence[PeerView]) -> int | None:
    """How far the connected peers' clocks are ahead of this one, by their median; None without any."""
    skews = [peer.clock_ahead_ms for peer in peers if peer.connected and peer.agent]
    return int(median(skews)) if skews else None


def _folders(paths: Paths) -> list[Path]:
    return [paths.config, paths.data, paths.state, paths.cache]


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above that exists."""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _is_readable(paths: Paths) -> bool:
    places = [_nearest(folder) for folder in _folders(paths)]
    is_there = all(place.is_dir() and shutil.disk_usage(place).total for place in places)
    return is_there and all(os.access(place, os.X_OK) for place in places) and os.access(places[1], os.R_OK)


def _home(paths: Paths) -> Check:
    """Whether the folders of this node can be read and written, or made, and the files in them written."""
    for folder in _folders(paths):
        place = _nearest(folder)
        if not place.is_dir():
            raise Refused(f"{place} is no folder, so {folder} can't be one", hint="name another: AUTORESEARCH_HOME")
        if not shutil.disk_usage(place).total:
            raise Refused(f"{folder} can't be made: {place} keeps no files", hint="name another: AUTORESEARCH_HOME")
        right = os.X_OK | os.W_OK | (os.R_OK if place == folder else 0)
        if not os.access(place, right):
            verb = "written" if os.access(place, os.X_OK) else "read"
            raise Refused(
                f"{folder} can't be {verb}: {place} is closed to you or read only",
                hint="let it be written, or name another: AUTORESEARCH_HOME",
            )
    for file in (paths.log, paths.local, paths.daemon_log):
        if file.exists() and not os.access(file, os.R_OK | os.W_OK):
            raise Refused(f"{file} is closed to you", hint=f"chown it: sudo chown -R $USER {file.parent}")
    return passed(Part.HOME, str(paths.data))


def _device(device: str) -> Check:
    cards = [(name, card_of(name)) for name in named_devices(device)]
    return passed(
        Part.DEVICE, ", ".join(f"{name}: {card.model}, {card.uuid}" if card else name for name, card in cards)
    )


def _disk(paths: Paths, minimum: int) -> Check:
    """Whether there is room for records, logs, checkpoints and data."""
    free, folder = min((shutil.disk_usage(place).free, place) for place in map(_nearest, _folders(paths)))
    least = max(minimum, LEAST_FREE_BYTES)
    detail = f"{size(free)} free at {folder}"
    if free < least:
        hint = f"free some: below {size(least)} the daemon does not work (storage.minimum_free_mib)"
        raise Refused(f"the disk is nearly full: {detail}", hint=hint)
    return passed(Part.DISK, detail)


def _blobs(paths: Paths, quota: int) -> Check:
    """Whether sources, logs and checkpoints fit what they may take."""
    from autoresearch.log.blobs import BlobStore

    with BlobStore(paths.blobs, read_only=True) as blobs:
        used = blobs.used_bytes()
    detail = f"{size(used)} of {size(quota)} (storage.blobs_mib)"
    if used > quota:
        fix = "own runs and the best are never deleted; allow more: autoresearch node config set storage.blobs_mib N"
        return Check(name=Part.BLOBS, result=Result.WARNING, detail=detail, fix=fix)
    return passed(Part.BLOBS, detail)


def _keys(paths: Paths) -> Check:
    """Whether the keys can be read, and nobody else can read them."""
    try:
        return passed(
            Part.KEYS, f"device key {load_identity(paths.keys).device.public.hex()[:16]}…, for this user only"
        )
    except NotFound:
        return passed(Part.KEYS, "there are no keys yet; the daemon makes them at its first start")


def _own_key(paths: Paths) -> bytes:
    try:
        return load_identity(paths.keys).device.public
    except AutoresearchError:
        return b""


def _open_log(paths: Paths) -> AbstractContextManager[Log]:
    from autoresearch.log.connection import refuse_unread_changes
    from autoresearch.log.log import Log
    from autoresearch.trust.manifest_file import load_manifest

    network = load_manifest(paths.manifest).network
    refuse_unread_changes(paths.log)
    if paths.log.exists() and not paths.log.stat().st_size:
        raise Refused(f"the log {paths.log} is emptied: it has 0 bytes", hint="put a backup in its place")
    return Log.open(paths.log, network, read_only=True)


def _complete(log: Log, me: bytes) -> Check:
    """Whether the log has all of its tables, and all that this device signed."""
    from autoresearch.log.connection import REPAIR
    from autoresearch.log.repair import lacking

    if lacks := lacking(log.path, log.reader.connection):
        raise Refused(f"{log.path} is damaged: {lacks}", hint=REPAIR)
    lost = log.writer.missing_own(me) if me else None
    if lost:
        is_older = log.records.count(author=me)
        has = f"this device signed a record number {lost.seq} that is not here: an older copy was put back"
        hint = "put the newest copy back, or accept that the history forks: autoresearch node doctor --accept-fork"
        lacks = f"the log lacks all {lost.seq} records that this device signed: it was emptied or deleted"
        raise Refused(has if is_older else lacks, hint=hint)
    if not log.path.exists():
        return passed(Part.LOG, "there is none yet; the daemon makes it at its first start")
    return passed(Part.LOG, f"{counted(log.records.count(), 'record')}, {size(log.path.stat().st_size)}")


def _unforked(log: Log, me: bytes) -> Check:
    """Whether this device signed one record for each number."""
    forked = [fork.seq for fork in log.devices.forks(me) if not fork.merged] if me else []
    if forked:
        detail = f"this device's history forked at its record {forked[0]}: later runs don't count by themselves"
        return warning(Part.FORK, f"{detail} → autoresearch down && autoresearch node id merge")
    return passed(Part.FORK, "this device signed one history")


def _clock(log: Log, me: bytes, now_ms: int) -> Check:
    """Whether the clock is not before the network began, nor behind the records here."""
    if now_ms < log.network.start_ms:
        raise Refused("the clock is set to a time before the network began", hint=SET_CLOCK)
    newest = log.records.newest(limit=1)
    ahead_ms = newest[0].time - now_ms if newest else 0
    if ahead_ms > log.network.ahead_ms:
        whose = "this device signed a record" if newest[0].author == me else "the newest record here is"
        detail = f"{whose} {duration(ahead_ms)} ahead of the clock"
        wait = "; if it is right, names and trust lists of then count until then" if newest[0].author == me else ""
        return warning(Part.CLOCK, f"{detail} → {SET_CLOCK}{wait}")
    return passed(Part.CLOCK, "plausible")
