"""Components and their releases, as answers."""

from __future__ import annotations

from autoresearch.log.standing.answers import NOBODY, Answer, ParticipantView
from autoresearch.record.kinds import JoinedFields
from autoresearch.task.release import Metadata


class ComponentView(Answer, frozen=True, kw_only=True):
    """A publisher's component, by the release that is its default: the newest one that is not yanked.

    ``releases`` counts those that were found. ``attested``: its publisher is attested; ``own``: it is this
    participant's. ``equivocal``: its publisher signed two releases of one version, which install different files; of a
    release itself, it is one of the two.
    """

    id: str
    type: str
    name: str
    version: str
    summary: str = ""
    publisher: ParticipantView = NOBODY
    attested: bool = False
    own: bool = False
    time_ms: int
    releases: int = 1
    yanked: bool = False
    equivocal: bool = False


class VersionView(Answer, frozen=True, kw_only=True):
    """A version of a publisher's component. ``yanked`` is the id of the record that advises against it; empty: none."""

    id: str
    version: str
    time_ms: int
    yanked: str = ""
    equivocal: bool = False


class ReleaseView(ComponentView, Metadata, frozen=True, kw_only=True, metaclass=JoinedFields):
    """A release, whole, with its metadata. ``tree`` is the hash of its files. ``bundle`` names the blob that has them.

    ``git`` and ``commit`` say where the files come from, empty where there is no repository. ``yank`` is the record
    that advises against it, and ``yank_reason`` what it says. ``versions`` are its publisher's, the newest first.
    """

    bundle: str
    bundle_bytes: int
    yank: str = ""
    yank_reason: str = ""
    versions: list[VersionView] = []


class ReleaseAnswer(Answer, frozen=True, kw_only=True):
    """One release. ``notes`` are for who published it just now."""

    schema: str = "autoresearch.release/1"
    release: ReleaseView
    notes: list[str] = []


class YankedAnswer(Answer, frozen=True, kw_only=True):
    """A release is yanked: ``yank`` is the record that says so."""

    schema: str = "autoresearch.yanked/1"
    id: str
    name: str
    version: str
    yank: str
    reason: str = ""
