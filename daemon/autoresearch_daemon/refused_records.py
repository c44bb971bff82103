"""Ids of records that were refused, so that no later exchange asks for them again. Pure.

Most refusals follow from the bytes alone: such a record is asked of nobody. A wrong signature says nothing of the
bytes, which another peer may have with the right one: such a record is not asked of the same peer again.
"""

from __future__ import annotations

from collections.abc import Iterable

from autoresearch.log import State, Verdict

# About 1.5 MB. Whoever offers more is asked for the rest at each exchange.
IDS_MAX = 10_000
EVERYBODY = ""


class RefusedRecords:
    """The ids that were refused last. The oldest go when there is no room."""

    def __init__(self, most: int = IDS_MAX) -> None:
        self._seen: dict[tuple[str, bytes], None] = {}
        self._most = most

    def add(self, peer: str, verdicts: Iterable[Verdict]) -> None:
        """Remember those of a peer's records that were refused."""
        for verdict in verdicts:
            if verdict.state is State.REFUSED and verdict.refusal:
                of_whom = peer if verdict.refusal.code == "signature" else EVERYBODY
                self._seen[of_whom, verdict.id] = None
        surplus = len(self._seen) - self._most
        for entry in [entry for entry, _ in zip(self._seen, range(surplus), strict=False)]:
            del self._seen[entry]

    def of(self, peer: str) -> set[bytes]:
        """The ids that are not to be asked of a peer."""
        return {record_id for of_whom, record_id in self._seen if of_whom in (EVERYBODY, peer)}
