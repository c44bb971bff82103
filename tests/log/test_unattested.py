"""All authors together whom the network does not name: many keys fill no disk, and all peers keep the same of them."""

import hashlib
import random
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import Refused
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.kinds import Admission, Attestation, Identity, Note
from autoresearch.record.record import DAY_MS, Network
from autoresearch.trust.roster import Trust
from tests.log.dumping import dump
from tests.log.test_set_functions import MEMORY, fill, keep
from tests.record.making import NOW_MS, key, pairs, run_body, sealed

NETWORK = Network(name="crowded", per_day_seq=2, per_day=4, unattested=7)
ROOT, DEVICE, ATTESTOR, MEMBER, PHONE = key(1), key(2), key(3), key(4), key(5)
STRANGERS = [key(60 + number) for number in range(6)]
TRUST = Trust(attestors=frozenset({ATTESTOR.public}), participants=frozenset({ROOT.public}))
NAMED = {who.public for who in (ROOT, DEVICE, ATTESTOR)}


@contextmanager
def opened(trust=TRUST, network=NETWORK):
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        Log.open(Path(folder) / "log.sqlite", network, trust=trust) as log,
    ):
        yield log


def wrote(author, seq, day=0, text=""):
    """A run, so many days ago."""
    body = run_body(source=f"{seq} {text}".encode())
    return sealed(author, body, seq=seq, time_ms=NOW_MS - day * DAY_MS, network=NETWORK)


def delegated(root, device, seq=1):
    body = Identity(action="delegate", root=root.public, device=device.public)
    return sealed(root, body, kind="identity", seq=seq, network=NETWORK)


def attested(subject):
    body = Attestation(
        subject=subject.public, tag=b"t" * 32, method="code", issued=NOW_MS - DAY_MS, expires=NOW_MS + DAY_MS
    )
    return sealed(ATTESTOR, body, kind="attestation", network=NETWORK)


def place(entry):
    """Where a record stands among those of the unattested: the newest days first, then authors as they are drawn."""
    author, day, seq, record_id = entry
    return -day, hashlib.sha256(b"autoresearch/unattested/1" + day.to_bytes(8, "big") + author).digest(), seq, record_id


def share(entries, root, device):
    """What is kept of a root key and its device, as of one participant."""
    days, stored = Counter(), {entry for entry in entries if entry[0] not in (root, device)}
    for entry in sorted(entries - stored, key=lambda entry: (entry[0] != root, *entry[2:])):
        days[entry[1]] += 1
        if days[entry[1]] <= NETWORK.per_day:
            stored.add(entry)
    return stored


def kept_of(made, named=NAMED):
    """The ids that are kept, as the protocol states it."""
    entries = keep({(record.author, record.time // DAY_MS, record.seq, record.id) for record in made}, NETWORK)
    for root, device in ((ROOT, DEVICE), (MEMBER, PHONE)):
        if {root.public, device.public} <= named:
            entries = share(entries, root.public, device.public)
    crowd = sorted((entry for entry in entries if entry[0] not in named), key=place)
    return {entry[3] for entry in entries if entry[0] in named} | {entry[3] for entry in crowd[: NETWORK.unattested]}


def held(log):
    return {record_id for _, record_id in log.records.iter_keys()}


WRITTEN = st.lists(
    st.builds(
        wrote, st.sampled_from([*STRANGERS, DEVICE]), st.integers(1, 4), st.integers(0, 2), st.sampled_from("xyz")
    ),
    min_size=1,
    max_size=40,
    unique_by=lambda record: record.id,
)


@given(WRITTEN, st.randoms(use_true_random=False), st.integers(1, 9))
@settings(max_examples=12, deadline=None)
def test_what_is_kept_is_a_function_of_the_set(made, order, batch):
    named = delegated(ROOT, DEVICE)
    with opened() as first, opened() as other:
        for log in (first, other):  # what comes before a device is named is counted with the strangers'
            fill(log, [named])
        fill(first, made)
        fill(other, made, order, batch)
        assert held(first) == held(other) == kept_of([named, *made])
        contents = dump(first)
        assert dump(other) == contents
        other.writer.rebuild()
        assert dump(other) == contents


@given(WRITTEN, st.data())
@settings(max_examples=20, deadline=None)
def test_two_logs_that_exchange_what_they_kept_hold_what_one_log_would(made, data):
    first = delegated(ROOT, DEVICE)
    left = [first, *(record for record in made if data.draw(st.booleans()))]
    right = [first, *(record for record in made if record not in left or data.draw(st.booleans()))]
    with opened() as ours, opened() as theirs:
        fill(ours, left)
        fill(theirs, right)
        for local, remote in ((ours, theirs), (theirs, ours)):
            local.writer.ingest(list(remote.records.iter_raw()), now_ms=NOW_MS + 10**6)
        assert held(ours) == held(theirs) == kept_of([*left, *right])


def test_whom_a_founder_admits_is_named_until_the_founder_dismisses_it():
    founder, trust = key(6), Trust(founders=frozenset({key(6).public}))
    lots = [wrote(stranger, 1) for stranger in STRANGERS] + [wrote(MEMBER, seq) for seq in (2, 3, 4)]

    def word(seq, *, admits, by=founder):
        body = Admission(action="admit" if admits else "remove", participant=MEMBER.public)
        return sealed(by, body, kind="admission", seq=seq, time_ms=NOW_MS + seq, network=NETWORK)

    by_itself, admitted, dismissed = word(1, admits=True, by=MEMBER), word(1, admits=True), word(2, admits=False)
    with opened(trust) as log:
        fill(log, [*lots, by_itself])
        assert log.records.count() == NETWORK.unattested
        fill(log, [admitted, *lots, by_itself])
        named = {record.id for record in [*lots, by_itself] if record.author == MEMBER.public}
        assert named <= held(log)
        assert log.records.count() == len(named) + len(STRANGERS) + 1
        fill(log, [dismissed])
        assert log.records.count() == NETWORK.unattested + 2


@given(WRITTEN, st.lists(st.builds(wrote, st.just(PHONE), st.integers(1, 3)), max_size=3), st.randoms())
@settings(max_examples=15, deadline=None)
def test_who_is_attested_later_is_kept_from_then_on_and_peers_become_equal(made, member, order: random.Random):
    """The participant's own node kept what others dropped; they take it once they know of the attestation."""
    member = [delegated(MEMBER, PHONE), *{record.id: record for record in member}.values()]
    named, word = delegated(ROOT, DEVICE), attested(MEMBER)
    with opened() as first, opened() as other, opened(Trust()) as home:
        for log in (first, other):
            fill(log, [named])
        fill(first, [*made, *member], order, 3)
        fill(other, [*member, *made], order, 5)
        fill(home, [*member, word])
        for _ in range(3):
            for local, remote in ((first, home), (other, first), (first, other)):
                local.writer.ingest(list(remote.records.iter_raw()), now_ms=NOW_MS + 10**6)
        stored = kept_of([named, *made, *member, word], NAMED | {MEMBER.public, PHONE.public})
        assert held(first) == held(other)
        # What strangers lost while the participant was one of them is lost.
        assert {record.id for record in member if record.id in stored} <= held(first) <= stored


def test_what_was_written_here_is_never_dropped(tmp_path):
    mine = key(9)
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        own = [
            log.writer.append(mine, "note", Note(topic="insight", text=str(n)), now_ms=NOW_MS - DAY_MS).id
            for n in range(4)
        ]
        fill(log, [wrote(who, seq) for who in STRANGERS for seq in range(1, 5)])
        assert held(log) >= set(own)
        assert len(held(log)) == NETWORK.unattested + len(own)
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        fill(log, [wrote(key(70 + number), 1) for number in range(9)])
        assert held(log) >= set(own)


DEVICES = [key(200 + number) for number in range(10)]


def test_many_devices_of_a_participant_share_what_one_may_write():
    named = [delegated(ROOT, device, seq) for seq, device in enumerate(DEVICES[:4], start=1)]
    made = [wrote(device, seq) for device in DEVICES[:4] for seq in range(1, 5)]
    older = [wrote(device, seq, day=1) for device in DEVICES[:4] for seq in range(1, 5)]
    with opened() as left, opened() as other:
        fill(left, [*named, *made, *older])
        fill(other, [*reversed(older), *made, *named], batch=3)
        fill(other, [*older, *made])  # what was dropped as of strangers comes again
        first = sorted(older, key=lambda record: (record.seq, record.id))
        assert held(left) == held(other) == {record.id for record in [*named, *first[: NETWORK.per_day]]}


def test_nobody_uses_up_the_share_of_a_device_that_names_another_root_key():
    other = key(7)
    trust = Trust(participants=frozenset({ROOT.public, other.public}))
    mine = sealed(DEVICE, Identity(action="profile", root=ROOT.public), kind="identity", seq=1, network=NETWORK)
    honest = [mine, *(wrote(DEVICE, seq) for seq in (2, 3))]
    taken = [delegated(other, device, seq) for seq, device in enumerate((DEVICE, *DEVICES[:2]), start=1)]
    flood = [wrote(device, seq) for device in DEVICES[:2] for seq in range(1, 5)]
    with opened(trust) as log:
        fill(log, [delegated(ROOT, DEVICE), *honest, *taken])
        fill(log, flood)
        assert {record.id for record in honest} <= held(log)
        assert len(held(log)) == 1 + len(honest) + NETWORK.per_day


def test_a_network_that_names_nobody_keeps_all():
    made = [wrote(who, seq) for who in STRANGERS for seq in range(1, 5)]
    with opened(Trust()) as log:
        assert {verdict.state for verdict in fill(log, made)} == {State.STORED}
        assert len(held(log)) == len(made)


def test_what_is_over_the_bound_is_said_and_changes_no_view(tmp_path):
    made = sorted((wrote(who, seq) for who in STRANGERS for seq in range(1, 5)), key=lambda item: item.id)
    with opened() as log:
        states = [verdict.state for verdict in fill(log, made, batch=4)]
        assert states.count(State.OVER_QUOTA) > 0
        before = log.reader.revision().drops
        old = [wrote(key(90), seq, day=30) for seq in range(1, 4)]
        assert {verdict.state for verdict in fill(log, old)} == {State.OVER_QUOTA}
        assert held(log) == kept_of(made)
        assert log.reader.revision().drops == before, "what was never seen makes nobody look at everything anew"


@pytest.mark.parametrize("writer", ["other process", "trust"])
def test_what_changes_beside_the_log_is_noticed(tmp_path, writer):
    made = [wrote(who, seq) for who in STRANGERS for seq in range(1, 5)]
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        fill(log, made[:12])
        if writer == "trust":
            log.trust = Trust(participants=frozenset(who.public for who in STRANGERS[:2]))
            fill(log, made)
            expected = kept_of(made, {who.public for who in STRANGERS[:2]})
        else:
            with Log.open(tmp_path / "log.sqlite", NETWORK) as other:
                other.writer.ingest(pairs(made[12:]), now_ms=NOW_MS + 10**6)
            fill(log, [wrote(DEVICE, 1)])
            expected = None
        if expected is not None:
            assert held(log) == expected
        else:
            assert len(held(log)) == NETWORK.unattested


def test_one_s_own_devices_share_what_one_may_write_as_peers_count(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        fill(log, [delegated(ROOT, DEVICES[0], 1), *(wrote(DEVICES[1], seq) for seq in range(1, 3))])
        fill(log, [delegated(ROOT, DEVICES[1], 2)])

        def write():
            return log.writer.append(DEVICES[0], "note", Note(topic="insight", text="x"), now_ms=NOW_MS).id

        signed = {write()}
        with pytest.raises(Refused, match="as many records as peers keep"):
            signed |= {write() for _ in range(NETWORK.per_day)}
        assert signed <= held(log), "what was refused costs nothing that was written"
        assert log.writer.missing_own(DEVICES[0].public) is None
