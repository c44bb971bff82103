"""Sets of records and which of them are kept. Written to ``retention.json`` by ``making.py``."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from autoresearch.record.kinds import Attestation, Identity, Note
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK, Network, Record
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from tests.record.making import NOW_MS, key, sealed

SMALL = Network(name="small", per_day_seq=2, per_day=5, per_author=8)
CROWDED = Network(name="crowded", per_day_seq=2, per_day=4, unattested=6)
MEMBER, DEVICE, ATTESTOR, SUBJECT, PHONE = (key(number) for number in range(1, 6))
STRANGERS = [key(number) for number in range(6, 10)]
DAY_START = NOW_MS // DAY_MS * DAY_MS


@dataclass(frozen=True)
class Case:
    """Records of a network, in the order of their arrival, and what the reader trusts."""

    name: str
    network: Network
    records: list[Record]
    trust: Trust = field(default_factory=Trust)


def note(author: KeyPair, seq: int, time_ms: int, text: str, network: Network) -> Record:
    body = Note(topic="insight", text=text)
    return sealed(author, body, kind="note", seq=seq, time_ms=time_ms, network=network)


def mixed(records: Iterable[Record]) -> list[Record]:
    made = list(records)
    random.Random(1).shuffle(made)
    return made


def one_number_on_one_day() -> Case:
    """Six of one number on one day; two more just before and just after that day."""
    times = [DAY_START + number for number in range(6)] + [DAY_START - 1, DAY_START + DAY_MS]
    records = (note(MEMBER, 1, time, str(time), DEFAULT_NETWORK) for time in times)
    return Case("six records of one author, day and seq", DEFAULT_NETWORK, mixed(records))


def many_of_one_author() -> Case:
    """Numbers that repeat, on three days, beyond all three bounds; the smallest numbers on the last day."""
    numbers = {0: (4, 4, 4, 5, 6, 7, 8), 1: (3, 3, 9, 10), 2: (1, 2, 2, 2, 11)}
    records = (
        note(MEMBER, seq, DAY_START + day * DAY_MS + place, str(place), SMALL)
        for day, seqs in numbers.items()
        for place, seq in enumerate(seqs)
    )
    return Case("one author beyond every bound", SMALL, mixed(records))


def unattested() -> Case:
    """Named: a participant and its device, the attestor, whom it attested and that one's device."""
    naming = [
        delegated(MEMBER, DEVICE),
        sealed(
            ATTESTOR,
            Attestation(
                subject=SUBJECT.public,
                tag=b"t" * 32,
                method="code",
                issued=NOW_MS - 2 * DAY_MS,
                expires=NOW_MS - DAY_MS,
            ),
            kind="attestation",
            network=CROWDED,
        ),
        delegated(SUBJECT, PHONE),
        delegated(STRANGERS[0], STRANGERS[1]),
    ]
    written = [
        note(who, seq, NOW_MS - day * DAY_MS, str(seq), CROWDED)
        for who, day, count in [
            (DEVICE, 3, 2),
            (PHONE, 3, 2),
            (STRANGERS[1], 0, 1),
            (STRANGERS[2], 1, 3),
            (STRANGERS[3], 1, 3),
            (STRANGERS[1], 1, 2),
            (STRANGERS[0], 2, 2),
        ]
        for seq in range(1, count + 1)
    ]
    trust = Trust(attestors=frozenset({ATTESTOR.public}), participants=frozenset({MEMBER.public}))
    return Case("authors whom the network does not name", CROWDED, mixed([*naming, *written]), trust)


def delegated(root: KeyPair, device: KeyPair) -> Record:
    body = Identity(action="delegate", root=root.public, device=device.public)
    return sealed(root, body, kind="identity", network=CROWDED)


def cases() -> list[Case]:
    return [one_number_on_one_day(), many_of_one_author(), unattested()]
