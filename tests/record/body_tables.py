"""Writes the tables of record bodies into docs/protocol.md from the kinds: ``python -m tests.record.body_tables``."""

from __future__ import annotations

import types
import typing
from pathlib import Path

import msgspec
from msgspec import Meta

from autoresearch.record.kinds import KINDS, BlobRef, Body, Proposer
from autoresearch.words import RunStatus

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"
BEGIN = "<!-- These tables are written by: python -m tests.record.body_tables -->\n"
END = "<!-- End of the written tables -->\n"

# What a body holds that others are made of.
PARTS = {"blob reference": BlobRef, "proposer": Proposer}
POWERS = {2**43: "2⁴³", 2**63 - 1: "2⁶³ − 1"}
PLAIN = {float: "float", int: "integer", str: "text", bool: "boolean", bytes: "bytes", object: "any value"}

KIND_MEANS = {
    "identity": "A root key names a device key, revokes one, or describes the participant.",
    "attestation": "An attestor saw that the holder of a root key controls a mailbox.",
    "admission": "A founder counts a participant, or no longer. The last word holds (“Founders and admissions”).",
    "join": "A participant joined with an invite. It asks the founder for an admission.",
    "task": "A fixed question that runs answer.",
    "challenge": "A founder holds a contest on a task. The last word holds, which links the one before.",
    "run": "One execution of a program on a task.",
    "commitment": "A verifier fixes its result before it reveals it.",
    "verification": "Another participant's measurement of a run. It links its commitment.",
    "claim": "An announced intention: two nodes do not try the same thing.",
    "note": "A hypothesis, an insight, or past work from elsewhere. The links are its evidence.",
    "release": "One pinned version of an installable component.",
    "yank": "The author advises against a release. The release stays.",
    "withdrawal": "The author withdraws own records, which the links name. They stay in the log and leave the views.",
    "merge": "A root key ends a fork of one of its devices.",
    "blob reference": "A file, named by its hash.",
    "proposer": "The program that proposed the change.",
}
# What each entry means; one of a kind goes before one of all kinds.
MEANS = {
    "identity.action": "`delegate` and `revoke` are signed by the root key, `profile` by the root key or a device",
    "identity.root": "the root key",
    "identity.device": "the device key that is named or revoked; null in a profile",
    "identity.expires": "when a delegation ends, Unix time in ms; null: never",
    "identity.name": "the participant's name; empty: unchanged, spaces alone: none from now on",
    "attestation.subject": "the attested root key",
    "attestation.tag": "the mailbox's tag (`docs/reference/identity.md`)",
    "attestation.method": "how the attestor saw it: `code`, a code by mail came back",
    "attestation.domain": "the domain's tag in hexadecimal, or `big`",
    "attestation.issued": "from when it counts, Unix time in ms",
    "attestation.expires": "until when it counts, Unix time in ms",
    "admission.action": "`admit` or `remove`",
    "admission.participant": "the root key that it is about",
    "admission.token": "the token of the invite that brought the participant; null: none",
    "join.participant": "the root key of the participant that joins",
    "join.token": "the invite's token: a public key",
    "join.proof": "the token's signature (“Founders and admissions”)",
    "task.digest": "SHA-256 of the DAG-CBOR of `definition`",
    "task.name": "a short name",
    "task.summary": "one line for people",
    "task.definition": "what makes it this question, below",
    "task.baseline": "the program to start from",
    "task.harness": "the fixed files, by name",
    "challenge.title": "what the contest is called; empty: as the task",
    "challenge.begins": "from when runs take places, Unix time in ms",
    "challenge.ends": "until when: a run with this time or a later one takes no place",
    "challenge.runs": "so many runs of each participant count, the first; 0: all",
    "challenge.rules": "the page of rules, a text in UTF-8; null: none",
    "run.mode": "what is claimed: `experiment`, what its program learns under the budget; "
    "`train` and `bench`, what its checkpoint is worth",
    "run.status": f"how it ended: {', '.join(f'`{status.value}`' for status in RunStatus)}",
    "run.value": "the metric; null: none",
    "run.metrics": "further numbers",
    "run.curve": "the loss over the run as reported or printed, or an agent's mean reward in training, evenly spaced",
    "run.source": "the program as one text (“A program of several files”)",
    "run.source_digest": "the program's digest (“The dump of a program”)",
    "run.seedless": "digest of the program without its seeds (“Seeds in a program”); null: it has none",
    "run.parent": "the run that it changes; null: none",
    "run.base": "digest of the program whose settings `genome` sets, its own where it changes more; null: the task's",
    "run.replicate": "0, and 1 and up for repetitions with other seeds",
    "run.seed": "follows from task, program and replicate (“What follows from what”)",
    "run.budget": "what it could spend, in the task's unit",
    "run.genome": "the settings of the program, also of one that a person wrote",
    "run.title": "what was changed, for people",
    "run.hypothesis": "why it was tried",
    "run.expected": "the value that the proposer expected; null: none",
    "run.proposer": "null: not stated",
    "run.checkpoint": "the trained model; null: none",
    "run.cpu_ms": "processor time",
    "run.peak_memory_bytes": "the most memory that it held",
    "run.environment": "versions of what it ran on, by name; of a graphics card its UUID (`card`) and its `driver`",
    "run.origin": "id of the same run's record in another network, by the same participant; null: none",
    "commitment.digest": "the commitment (“What follows from what”)",
    "verification.verdict": "what it says of the run",
    "verification.value": "what was measured; null: nothing",
    "verification.tolerance": "the tolerance that was applied, for people",
    "verification.metrics": "the numbers of an evaluation, under the names in “Challenges”",
    "verification.seeds": "the seeds that it used, in order",
    "verification.values": "the child's values, one for each seed",
    "verification.parent_values": "the parent's values, one for each seed",
    "verification.baseline_values": "those of the task's baseline; empty where the parent is the baseline",
    "verification.salt": "what opens the commitment; it is no part of the digest",
    "claim.until": "when it ends, Unix time in ms",
    "claim.replicate": "as in a run",
    "claim.parent": "as in a run",
    "claim.genome": "as in a run; empty where the program changes more than settings",
    "claim.title": "as in a run",
    "claim.source_digest": "the program's digest",
    "note.topic": "what it is",
    "note.task": "the task that it is about; null: none",
    "note.origin": "where past work comes from",
    "note.metrics": "its numbers",
    "note.status": "how past work ended, in its own word",
    "note.text": "what it says; empty in a further part of a list",
    "note.hides": "what its author hides: keys, ids of records, digests of tasks; null: it is no such list",
    "note.hides_words": "words that its author hides",
    "note.attack": "the report of attacks on the task, JSON (“Reports of attacks”); null: it is none",
    "release.name": "the component",
    "release.version": "its version",
    "release.summary": "one line for people",
    "release.bundle": "its file",
    "release.metadata": "what its installer needs",
    "yank.release": "id of the release",
    "merge.device": "the forked device key",
    "merge.heads": "ids of the last record of each branch",
    "blob reference.sha256": "SHA-256 of the whole",
    "blob reference.size": "bytes",
    "blob reference.manifest": "SHA-256 of its chunk manifest, above 1 MiB (“Blobs”); null: none",
    "proposer.name": "its name",
    "proposer.version": "its version",
    "task": "the task's digest",
    "run": "the run's id",
    "stage": "`evaluate` or `replicate`",
    "round": "0, or 1 after a dispute",
    "proof": "the verifier's VRF proof",
    "device": "the hardware, by name",
    "sandbox": "the sandbox's level",
    "log": "the program's output; null: none",
    "duration_ms": "wall-clock time",
    "reason": "why, for people",
}


def parts() -> dict[str, type[Body]]:
    """All kinds in their order, then what they are made of."""
    return KINDS | PARTS


def tables() -> str:
    """All tables, with their headings."""
    return "\n".join(table(name, body) for name, body in parts().items())


def table(name: str, body: type[Body]) -> str:
    """One kind: its name, what it is, its entries."""
    title = f"`{name}`" if name in KINDS else name.capitalize()
    rows = "".join(
        f"| `{field.name}` | {words(field.type)} | {left_out(field)} | {meaning(name, field.name)} |\n"
        for field in msgspec.structs.fields(body)
    )
    head = "| entry | type | left out | meaning |\n| --- | --- | --- | --- |\n"
    return f"#### {title}\n\n{KIND_MEANS[name]}\n\n{head}{rows}"


def meaning(name: str, field: str) -> str:
    """What an entry means."""
    return MEANS.get(f"{name}.{field}") or MEANS[field]


def left_out(field: msgspec.structs.FieldInfo) -> str:
    """The value of an entry that is not there."""
    if field.required:
        return "never"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value == b"":
        return "no bytes"
    return f"`{msgspec.json.encode(value).decode()}`"


def words(kind: object) -> str:
    """A type in words, with its bounds."""
    if kind is type(None):
        return "null"
    if kind in PLAIN:
        return PLAIN[typing.cast("type", kind)]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return bounded(inner[0], inner[1])
    if origin is typing.Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if origin in (types.UnionType, typing.Union):
        return " or ".join(words(part) for part in inner)
    if origin is list:
        return f"list of {words(inner[0])}"
    if origin is dict:
        return f"map from {words(inner[0])} to {words(inner[1])}"
    return next(f"[{name}](#{name.replace(' ', '-')})" for name, part in PARTS.items() if part is kind)


def bounded(kind: object, meta: Meta) -> str:
    """A type with its bounds."""
    if kind is int:
        assert meta.le is not None
        return f"integer, {meta.ge} to {POWERS.get(int(meta.le), meta.le)}"
    if kind is float:
        return "number"
    least, most = meta.min_length or 0, meta.max_length
    if kind is bytes:
        return f"{most} bytes" if least == most else f"at most {most} bytes"
    if kind is str:
        return f"text of {least} to {most:,}"
    size = f"{least} to {most}" if least else f"at most {most}"
    return words(kind).replace("list of", f"list of {size}:", 1).replace("map from", f"map of {size}:", 1)


def written(document: str) -> str:
    """The document with the tables as they are now."""
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
