"""What the log does not keep is not brought again: its keys stay in the index, as many as there is room for."""

from __future__ import annotations

from autoresearch_daemon.peers.ingest import DroppedKeys

from autoresearch.log.log import Log
from autoresearch.log.sync.index import KeyIndex
from autoresearch.log.sync.session import Leader, Opener, SyncFinished
from autoresearch.record.record import Network
from autoresearch.trust.roster import Trust
from tests.log.sync.test_session import Side, exchange
from tests.record.making import NOW_MS, key, run_body, sealed


def test_the_oldest_go_when_there_is_no_room():
    passed = DroppedKeys(most=3)
    assert passed.add([(1, b"a"), (2, b"b"), (3, b"c")]) == []
    assert passed.add([(4, b"d")]) == [(1, b"a")]
    passed.discard([(3, b"c"), (9, b"z")])
    assert (len(passed), passed.clear(), passed.keys()) == (2, [(2, b"b"), (4, b"d")], [])


def test_a_peer_that_holds_what_is_over_the_bound_here_does_not_send_it_twice(tmp_path):
    network = Network(name="crowded", unattested=2)
    made = [
        sealed(key(60), run_body(source=b"%d" % seq), seq=seq, time_ms=NOW_MS + seq, network=network)
        for seq in range(1, 6)
    ]
    passed, index = DroppedKeys(), KeyIndex()

    def changed(came, went):
        index.update(came)
        passed.discard(came)
        index.update(went)
        passed.add(went)

    with Log.open(tmp_path / "log.sqlite", network, trust=Trust(participants=frozenset({key(1).public}))) as log:
        log.writer.on_change = changed
        theirs = [(record.raw, record.signature) for record in made]
        for sent in (5, 0):
            opening = Side(theirs, Opener, nonce=b"a" * 16, network=network)
            leading = Side([], Leader, nonce=b"b" * 16, network=network)
            leading.session._index.update(
                [(record.time, record.id) for record in made if (record.time, record.id) in index]
            )
            exchange(opening, leading)
            log.writer.ingest(list(leading.records.values()), now_ms=NOW_MS + 1000)
            assert isinstance(leading.outcome, SyncFinished)
            assert leading.outcome.received == sent
        assert log.records.count() == network.unattested
        assert len(passed) == len(made) - network.unattested
