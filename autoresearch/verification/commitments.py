"""Commit before reveal: a verifier fixes its result before it can know the results of others. Pure.

It publishes a digest first, and its result when enough others have published their digests. A reveal links its own
commitment and those of the others that it waited for. The hash proves the order: a commitment that another's reveal
links is older than that reveal, whatever their clocks said.
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
    """The digest that commits a device to a verification: of its key, the salt, and the body without the salt.

    The salt prevents guessing the value from the digest. The key prevents using another device's digest.
    """
    body = {name: value for name, value in measured.items() if name != "salt"}
    return hashlib.sha256(_DOMAIN + author + salt + encode(body)).digest()


def in_time(reports: Iterable[Report], quorum: int) -> set[Report]:
    """The reports that cannot repeat what others had revealed.

    A report is in time when another voter's reveal of the same stage and round links its commitment. Where fewer than
    ``quorum`` of one finding are in time, the first of the others fill it up. One verifier has to be the first, and in
    a small network none may have waited. Pairs are always in time: each verifier has its own seeds, so nothing can be
    repeated.
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
    return any(report.commitment in other.links for other in spoken if other.voter != report.voter)
