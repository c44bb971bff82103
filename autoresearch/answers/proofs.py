"""What records prove against who signed them: all of it, or what they prove against one participant."""

from __future__ import annotations

import re

from autoresearch.answers.models import Answer
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import Log
from autoresearch.plain import one_line, plain_name
from autoresearch.records import format_id
from autoresearch.views import Proof, Who, proofs, roster_of, who, who_is
from autoresearch.words import CONSEQUENCE_SENTENCES, PROOF_SENTENCES, ProofKind

_KEY = re.compile(r"[0-9a-f]{4,64}")


class ProofView(Answer, frozen=True, kw_only=True):
    """What records prove against ``who``, whose ``device`` signed the first of them: ``id``.

    ``kind`` is fork, seed, lineage or value. What ``follows`` is banned, uncounted (the device's later runs), disputed
    or refuted (the run), or merged: nothing any more. ``until_ms``: how long it lasts.
    """

    kind: str
    id: str
    who: Who
    device: str
    records: list[str]
    time_ms: int
    follows: str
    reason: str
    until_ms: int | None = None


class ProofsAnswer(Answer, frozen=True, kw_only=True):
    """What records prove against who signed them, the newest first."""

    schema: str = "autoresearch.proofs/1"
    proofs: list[ProofView]


class ProofStep(Answer, frozen=True, kw_only=True):
    """One thing that was looked at: what the record states, what was found here.

    ``agrees`` is null where there is nothing to compare.
    """

    what: str
    stated: str
    found: str
    agrees: bool | None = None


class ProofAnswer(Answer, frozen=True, kw_only=True):
    """One proof, checked here and now: the record ``id``, each step, and whether it ``holds`` and why.

    ``holds`` is null where a value has to be measured once more to tell. ``proof`` is there when the log's own view has
    it among what is proved.
    """

    schema: str = "autoresearch.proof/1"
    id: str
    kind: str
    device: str
    steps: list[ProofStep]
    holds: bool | None
    reason: str
    proof: ProofView | None = None


def proofs_answer(
    log: Log, participant: str | None = None, *, kind: ProofKind | None = None, author: bytes | None = None
) -> ProofsAnswer:
    """What records prove, of one kind, against one participant: ``me``, the beginning of a key, or a name.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    voice = roster_of(log).voice
    root = None if participant is None else _root(log, participant, author)
    found = [proof for proof in proofs(log) if kind in (None, proof.kind)]
    return ProofsAnswer(
        proofs=[proof_view(log, proof) for proof in found if root in (None, voice(proof.device, proof.time_ms).root)]
    )


def _root(log: Log, text: str, author: bytes | None) -> bytes:
    """The root key of the participant that is meant."""
    roster, newest_ms = roster_of(log), log.newest_ms()
    if text == "me":
        if author is None:
            raise NotFound("This machine has no key yet.", hint="autoresearch id new")
        return roster.voice(author, newest_ms).root
    key, name = text.strip().lower(), plain_name(text)
    by_key, by_name = set[bytes](), set[bytes]()
    for device in log.everybody():
        voice = roster.voice(device, newest_ms)
        if _KEY.fullmatch(key) and any(one.hex().startswith(key) for one in (device, voice.root, voice.voice)):
            by_key.add(voice.root)
        if name and plain_name(roster.name(voice.root)) == name:
            by_name.add(voice.root)
    found = by_key or by_name
    if len(found) > 1:
        called = [who_is(log, root).short for root in sorted(found)]
        raise AmbiguousId(f"{one_line(text, 80)} can mean several participants.", called[:10])
    if found:
        return found.pop()
    if _KEY.fullmatch(key):
        raise NotFound(f"Nobody whose key begins with {key} has signed anything here.", hint="autoresearch credit")
    hint = "me, at least four digits of a key, or a name that only one has: autoresearch credit"
    raise UsageError(f"“{one_line(text, 80)}” names no participant.", hint=hint)


def proof_view(log: Log, proof: Proof) -> ProofView:
    """A proof, ready for JSON."""
    return ProofView(
        kind=proof.kind.value,
        id=format_id(proof.records[0]),
        who=who(log, proof.device, proof.time_ms),
        device=proof.device.hex(),
        records=[format_id(record) for record in proof.records],
        time_ms=proof.time_ms,
        follows=proof.follows.value,
        reason=f"{PROOF_SENTENCES[proof.kind]}: {CONSEQUENCE_SENTENCES[proof.follows]}",
        until_ms=proof.until_ms,
    )
