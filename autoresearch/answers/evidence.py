"""What records prove against who signed them: all of it, or what they prove against one participant."""

from __future__ import annotations

from autoresearch.answers.participants import named
from autoresearch.api import EvidenceListAnswer, EvidenceView
from autoresearch.log import Log
from autoresearch.records import format_id
from autoresearch.views import EvidenceItem, all_evidence, in_snapshot, participant_of, roster_of
from autoresearch.words import CONSEQUENCE_SENTENCES, EVIDENCE_SENTENCES, EvidenceKind


@in_snapshot
def evidence_list_answer(
    log: Log, participant: str | None = None, *, kind: EvidenceKind | None = None, author: bytes | None = None
) -> EvidenceListAnswer:
    """What records prove, of one kind, against one participant: ``me``, the beginning of a key, or a name.

    Raises:
        NotFound: there is no such participant, or ``me`` has no key.
        AmbiguousId: several are called so.
        UsageError: that is no key, and nobody's name.
    """
    voter = roster_of(log).voter
    roots = None if participant is None else named(log, participant, author=author)
    found = [one for one in all_evidence(log) if kind in (None, one.kind)]
    return EvidenceListAnswer(
        evidence=[
            evidence_view(log, one) for one in found if roots is None or voter(one.device, one.time_ms).root in roots
        ]
    )


def evidence_view(log: Log, one: EvidenceItem) -> EvidenceView:
    """Evidence, ready for JSON."""
    return EvidenceView(
        kind=one.kind.value,
        id=format_id(one.records[0]),
        participant=participant_of(log, one.device, one.time_ms),
        device=one.device.hex(),
        records=[format_id(record) for record in one.records],
        time_ms=one.time_ms,
        follows=one.follows.value,
        reason=f"{EVIDENCE_SENTENCES[one.kind]}: {CONSEQUENCE_SENTENCES[one.follows]}",
        until_ms=one.until_ms,
    )
