"""Commit before reveal: a verifier fixes what it measured before it can know what others measured. Pure.

It publishes a digest first, and what it measured only when enough others have published theirs. A reveal links its own
commitment and those of the others that it waited for. A hash proves what was there before: a commitment that another's
reveal links is older than that reveal, whatever the clocks of both say.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from autoresearch.records import encode
from autoresearch.verification.reports import EVALUATE, Report

SALT_BYTES = 32
_DOMAIN = b"autoresearch/commit/1"


def commitment_digest(author: bytes, salt: bytes, measured: Mapping[str, object]) -> bytes:
    """The digest that commits a device to the body of a verification: of its key, the salt, the body without it.

    The salt keeps others from trying which number it is; the key, from taking the digest for their own.
    """
    body = {name: value for name, value in measured.items() if name != "salt"}
    return hashlib.sha256(_DOMAIN + author + salt + encode(body)).digest()


def in_time(reports: Iterable[Report], quorum: int) -> set[Report]:
    """The reports that are no repetitions of what others had revealed.

    Those are in time whose commitment another voice's reveal of the same stage and round links. Where fewer than
    ``quorum`` of one finding are, the first of the others fill it up: somebody has to be the first, and in a small
    network nobody may have waited. Pairs are always in time: their seeds are the verifier's own, so that there is
    nothing to repeat.
    """
    questions: defaultdict[int, list[Report]] = defaultdict(list)
    found: set[Report] = set()
    for report in sorted(reports, key=lambda report: report.order):
        if report.stage == EVALUATE:
            questions[report.round].append(report)
        else:
            found.add(report)
    for spoken in questions.values():
        vouched = [report for report in spoken if _is_vouched_for(report, spoken)]
        for finding in (True, False):
            same = [report for report in spoken if report.passed is finding]
            before = [report for report in same if report in vouched]
            others = [report for report in same if report not in vouched]
            found.update(before, others[: max(quorum - len(before), 0)])
    return found


def _is_vouched_for(report: Report, spoken: Iterable[Report]) -> bool:
    return any(report.commitment in other.links for other in spoken if other.voice != report.voice)
