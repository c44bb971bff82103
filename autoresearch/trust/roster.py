"""Whose word a record carries: from the device key that signed it to the participant, attested or not. Pure.

That follows from which root keys attest, how many of them it takes, and whom the founders of the network admitted.
Everything is judged at a record's own time, never by a clock, and from the set of records alone, so that all peers come
to the same answer in whatever order records arrive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from autoresearch.record.kinds import Admission, Attestation, Identity, Withdrawal
from autoresearch.record.record import Record


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a network believes about who is who.

    ``attestors`` are the root keys whose attestations count, ``needed`` is how many of them must have attested a
    participant, and ``participants`` are root keys that count as attested without that: named by hand, for groups
    whose members know each other. ``founders`` are root keys that count likewise, and whose admissions in the log let
    others count.
    """

    attestors: frozenset[bytes] = frozenset()
    needed: int = 2
    participants: frozenset[bytes] = frozenset()
    founders: frozenset[bytes] = frozenset()

    @property
    def names_anybody(self) -> bool:
        """Whether the network says whose word counts; otherwise all words are alike."""
        return bool(self.attestors or self.participants or self.founders)


# How many admitted participants count, as many as a manifest may name.
ADMITTED_MAX = 256


def last_word(records: Sequence[Record]) -> Record:
    """Of several records about one thing the one that holds, whatever time a clock gave them.

    A later record of one device replaces an earlier one, by their numbers, and a record replaces those that it links.
    Of those that nothing replaces the last in the order of time, number and id holds. Where all are replaced,
    which no honest device does, all are compared so.
    """
    newest: dict[bytes, int] = {}
    for record in records:
        newest[record.author] = max(record.seq, newest.get(record.author, 0))
    replaced = {link for record in records for link in record.links}
    standing = [record for record in records if record.seq == newest[record.author] and record.id not in replaced]
    return max(standing or records, key=lambda record: (record.time, record.seq, record.id))


def last_admissions(records: Iterable[Record]) -> dict[bytes, Record]:
    """By participant the founders' last word. Forks of a founder's device change nothing: all records count."""
    about: defaultdict[bytes, list[Record]] = defaultdict(list)
    for record in records:
        if isinstance(record.body, Admission):
            about[record.body.participant].append(record)
    return {participant: last_word(words) for participant, words in about.items()}


def is_admission(record: Record) -> bool:
    """Whether a founder's word counts a participant from then on, or no longer."""
    return isinstance(record.body, Admission) and record.body.action == "admit"


def admitted(latest: Mapping[bytes, Record]) -> frozenset[bytes]:
    """The participants that count by these words: of too many those whose admission is the earliest."""
    admitting = [(word.time, word.seq, word.id, who) for who, word in latest.items() if is_admission(word)]
    return frozenset(who for *_, who in sorted(admitting)[:ADMITTED_MAX])


NEVER = 2**63
# So many devices speak for a root key at a time.
DEVICES_MAX = 64
# What an attestation says of the domain of a mailbox at a provider that serves everybody: no limit counts there.
BIG_DOMAIN = "big"
# So many answers of each kind are kept, which costs memory and saves time.
_REMEMBERED_MAX = 1000
_SPOKEN_MAX = 100_000


class Voter(NamedTuple):
    """Whose word a record carries.

    ``root`` is the root key behind the device, or the device key itself when nothing delegates it. ``voter`` is what
    counts as one, however many keys it has: the mail tag when attested by mail, else the root key.
    """

    root: bytes
    voter: bytes
    attested: bool


class _Delegation(NamedTuple):
    """A root key lets a device speak for it, from and until (exclusive), Unix milliseconds."""

    start_ms: int
    end_ms: int
    root: bytes


class Word(NamedTuple):
    """One attestor's word for a participant and a mail tag, from and until (exclusive), Unix milliseconds.

    ``domain`` is the tag of the mailbox's domain, or "big"; ``method`` says what the attestor saw.
    """

    start_ms: int
    end_ms: int
    attestor: bytes
    tag: bytes
    domain: str
    method: str = "code"


class Roster:
    """Who is who, by the identity, attestation and admission records of a log and by whom the network trusts.

    ``decisions`` are the founders' last words by participant; ``admitted`` those who count by them.

    Of the mailboxes of one domain only the first ``domain_voices`` count at a time; None: all of them.
    """

    def __init__(self, records: Iterable[Record], trust: Trust, *, domain_voices: int | None = None) -> None:
        ordered = sorted(records, key=lambda record: (record.time, record.id))
        self.withdrawals = sum(isinstance(record.body, Withdrawal) for record in ordered)
        self._domain_voices = domain_voices
        self._delegations = _delegations(ordered)
        self._taken_back = self._taken_back_in(ordered)
        self.decisions = last_admissions(self._admissions_in(ordered, trust.founders))
        self.admitted = admitted(self.decisions)
        self._trust = replace(trust, participants=trust.participants | trust.founders | self.admitted)
        self._words = self._words_for(ordered)
        self._domains = self._domains_of()
        self._names = self._names_in(ordered)
        self._known_devices: dict[tuple[bytes, int], frozenset[bytes]] = {}
        self._spoken: dict[tuple[bytes, int], Voter] = {}
        self._present: dict[int, frozenset[bytes]] = {}

    @property
    def participants(self) -> frozenset[bytes]:
        """The root keys that count at any time, without a mailbox: founders, admitted, named by hand."""
        return self._trust.participants

    def voter(self, device: bytes, time_ms: int) -> Voter:
        """Whose word a record carries that this device signed at this time."""
        key = device, bisect_right(self._moments, time_ms)
        voter = self._spoken.get(key)
        if voter is None:
            if len(self._spoken) >= _SPOKEN_MAX:
                self._spoken.clear()
            voter = self._spoken[key] = self._voter(self._root(device, time_ms), time_ms)
        return voter

    def voters(self, time_ms: int) -> frozenset[bytes]:
        """The attested voters at this time; several keys with one mail tag are one."""
        moment = bisect_right(self._moments, time_ms)
        present = self._present.get(moment)
        if present is None:
            if len(self._present) >= _REMEMBERED_MAX:
                self._present.clear()
            voters = (self._voter(root, time_ms) for root in self._words.keys() | self._trust.participants)
            present = self._present[moment] = frozenset(voter.voter for voter in voters if voter.attested)
        return present

    def counted(self, time_ms: int) -> list[bytes]:
        """The root keys that count at this time, one for each voter: of several with one mailbox the smallest."""
        by_voter: dict[bytes, bytes] = {}
        for root in sorted(self._words.keys() | self._trust.participants):
            voter = self._voter(root, time_ms)
            if voter.attested:
                by_voter.setdefault(voter.voter, root)
        return list(by_voter.values())

    def count(self, time_ms: int) -> int:
        """How many attested voters there are at this time."""
        return self._counts[bisect_right(self._moments, time_ms)]

    def devices(self, root: bytes, time_ms: int) -> frozenset[bytes]:
        """The devices that speak for a root key at this time."""
        devices = self._known_devices.get((root, time_ms))
        if devices is None:
            named = self._named.get(root, set()) | {root} & self._delegations.keys()
            devices = frozenset(device for device in named if self._root(device, time_ms) == root)
            if len(self._known_devices) >= _REMEMBERED_MAX:
                self._known_devices.clear()
            # Each verification of a run asks this, and a stranger may name thousands of devices.
            self._known_devices[root, time_ms] = devices
        return devices

    @property
    def roots(self) -> frozenset[bytes]:
        """The root keys for which a device spoke at any time."""
        return frozenset(self._named)

    def owners(self, device: bytes) -> frozenset[bytes]:
        """The root keys that delegated this device at any time, as far as the device agreed."""
        return frozenset(delegation.root for delegation in self._delegations.get(device, ()))

    def spans(self, device: bytes) -> list[tuple[int, bytes]]:
        """From when on, Unix ms, a device speaks for which root key, each until the next; the first is from ever."""
        owned = self._delegations.get(device, ())
        moments = {moment for delegation in owned for moment in (delegation.start_ms, delegation.end_ms)}
        return [(moment, self._root(device, moment)) for moment in (-1, *sorted(moments))]

    def name(self, root: bytes) -> str:
        """What a participant last called itself, as it wrote it; empty when it has no name. It proves nothing."""
        profile = self._names.get(root)
        return profile.body.name if profile is not None and isinstance(profile.body, Identity) else ""

    def naming(self, root: bytes) -> Record | None:
        """The record of a participant's name, which its next one replaces."""
        return self._names.get(root)

    def keys_of(self, roots: Collection[bytes]) -> frozenset[bytes]:
        """These root keys and all devices that any of them delegated at any time."""
        return frozenset(roots).union(*(self._named.get(root, ()) for root in roots))

    @cached_property
    def keys(self) -> frozenset[bytes]:
        """All keys whose records may be those of an attested voter, at some time; nobody else's are at any time."""
        return self.keys_of(self._words.keys() | self._trust.participants)

    @property
    def everybody(self) -> frozenset[bytes]:
        """The keys of which any record or the trust list says something; of all others nothing is known at any time."""
        return frozenset(self._delegations) | self._named.keys() | self._words.keys() | self._trust.participants

    def course(self, key: bytes) -> tuple[list[object], frozenset[bytes]]:
        """All that decides over time how the records of a device count, and the voters that it ever was."""
        owned = self._delegations.get(key, [])
        roots = sorted({key, *(delegation.root for delegation in owned)})
        moments = {moment for delegation in owned for moment in (delegation.start_ms, delegation.end_ms)}
        moments |= {moment for root in roots if root in self._words for moment in self._moments_of(root)}
        named = [sorted(self._named.get(root, ())) for root in roots]
        course: list[object] = [[self._delegations.get(device) for device in devices] for devices in named]
        voters = set[bytes]()
        for moment in (-1, *sorted(moments)):
            voter = self._voter(self._root(key, moment), moment)
            voters.add(voter.voter)
            course.append((moment, voter, voter.root in self._trust.participants))
        return course, frozenset(voters)

    @property
    def voter_counts(self) -> list[tuple[int, int]]:
        """From which moment on there are how many attested voters; before the first there are as many as at -1."""
        return list(zip([-1, *self._moments], self._counts, strict=True))

    @cached_property
    def _moments(self) -> list[int]:
        """When anything begins or ends, in order: between two of these every device has one voter."""
        spans = [(each.start_ms, each.end_ms) for each in chain(*self._delegations.values())]
        spans += [(word.start_ms, word.end_ms) for words in self._words.values() for word in words]
        return sorted({moment for span in spans for moment in span})

    @cached_property
    def _counts(self) -> list[int]:
        """How many attested voters there are before the first moment, and from each moment on.

        Each root key is looked at when one of its own words, or of its mailbox's domain, begins or ends.
        """
        changes: defaultdict[int, list[tuple[bytes | None, bytes | None]]] = defaultdict(list)
        for root in self._words.keys() | self._trust.participants:
            before: bytes | None = None
            for at in sorted({0, *(bisect_right(self._moments, moment) for moment in self._moments_of(root))}):
                voter = self._voter(root, self._moments[at - 1] if at else -1)
                now = voter.voter if voter.attested else None
                if now != before:
                    changes[at].append((before, now))
                before = now
        counts: list[int] = []
        present: Counter[bytes] = Counter()  # several keys with one mail tag are one
        count = 0
        for at in range(len(self._moments) + 1):
            for before, now in changes.get(at, ()):
                if before is not None:
                    present[before] -= 1
                    count -= not present[before]
                if now is not None:
                    count += not present[now]
                    present[now] += 1
            counts.append(count)
        return counts

    def _moments_of(self, root: bytes) -> set[int]:
        """When a word for this root key, or for another mailbox that may come before its own, begins or ends."""
        words = self._words.get(root, [])
        if self._domain_voices is not None:
            domains = {word.domain for word in words} & self._domains.keys()
            roots = {other for domain in domains for _, subjects in self._domains[domain] for other in subjects}
            words = [*words, *(word for other in roots for word in self._words[other] if word.domain in domains)]
        return {moment for word in words for moment in (word.start_ms, word.end_ms)}

    @cached_property
    def _named(self) -> dict[bytes, set[bytes]]:
        """By root key the devices that it delegated at any time."""
        devices: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for device, delegations in self._delegations.items():
            for delegation in delegations:
                devices[delegation.root].add(device)
        return dict(devices)

    def words(self, root: bytes, time_ms: int) -> list[Word]:
        """The words of trusted attestors for a root key that hold at this time."""
        return [word for word in self._words.get(root, ()) if word.start_ms <= time_ms < word.end_ms]

    def mailboxes(self, domain: str, time_ms: int) -> frozenset[bytes]:
        """The tags of a domain for which any trusted attestor's word holds at this time."""
        return frozenset(
            word.tag
            for words in self._words.values()
            for word in words
            if word.domain == domain and word.start_ms <= time_ms < word.end_ms
        )

    def _voter(self, root: bytes, time_ms: int) -> Voter:
        # The mail tag that enough attestors agree on, the smallest if there are several.
        agreed = self._agreed(root, time_ms) if root in self._words else []
        tag = min((tag for tag, domain in agreed if self._is_among_first(tag, domain, time_ms)), default=None)
        return Voter(root, tag or root, attested=tag is not None or root in self._trust.participants)

    def _root(self, device: bytes, time_ms: int) -> bytes:
        for delegation in self._delegations.get(device, ()):
            if delegation.start_ms <= time_ms < delegation.end_ms:
                return delegation.root
        return device

    def _agreed(self, root: bytes, time_ms: int) -> list[tuple[bytes, str]]:
        """The tags and domains that enough attestors agree on at this time."""
        attestors: defaultdict[tuple[bytes, str], set[bytes]] = defaultdict(set)
        for word in self.words(root, time_ms):
            attestors[word.tag, word.domain].add(word.attestor)
        return [mailbox for mailbox, who in attestors.items() if len(who) >= self._trust.needed]

    def _is_among_first(self, tag: bytes, domain: str, time_ms: int) -> bool:
        """Whether a mailbox is within its domain's number of voters: those that were attested first come first."""
        if self._domain_voices is None or domain not in self._domains:
            return True
        before = 0
        for other, subjects in self._domains[domain]:
            if other == tag:
                return before < self._domain_voices
            before += any((other, domain) in self._agreed(root, time_ms) for root in subjects)
        return False

    def _names_in(self, records: list[Record]) -> dict[bytes, Record]:
        """By root key the last profile with a name, by itself or by a device that spoke for it then."""
        named: defaultdict[bytes, list[Record]] = defaultdict(list)
        for record in records:
            body = record.body
            if not isinstance(body, Identity) or body.action != "profile" or not body.name:
                continue
            if body.root in (record.author, self._root(record.author, record.time)):
                named[body.root].append(record)
        return {root: last_word(profiles) for root, profiles in named.items()}

    def _domains_of(self) -> dict[str, list[tuple[bytes, set[bytes]]]]:
        """By small domain: its tags, the first attested first, each with the root keys that it was attested for."""
        first: dict[str, dict[bytes, int]] = defaultdict(dict)
        subjects: defaultdict[tuple[str, bytes], set[bytes]] = defaultdict(set)
        for root, words in self._words.items():
            for word in words:
                if word.domain not in ("", BIG_DOMAIN):
                    first[word.domain][word.tag] = min(word.start_ms, first[word.domain].get(word.tag, NEVER))
                    subjects[word.domain, word.tag].add(root)
        return {
            domain: [(tag, subjects[domain, tag]) for tag in sorted(tags, key=lambda tag: (tags[tag], tag))]
            for domain, tags in first.items()
        }

    def _taken_back_in(self, records: list[Record]) -> dict[tuple[bytes, bytes], int]:
        """When a root key withdrew a record first, with any of its devices: the one that signed it may be lost."""
        taken_back: dict[tuple[bytes, bytes], int] = {}
        for record in records:
            if isinstance(record.body, Withdrawal):
                for link in record.links:
                    taken_back.setdefault((self._root(record.author, record.time), link), record.time)
        return taken_back

    def _admissions_in(self, records: list[Record], founders: frozenset[bytes]) -> Iterator[Record]:
        """The admissions by founders, without what they withdrew."""
        for record in records:
            if isinstance(record.body, Admission):
                founder = self._root(record.author, record.time)
                if founder in founders and (founder, record.id) not in self._taken_back:
                    yield record

    def _words_for(self, records: list[Record]) -> dict[bytes, list[Word]]:
        """The words of trusted attestors by whom they are for."""
        words: defaultdict[bytes, list[Word]] = defaultdict(list)
        for record in records:
            body = record.body
            if not isinstance(body, Attestation):
                continue
            attestor = self._root(record.author, record.time)
            if attestor in self._trust.attestors and attestor != body.subject:
                end_ms = min(body.expires, self._taken_back.get((attestor, record.id), NEVER))
                words[body.subject].append(Word(body.issued, end_ms, attestor, body.tag, body.domain, body.method))
        return dict(words)


def _delegations(records: list[Record]) -> dict[bytes, list[_Delegation]]:
    """Who delegates which device when, the first first.

    Both must say so: the root key in a delegation, the device in a profile that names the root key. Otherwise anybody
    could claim another's device as his own. While a root key has DEVICES_MAX devices, a further one does not begin.
    """
    says = {(r.author, r.body.root) for r in records if isinstance(r.body, Identity) and r.body.action == "profile"}
    revoked: dict[tuple[bytes, bytes], list[Record]] = defaultdict(list)
    for record in records:
        body = record.body
        if isinstance(body, Identity) and body.action == "revoke" and body.device and record.author == body.root:
            revoked[body.root, body.device].append(record)
    delegations: defaultdict[bytes, list[_Delegation]] = defaultdict(list)
    living: defaultdict[bytes, dict[bytes, int]] = defaultdict(dict)
    for record in records:
        body = record.body
        if not isinstance(body, Identity) or body.action != "delegate" or body.device is None:
            continue
        if record.author == body.root and (body.device, body.root) in says:
            # By the root key's own order: its clock may have been ahead when it delegated.
            ends = [each.time for each in revoked.get((body.root, body.device), []) if each.seq > record.seq]
            end_ms = min([body.expires if body.expires is not None else NEVER, *ends])
            others = {device: end for device, end in living[body.root].items() if end > record.time}
            if len(others.keys() - {body.device}) < DEVICES_MAX:
                living[body.root] = others | {body.device: max(end_ms, others.get(body.device, 0))}
                delegations[body.device].append(_Delegation(record.time, end_ms, body.root))
    return dict(delegations)
