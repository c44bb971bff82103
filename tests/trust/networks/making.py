"""Networks for tests, and a strategy for any."""

from dataclasses import replace

from hypothesis import strategies as st

from autoresearch.record.record import DEFAULT_NETWORK, Network
from autoresearch.trust.manifest import DEFAULT_MANIFEST, NetworkManifest
from autoresearch.trust.roster import Trust

PEER = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"
ADDRESS = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER}"
TEA = NetworkManifest(
    Network(name="tea", nonce=bytes(range(16)), per_day=1000),
    Trust(frozenset({b"a" * 32, b"b" * 32}), 1, frozenset({b"p" * 32})),
    (b"t" * 32,),
    (ADDRESS, f"/dns4/node.example.org/tcp/4001/p2p/{PEER}"),
)
RELAYED = f"/ip4/203.0.113.7/tcp/4001/p2p/{PEER[:-1]}M/p2p-circuit/p2p/{PEER}"

keys = st.binary(min_size=32, max_size=32)
ports = st.integers(1, 65535)
addresses = st.one_of(
    st.tuples(st.ip_addresses(v=4), ports).map(lambda at: f"/ip4/{at[0]}/tcp/{at[1]}/p2p/{PEER}"),
    st.tuples(st.ip_addresses(v=6), ports).map(lambda at: f"/ip6/{at[0]}/tcp/{at[1]}/p2p/{PEER}"),
    st.tuples(st.from_regex(r"[a-z][a-z0-9-]{0,20}\.org", fullmatch=True), ports).map(
        lambda at: f"/dns4/{at[0]}/tcp/{at[1]}/p2p/{PEER}"
    ),
)
networks = st.builds(
    Network,
    name=st.from_regex(r"[0-9A-Za-z][0-9A-Za-z._-]{0,39}", fullmatch=True),
    nonce=st.binary(min_size=16, max_size=16) | st.just(b""),
    record_bytes=st.integers(1024, 16384),
    ahead_ms=st.integers(0, 86_400_000),
    start_ms=st.integers(0, 2**52),
    per_day_seq=st.integers(1, 1024),
    per_day=st.integers(1, 2**31),
    per_author=st.integers(1, 2**31),
    tag_memory_bytes=st.integers(8192, 2**30),
    tag_passes=st.integers(1, 16),
    domain_voices=st.integers(1, 2**31),
    verify_quorum=st.integers(1, 16),
    verify_age_ms=st.integers(0, 2**40),
) | st.just(replace(DEFAULT_NETWORK, nonce=b"n" * 16))
manifests = (
    st.builds(
        NetworkManifest,
        network=networks,
        trust=st.builds(
            Trust,
            attestors=st.frozensets(keys, max_size=4),
            needed=st.integers(1, 64),
            participants=st.frozensets(keys, max_size=8),
            founders=st.frozensets(keys, max_size=3),
        ),
        tasks=st.lists(keys, max_size=3, unique=True).map(tuple),
        bootstrap=st.lists(addresses, max_size=4, unique=True).map(tuple),
    )
    | st.just(DEFAULT_MANIFEST)
    | st.just(TEA)
)
