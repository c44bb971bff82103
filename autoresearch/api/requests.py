"""What the API is asked to do: the bodies of its requests. Fields that are not named here are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from autoresearch.api.base import Answer
from autoresearch.bounds import NOTE_CHARACTERS, NOTE_EVIDENCE, QUESTION_CHARACTERS

# Bounds of what a request may say, so that no number is too large for what keeps it.
TimeMs = Annotated[int, Meta(ge=0, le=2**53)]


FolderPath = Annotated[str, Meta(max_length=4096)]
ShortText = Annotated[str, Meta(max_length=300)]


class DialRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Connect to a multiaddr that ends in ``/p2p/PEER``, and stay connected."""

    address: Annotated[str, Meta(max_length=4096)]


class WorkRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask the node to work: on a task folder (empty: the configured one), for a number of runs, until a time.

    ``verify_share`` is the share of the time that goes to checking others' runs; left out, it is the setting.
    ``proposer`` is who invents the changes; left out, it is the setting.
    """

    task: FolderPath = ""
    runs: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    until_ms: TimeMs | None = None
    verify_share: Annotated[float, Meta(ge=0, le=1)] | None = None
    proposer: Literal["", "search", "llm", "command", "mix"] = ""


class PauseRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pause, for ever or until a time."""

    until_ms: TimeMs | None = None


class NameRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say what this participant calls itself, for all to read; empty: that it has no name any more."""

    name: Annotated[str, Meta(max_length=120)]


class AdmitRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Count a participant as a founder, or with ``admits`` false no longer; and why, for all to read.

    ``participant`` is a whole root key, the beginning of a key in the log, or a name that only one has.
    """

    participant: Annotated[str, Meta(min_length=1, max_length=128)]
    admits: bool = True
    reason: Annotated[str, Meta(max_length=2048)] = ""


class WithdrawRecordRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Withdraw a run or a note of this node: its id, a beginning of it, or ``@mine``; and why, for all to read."""

    record: Annotated[str, Meta(min_length=1, max_length=128)]
    reason: Annotated[str, Meta(max_length=2048)] = ""


class NoteRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a note, an insight or a hypothesis, with runs as its evidence: ids, beginnings of ids, or ``@``.

    Without evidence it is on the task that is named, by its name or digest, or on the one worked on last.
    """

    text: Annotated[str, Meta(min_length=1, max_length=NOTE_CHARACTERS)]
    evidence: Annotated[list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(max_length=NOTE_EVIDENCE)] = []
    topic: Literal["insight", "hypothesis"] = "insight"
    task: Annotated[str, Meta(max_length=128)] = ""


class ClaimRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say for all to read that this node tries a program on a task folder (empty: the configured one), for ``minutes``.

    ``parent`` and ``hypothesis`` are those of the run that is to come, as for a proposal.
    """

    task: FolderPath = ""
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    parent: Annotated[str, Meta(max_length=128)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""
    minutes: Annotated[int, Meta(ge=1, le=1440)] = 30


class AskRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about a task: by its name or digest, or the one worked on last. ``model`` false asks no model."""

    question: Annotated[str, Meta(min_length=1, max_length=QUESTION_CHARACTERS)]
    task: Annotated[str, Meta(max_length=128)] = ""
    model: bool = True


class VerifyRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure a run of somebody else here: its id, an unambiguous beginning of it, or ``@``."""

    run: Annotated[str, Meta(min_length=1, max_length=128)]


class BlockRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refuse a peer, named by its id or the end of it, from now on, or with ``blocked`` false no longer."""

    peer: Annotated[str, Meta(max_length=4096)]
    blocked: bool = True


class FetchRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a blob from other nodes: its SHA-256, its size in bytes, and its chunk manifest if it has one.

    After ``seconds`` the answer is that it is not here yet; what came is kept for the next time.
    """

    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    size: Annotated[int, Meta(ge=0, le=2**53)]
    manifest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    seconds: Annotated[float, Meta(gt=0, le=3600)] = 20.0


class ProposeRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run a program on a task folder (empty: the configured one), with ``seeds`` seeds from ``replicate`` on.

    ``program`` is its text. ``parent`` names the run whose program was edited: an id, the beginning of one, ``@``. Left
    out, it is the known run whose program differs in the fewest lines.
    """

    task: FolderPath = ""
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    parent: Annotated[str, Meta(max_length=128)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""
    replicate: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    seeds: Annotated[int, Meta(ge=1, le=100)] = 1


class DropRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Take a proposal out of the queue, by the name that it has there."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]


class StarRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Star a record on this machine, by its id, the beginning of it or ``@``; with ``starred`` false no longer."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    starred: bool = True


class HistoryNote(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Past work on a task (its digest), as a note. ``origin`` names where it comes from: it is added only once."""

    task: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    origin: Annotated[str, Meta(min_length=1, max_length=120)]
    text: Annotated[str, Meta(max_length=2048)]
    metrics: Annotated[dict[str, float], Meta(max_length=64)] = {}
    status: Annotated[str, Meta(max_length=32)] = ""


class HistoryRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish notes about past work."""

    notes: Annotated[list[HistoryNote], Meta(max_length=500)]


class BringRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish own finished runs of another network of this home, by its name or id, ``most`` of them at a time."""

    network: Annotated[str, Meta(min_length=1, max_length=128)]
    most: Annotated[int, Meta(ge=1, le=1000)] = 20


class PublishRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a component: the folder or the file ``place``, or a ``commit`` of the repository ``git``.

    What is left out stands in its ``component.ini`` or follows from its files.
    """

    place: FolderPath = ""
    git: Annotated[str, Meta(max_length=512)] = ""
    commit: Annotated[str, Meta(max_length=64)] = ""
    type: Annotated[str, Meta(max_length=32)] = ""
    name: Annotated[str, Meta(max_length=64)] = ""
    version: Annotated[str, Meta(max_length=64)] = ""
    description: Annotated[str, Meta(max_length=2048)] = ""
    class_name: ShortText = ""
    requirements_path: ShortText = ""
    license: Annotated[str, Meta(max_length=64)] = ""
    needs: Annotated[list[ShortText], Meta(max_length=32)] = []
    interfaces: Annotated[list[ShortText], Meta(max_length=32)] = []


class PublishTaskRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish the task of a folder."""

    task: FolderPath


class PublishRunRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Publish a kept run of a project: a trained agent (mode "train") or the benchmark of a frozen one ("bench").

    ``task`` is the folder of its environment's task, ``program`` the project as one text, ``checkpoint`` the file with
    its learned state. ``value`` and ``metrics`` are what the task's evaluator measured of that, ``budget`` the training
    episodes of the run and its ancestors. ``parents`` are the published runs that it went on from, the nearest first.
    """

    task: FolderPath
    program: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    checkpoint: FolderPath
    mode: Literal["train", "bench"]
    value: float
    reason: Annotated[str, Meta(max_length=1000)] = ""
    metrics: Annotated[dict[str, float], Meta(max_length=64)] = {}
    curve: Annotated[list[float], Meta(max_length=64)] = []
    budget: Annotated[float, Meta(ge=0, le=1e24)]
    parents: Annotated[list[Annotated[str, Meta(min_length=1, max_length=128)]], Meta(max_length=10_000)] = []
    title: Annotated[str, Meta(max_length=120)] = ""
    hypothesis: Annotated[str, Meta(max_length=2048)] = ""
    duration_ms: Annotated[int, Meta(ge=0, le=2**53)] = 0
    cpu_ms: Annotated[int, Meta(ge=0, le=2**53)] = 0
    peak_memory_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    sandbox: Annotated[int, Meta(ge=0, le=9)] = 0
    device: Annotated[str, Meta(max_length=120)] = ""
    environment: Annotated[dict[str, Annotated[str, Meta(max_length=120)]], Meta(max_length=16)] = {}


class YankRequest(Answer, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Advise against an own release, by its id or a beginning of it; and why, for all to read."""

    release: Annotated[str, Meta(min_length=1, max_length=128)]
    reason: Annotated[str, Meta(max_length=2048)] = ""
