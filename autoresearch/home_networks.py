"""The networks of one home: which there are, which is in use, where a new one goes, and what forgetting removes."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from autoresearch.errors import AmbiguousId, NotFound, Refused
from autoresearch.log import Log
from autoresearch.networks import DEFAULT_MANIFEST, Invitations, Manifest, load_manifest
from autoresearch.paths import NETWORKS, Paths
from autoresearch.records import Network
from autoresearch.sanitise import one_line
from autoresearch.views import roster_of

# Of an id, in hexadecimal: in the name of a folder, beside a name that two networks have, and what a person must type.
_FOLDER_DIGITS = 16
_SHOWN_DIGITS = 8
_LEAST_DIGITS = 4


@dataclass(frozen=True, slots=True)
class HomeNetwork:
    """One network of this home. ``name`` is unique here: two of one name have the first digits of their id with it."""

    name: str
    manifest: Manifest
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
    names = ["", *sorted(path.name for path in folder.iterdir())] if folder.is_dir() else [""]
    places = [place for place in map(paths.of_network, names) if place == paths or _is_kept(place)]
    found = [(place, load_manifest(place.manifest)) for place in places]
    called = Counter(manifest.network.name for _, manifest in found)
    return [
        HomeNetwork(_name(manifest.network, unique=called[manifest.network.name] == 1), manifest, place, place == paths)
        for place, manifest in found
    ]


def find_home_network(paths: Paths, text: str) -> HomeNetwork:
    """The network that a person means by its name or the beginning of its id.

    Raises:
        NotFound: this home has none of that name.
        AmbiguousId: it has several.
    """
    found = home_networks(paths)
    named = [one for one in found if text in (one.name, one.manifest.network.name)]
    exact = [one for one in named if text == one.name]
    by_id = [one for one in found if len(text) >= _LEAST_DIGITS and one.id.startswith(text.lower())]
    chosen = [one for one in found if one.id == text] or exact or named or by_id
    if len(chosen) > 1:
        raise AmbiguousId(
            f"“{one_line(text, 80)}” can mean several networks of this home", [one.name for one in chosen]
        )
    if not chosen:
        raise NotFound(
            f"this home has no network “{one_line(text, 80)}”",
            hint="autoresearch network list shows those that it has; autoresearch network join INVITE adds one",
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
    known = next((one for one in home_networks(paths) if one.manifest.network == network and _is_kept(one.paths)), None)
    if known is not None:
        return known.paths
    # A network that was forgotten left there which records this device has signed in it.
    own, first = paths.of_network(_folder(network)), paths.of_network("")
    return own if own.log.parent.is_dir() or _is_kept(first) else first


def use_network(paths: Paths) -> None:
    """Have the network of these paths be the one in use; a process that is killed leaves the old one or the new one.

    Raises:
        Refused: that can't be written.
    """
    temporary = paths.in_use.with_name(f".{paths.in_use.name}.{secrets.token_hex(4)}")
    try:
        paths.create()
        with temporary.open("x", encoding="utf-8") as file:
            file.write(f"{paths.folder}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(paths.in_use)
    except OSError as error:
        raise Refused(f"{paths.in_use} can't be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def forget_network(found: HomeNetwork) -> None:
    """Remove a network's log, blobs and local state, never a key; killed in the middle, it may be forgotten again.

    Which records this device signed in it stays, so that joining it again doesn't fork the device's history.

    Raises:
        Refused: it is in use, or something can't be removed.
    """
    if found.in_use:
        raise Refused(f"the network {found.name} is in use", hint="first use another: autoresearch network use NAME")
    paths = found.paths
    try:
        if not paths.folder and paths.heads.is_dir():
            kept = paths.of_network(_folder(found.manifest.network)).heads
            shutil.copytree(paths.heads, kept, dirs_exist_ok=True)
        for gone in (paths.blobs, paths.spool, paths.network, paths.local, paths.attestor, paths.log):
            _remove(gone)
        Invitations(paths.manifest, found.manifest.network).forget()
        if not paths.folder:
            _remove(paths.heads)
        paths.manifest.unlink(missing_ok=True)
    except OSError as error:
        raise Refused(f"{error.filename} can't be removed: {error.strerror}", hint="check its permissions") from error


def contents_of(found: HomeNetwork) -> Contents:
    """What the log of a network holds. Raises Refused when it can't be read."""
    manifest = found.manifest
    with Log.open(found.paths.log, manifest.network, read_only=True, trust=manifest.trust) as log:
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
