"""The kinds of records, version 1: what each body holds and how large it may be. Knows no bytes, no signatures.

A body is a map. Keys listed here have the type and the limits given here, or the record is refused at admission;
unlisted keys are kept and ignored, so that a later version may add optional ones. A changed meaning is a new kind.
Not-a-number and infinity don't exist in records: a diverged run has its status and no value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from autoresearch.text import NOTE_CHARACTERS

Hash = Annotated[bytes, Meta(min_length=32, max_length=32)]
Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
TITLE_CHARACTERS = 120
Title = Annotated[str, Meta(max_length=TITLE_CHARACTERS)]
Text = Annotated[str, Meta(max_length=NOTE_CHARACTERS)]
# A million amounts of a stranger are below 2**63. In milliseconds it is 278 years, so a time lies before 2248.
AMOUNT_MAX = 2**43
Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
TimeMs = Amount
# A seed names a sequence, and nobody adds seeds up.
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# The square of such a number is a float, and so is the sum of a million squares.
NUMBER_MAX = 1e100
Number = Annotated[float, Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]
# Constants of a program, whatever they are: these are compared, and never added up.
Scalar = int | float | str | bool
Genome = Annotated[dict[Name, Scalar], Meta(max_length=128)]
MOST_METRICS = 64
Metrics = Annotated[dict[Name, int | Number], Meta(max_length=MOST_METRICS)]
Status = Annotated[str, Meta(min_length=1, max_length=32)]


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all bodies: optional fields at their default value are left out of the encoding."""


class BlobRef(Body, frozen=True, kw_only=True):
    """Bytes named by their hash: SHA-256 of the whole, size in bytes, and of the chunk manifest when there is one."""

    sha256: Hash
    size: Amount
    manifest: Hash | None = None


class Identity(Body, frozen=True, kw_only=True):
    """What a root key says of itself: delegates a device key, revokes one, or describes the participant.

    ``delegate`` and ``revoke`` are authored by the root key and name the device; ``profile`` by root or device.
    Its last ``name`` counts: an empty one says nothing of it, one of spaces alone that there is none any more.
    """

    action: Literal["delegate", "revoke", "profile"]
    root: Key
    device: Key | None = None
    expires: TimeMs | None = None
    name: Title = ""
    reason: Text = ""


class Attestation(Body, frozen=True, kw_only=True):
    """An attestor saw that the holder of ``subject`` controlled the mailbox behind ``tag``."""

    subject: Key
    tag: Hash
    method: Name
    domain: Name = ""
    issued: TimeMs
    expires: TimeMs


class Admission(Body, frozen=True, kw_only=True):
    """A founder counts a participant as attested, or no longer. ``token`` is the invite's, where one brought it."""

    action: Literal["admit", "remove"]
    participant: Key
    reason: Text = ""
    token: Key | None = None


class Join(Body, frozen=True, kw_only=True):
    """A participant joined with an invite: the invite's ``token``, a public key, signed its root key by ``proof``.

    See :func:`autoresearch.trust.invite.joined`.
    """

    participant: Key
    token: Key
    proof: Annotated[bytes, Meta(min_length=64, max_length=64)]


class Task(Body, frozen=True, kw_only=True):
    """A fixed question. ``digest``, SHA-256 of the encoded ``definition``, is its identity, whoever publishes it."""

    digest: Hash
    name: Name
    summary: Text = ""
    definition: dict[Name, object]
    baseline: BlobRef
    harness: Annotated[dict[Name, BlobRef], Meta(max_length=64)]


class Contest(Body, frozen=True, kw_only=True):
    """A founder holds a contest on a task: runs published from ``begins`` to before ``ends`` take places.

    Of each participant the first ``runs`` count, 0: all. ``rules`` is the page of rules, a text. The last word of the
    founders holds, which links the one before; what others publish as a challenge is none.
    """

    task: Hash
    title: Title = ""
    begins: TimeMs
    ends: TimeMs
    runs: Amount = 0
    rules: BlobRef | None = None


class Proposer(Body, frozen=True, kw_only=True):
    """What invented the change."""

    name: Name
    version: Name = ""


class RunDesign(Body, frozen=True, kw_only=True):
    """What is chosen for a run; the records, programs and files that the run names are left out."""

    mode: Literal["experiment", "train", "bench"] = "experiment"
    replicate: Amount = 0
    seed: Seed
    budget: Number
    genome: Genome = {}
    title: Title = ""
    hypothesis: Text = ""
    expected: Number | None = None
    proposer: Proposer | None = None

    @property
    def proposed_by(self) -> str:
        """The name of its proposer; empty where none is stated."""
        return self.proposer.name if self.proposer else ""


class RunPlan(RunDesign, frozen=True, kw_only=True):
    """The half of a run that is known before it begins; the text of its program stands elsewhere."""

    task: Hash
    source_digest: Hash
    parent: Hash | None = None
    base: Hash | None = None
    seedless: Hash | None = None

    @property
    def idea(self) -> bytes:
        """What runs of programs that differ in their seeds alone have in common."""
        return self.seedless or self.source_digest


class RunOutcome(Body, frozen=True, kw_only=True):
    """The half of a run that is known after its end. ``status`` is one of :class:`autoresearch.words.RunStatus`."""

    status: Status
    reason: Text = ""
    value: Number | None = None
    metrics: Metrics = {}
    curve: Annotated[list[Number], Meta(max_length=64)] = []
    duration_ms: Amount = 0
    cpu_ms: Amount = 0
    peak_memory_bytes: Amount = 0
    sandbox: Annotated[int, Meta(ge=0, le=9)] = 0
    device: Title = ""
    environment: Annotated[dict[Name, Title], Meta(max_length=16)] = {}


class JoinedFields(type(Body)):  # type: ignore[misc]
    """Gives a struct the fields of several: by its layout in memory it can be a subclass of the first only.

    To a type checker it is a subclass of all of them; ``msgspec.convert(run, RunOutcome, from_attributes=True)`` makes
    one of them.
    """

    def __new__(cls, name: str, bases: tuple[type[Body], ...], namespace: dict[str, Any], **config: bool) -> type:
        """Make the class ``name``."""
        first, *others = bases
        for half in others:
            defaults = {
                field.name: field.default_factory() if field.default is msgspec.NODEFAULT else field.default
                for field in msgspec.structs.fields(half)
                if not field.required
            }
            annotations = {**get_type_hints(half, include_extras=True), **namespace["__annotations__"]}
            namespace = {**defaults, **namespace, "__annotations__": annotations}
        made: type = super().__new__(cls, name, (first,), namespace, **config)
        return made


class Run(RunPlan, RunOutcome, frozen=True, kw_only=True, metaclass=JoinedFields):
    """One execution of a program on a task. ``origin`` is the record that its author published in another network."""

    source: BlobRef
    log: BlobRef | None = None
    checkpoint: BlobRef | None = None
    origin: Hash | None = None


class Commitment(Body, frozen=True, kw_only=True):
    """A verifier measured a run and fixes what it measured, before it tells: ``digest`` commits it to its verification.

    See :func:`autoresearch.judging.states.commitment_digest`.
    """

    run: Hash
    stage: Name
    round: Annotated[int, Meta(ge=0, le=16)] = 0
    proof: Annotated[bytes, Meta(max_length=128)] = b""
    digest: Hash


class Verification(Body, frozen=True, kw_only=True):
    """Another participant's measurement of a run. It links its commitment, which ``salt`` opens."""

    run: Hash
    stage: Name
    round: Annotated[int, Meta(ge=0, le=16)] = 0
    verdict: Literal["pass", "fail", "unavailable", "error"]
    value: Number | None = None
    tolerance: Number | None = None
    metrics: Metrics = {}
    seeds: Annotated[list[Seed], Meta(max_length=32)] = []
    values: Annotated[list[Number], Meta(max_length=32)] = []
    parent_values: Annotated[list[Number], Meta(max_length=32)] = []
    baseline_values: Annotated[list[Number], Meta(max_length=32)] = []
    proof: Annotated[bytes, Meta(max_length=128)] = b""
    device: Title = ""
    sandbox: Annotated[int, Meta(ge=0, le=9)] = 0
    log: BlobRef | None = None
    duration_ms: Amount = 0
    reason: Text = ""
    salt: Annotated[bytes, Meta(max_length=32)] = b""


class Claim(Body, frozen=True, kw_only=True):
    """Says “I am trying this until …”, so that two machines don't do the same thing."""

    task: Hash
    source_digest: Hash
    replicate: Amount = 0
    parent: Hash | None = None
    genome: Genome = {}
    title: Title = ""
    until: TimeMs


class Note(Body, frozen=True, kw_only=True):
    """A hypothesis, an insight, or past work brought in from elsewhere; the links are its evidence.

    With ``hides`` it is a list of what its author hides: keys, ids of records, digests of tasks, and ``hides_words``.
    A long list has more parts: notes without text, which it links. With ``attack`` it is the report of attacks on
    ``task``, a file whose counts stand in ``metrics``.
    """

    topic: Literal["hypothesis", "insight", "history"]
    text: Text
    task: Hash | None = None
    origin: Title = ""
    metrics: Metrics = {}
    status: Annotated[str, Meta(max_length=32)] = ""
    hides: Annotated[list[Hash], Meta(max_length=400)] | None = None
    hides_words: Annotated[list[Title], Meta(max_length=400)] = []
    attack: BlobRef | None = None


class Release(Body, frozen=True, kw_only=True):
    """One pinned version of an installable component."""

    name: Name
    version: Name
    summary: Text = ""
    bundle: BlobRef
    metadata: dict[Name, object] = {}


class Yank(Body, frozen=True, kw_only=True):
    """The author advises against a release; it stays."""

    release: Hash
    reason: Text = ""


class Withdrawal(Body, frozen=True, kw_only=True):
    """The author takes back own records named in the links; they stay in the log and leave the views."""

    reason: Text = ""


class Merge(Body, frozen=True, kw_only=True):
    """The root key ends a fork of a device key: ``heads`` are the last records of all branches."""

    device: Key
    heads: Annotated[list[Hash], Meta(min_length=1, max_length=16)]


KINDS: dict[str, type[Body]] = {
    "identity": Identity,
    "attestation": Attestation,
    "admission": Admission,
    "join": Join,
    "task": Task,
    "challenge": Contest,
    "run": Run,
    "commitment": Commitment,
    "verification": Verification,
    "claim": Claim,
    "note": Note,
    "release": Release,
    "yank": Yank,
    "withdrawal": Withdrawal,
    "merge": Merge,
}


# The entries of bodies that name records. Other hashes name programs, tasks and files.
RECORD_FIELDS = frozenset({"run", "parent", "origin", "release", "heads"})


def blobs_of(body: object) -> list[tuple[str, BlobRef]]:
    """The blobs that a body names, each with its field's name; where a field has several, with its own name there."""
    if not isinstance(body, Body):
        return []
    blobs: list[tuple[str, BlobRef]] = []
    for field in body.__struct_fields__:
        value = getattr(body, field)
        if isinstance(value, BlobRef):
            blobs.append((field, value))
        elif isinstance(value, dict):
            blobs += [(name, blob) for name, blob in value.items() if isinstance(blob, BlobRef)]
    return blobs


# The kinds of records that can be about a task.
TASK_KINDS = ("task", "challenge", "run", "claim", "note")


def task_of_body(body: Body | dict[str, object]) -> bytes | None:
    """The digest of the task that a record is about."""
    if isinstance(body, Task):
        return body.digest
    if isinstance(body, Contest | Run | Claim | Note):
        return body.task
    return None
