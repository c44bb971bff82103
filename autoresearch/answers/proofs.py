"""What records prove against who signed them: all of it, or what they prove against one participant."""

from __future__ import annotations

import re

from autoresearch.answers.models import Answer
from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log import Log
from autoresearch.records import format_id
from autoresearch.views import Proof, proofs, roster_of
from autoresearch.words import CONSEQUENCE_SENTENCES, PROOF_SENTENCES, ProofKind

_KEY = re.compile(r"[0-9a-f]{4,64}")


class ProofView(Answer, frozen=True, kw_only=True):
    """What records prove against ``participant``, whose ``device`` signed the first of them: ``id``.

    ``kind`` is fork, seed, lineage or value. What ``follows`` is banned, uncounted (the device's later runs), disputed
    or refuted (the run), or merged: nothing any more. ``until_ms``: how long it lasts.
    """

    kind: str
    id: str
    participant: str
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
    """What records prove, of one kind, against one participant: ``me``, or the beginning of one of its keys.

    Raises:
        NotFound: ``me`` has no key.
        AmbiguousId: several participants' keys begin so.
        UsageError: that is no key.
    """
    shown = [proof_view(log, proof) for proof in proofs(log) if kind in (None, proof.kind)]
    if participant is None:
        return ProofsAnswer(proofs=shown)
    if participant == "me" and author is None:
        raise NotFound("this machine has no key yet", hint="autoresearch id new")
    if participant == "me" and author is not None:
        voice = roster_of(log).voice(author, log.newest_ms())
        mine = {voice.voice.hex(), voice.root.hex(), author.hex()}
        return ProofsAnswer(proofs=[view for view in shown if mine & {view.participant, view.device}])
    text = participant.lower()
    if not _KEY.fullmatch(text):
        raise UsageError(
            f"“{participant[:80]}” names no participant.",
            hint="me, or at least four digits of a key: autoresearch credit",
        )
    found = [(view, _keys(log, view)) for view in shown]
    meant = {view.participant for view, keys in found if any(key.startswith(text) for key in keys)}
    if len(meant) > 1:
        raise AmbiguousId(f"{participant} can mean several participants.", sorted(meant)[:10])
    return ProofsAnswer(proofs=[view for view, _ in found if view.participant in meant])


def proof_view(log: Log, proof: Proof) -> ProofView:
    """A proof, ready for JSON."""
    return ProofView(
        kind=proof.kind.value,
        id=format_id(proof.records[0]),
        participant=roster_of(log).voice(proof.device, proof.time_ms).voice.hex(),
        device=proof.device.hex(),
        records=[format_id(record) for record in proof.records],
        time_ms=proof.time_ms,
        follows=proof.follows.value,
        reason=f"{PROOF_SENTENCES[proof.kind]}: {CONSEQUENCE_SENTENCES[proof.follows]}",
        until_ms=proof.until_ms,
    )


def _keys(log: Log, view: ProofView) -> set[str]:
    """All keys that a participant may be named by."""
    root = roster_of(log).voice(bytes.fromhex(view.device), view.time_ms).root
    return {view.participant, view.device, root.hex()}
