"""A network is its constants and its nonce; its file, its bytes and its invite say the same, and rubbish says why."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import NotFound, UsageError
from autoresearch.record.encoding import encode
from autoresearch.record.record import DEFAULT_NETWORK, Network
from autoresearch.trust.invite import read_invite, write_invite
from autoresearch.trust.manifest import (
    ATTESTORS_MAX,
    BOOTSTRAP_MAX,
    DEFAULT_MANIFEST,
    PARTICIPANTS_MAX,
    TASKS_MAX,
    NetworkManifest,
    parse_key,
)
from autoresearch.trust.manifest_file import (
    MANIFEST_BYTES_MAX,
    decode_manifest,
    encode_manifest,
    format_manifest,
    load_manifest,
    parse_manifest,
    read_manifest,
    save_manifest,
)
from autoresearch.trust.roster import Trust
from tests.trust.networks.making import ADDRESS, PEER, RELAYED, TEA, manifests

VECTOR = Path(__file__).parent / "tea.txt"


@given(manifests)
def test_file_bytes_and_invite_give_back_the_same_network(manifest: NetworkManifest) -> None:
    assert parse_manifest(format_manifest(manifest).encode(), "it") == manifest
    assert decode_manifest(encode_manifest(manifest)) == manifest
    invite = write_invite(manifest)
    assert read_invite(invite).manifest == manifest
    assert read_invite(f"  {invite[:20]}\n {invite[20:].upper()} ").manifest == manifest


def test_the_bytes_and_the_invite_of_a_network_stay_what_they_are() -> None:
    raw, network_id = VECTOR.read_text().split()
    assert (encode_manifest(TEA).hex(), TEA.network.id.hex()) == (raw, network_id)


def test_the_built_in_network_has_the_id_that_it_always_had() -> None:
    assert DEFAULT_NETWORK.id.hex() == "b6be1ce104c74a277b0a100a451a498c"


def test_networks_of_one_name_differ_by_their_nonce_and_by_every_constant() -> None:
    ids = {Network(name="tea").id, Network(name="tea", nonce=b"1" * 16).id, Network(name="tea", nonce=b"2" * 16).id}
    ids |= {Network(name="tea", per_day=7).id, Network(name="tea", ahead_ms=7).id}
    assert len(ids) == 5
    assert replace(TEA, trust=Trust(), tasks=(), bootstrap=()).network.id == TEA.network.id


@pytest.mark.parametrize(
    "changes",
    [
        {"network": Network(name="")},
        {"network": Network(name="a/b")},
        {"network": Network(name="x" * 41)},
        {"network": Network(name="tea", nonce=b"short")},
        {"network": Network(name="tea", record_bytes=1 << 40)},
        {"network": Network(name="tea", per_author=0)},
        {"network": Network(name="tea", ahead_ms=-1)},
        {"trust": Trust(needed=0)},
        {"trust": Trust(frozenset({b"short"}))},
        {"trust": Trust(frozenset(bytes([n]) * 32 for n in range(ATTESTORS_MAX + 1)))},
        {"tasks": (b"short",)},
        {"bootstrap": ("rubbish",)},
        {"bootstrap": (f"/ip4/999.1.1.1/tcp/1/p2p/{PEER}",)},
        {"bootstrap": (f"/ip6/127.0.0.1/tcp/1/p2p/{PEER}",)},
        {"bootstrap": (f"/ip4/127.0.0.1/tcp/70000/p2p/{PEER}",)},
        {"bootstrap": (f"/ip4/127.0.0.1/tcp/1/p2p-circuit/p2p/{PEER}",)},
        {"bootstrap": (ADDRESS,) * (BOOTSTRAP_MAX + 1)},
    ],
)
def test_a_network_out_of_bounds_does_not_exist(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        replace(TEA, **changes)


def test_a_node_at_a_relay_may_be_where_to_begin() -> None:
    relayed = TEA.with_bootstrap((RELAYED,))
    assert relayed.bootstrap == (RELAYED, *TEA.bootstrap)
    assert read_invite(write_invite(relayed)).manifest == relayed


def test_the_largest_network_fits_on_the_wire_and_is_too_long_for_an_invite() -> None:
    def some(count: int) -> list[bytes]:
        return [number.to_bytes(32, "big") for number in range(count)]

    largest = NetworkManifest(
        Network(name="x" * 40, nonce=b"n" * 16, per_day=7),
        Trust(frozenset(some(ATTESTORS_MAX)), 2, frozenset(some(PARTICIPANTS_MAX))),
        tuple(some(TASKS_MAX)),
        tuple(f"/dns4/{'h' * 150}{number}.org/tcp/4001/p2p/{PEER}" for number in range(BOOTSTRAP_MAX)),
    )
    assert len(encode_manifest(largest)) <= MANIFEST_BYTES_MAX
    assert decode_manifest(encode_manifest(largest)) == largest
    assert parse_manifest(format_manifest(largest).encode(), "it") == largest


def test_a_file_whose_constants_were_changed_is_not_the_network_that_it_says(tmp_path: Path) -> None:
    text = format_manifest(TEA).replace("per_day = 1000", "per_day = 1001")
    with pytest.raises(UsageError, match="its constants make"):
        parse_manifest(text.encode(), "it")
    raw = encode_manifest(TEA).replace(b"tea", b"tee")
    with pytest.raises(UsageError, match="its constants make"):
        decode_manifest(raw)


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"name = ",
        b'name = "tea"\nsurprise = 1',
        b"name = 7",
        b'name = "tea"\nnonce = "xyz"',
        b'name = "tea"\n[constants]\nnew_constant = 1',
        b'name = "tea"\n[constants]\nper_day = 1e9',
        b'name = "tea"\n[trust]\nattestors = ["me"]',
        b"name = " + b"[" * 100_000,
        b"#" * 200_000,
    ],
)
def test_a_file_that_is_no_manifest_is_a_sentence_with_its_name(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "it.toml"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=r"it\.toml"):
        read_manifest(path)


@given(st.binary(max_size=300))
def test_bytes_of_strangers_are_a_network_or_refused(raw: bytes) -> None:
    with pytest.raises(UsageError):
        decode_manifest(raw)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_refused_or_another_well_formed_network(position: int, change: int) -> None:
    raw = bytearray(encode_manifest(TEA))
    raw[position % len(raw)] ^= change
    try:
        decoded = decode_manifest(bytes(raw))
    except UsageError:
        return
    assert decoded != TEA
    assert encode_manifest(decoded) == bytes(raw)


@pytest.mark.parametrize(
    "changes",
    [{"v": 2}, {"v": "1"}, {"extra": 1}, {"nonce": "AAAA"}, {"needed": 1.0}, {"constants": {"other": 1}}, {"id": b""}],
)
def test_an_answer_with_other_fields_is_refused(changes: dict[str, object]) -> None:
    given_fields = {
        "v": 1, "id": TEA.network.id, "name": "tea", "nonce": TEA.network.nonce, "constants": {"per_day": 1000},
        "attestors": [b"a" * 32, b"b" * 32], "needed": 1, "participants": [b"p" * 32], "tasks": [b"t" * 32],
        "bootstrap": list(TEA.bootstrap),
    }  # fmt: skip
    assert decode_manifest(encode(given_fields)) == TEA
    with pytest.raises(UsageError):
        decode_manifest(encode(given_fields | changes))


def test_one_network_has_one_spelling() -> None:
    swapped = encode_manifest(TEA).replace(b"a" * 32, b"c" * 32)
    with pytest.raises(UsageError, match="one right way"):
        decode_manifest(swapped)


@given(st.integers(0, 10_000), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567 1890-"))
def test_an_invite_with_a_wrong_character_is_damaged(position: int, character: str) -> None:
    invite = write_invite(TEA)
    place = position % len(invite)
    wrong = invite[:place] + character + invite[place + 1 :]
    if wrong != invite:
        with pytest.raises(UsageError):
            read_invite(wrong)


@given(st.integers(0, 500))
def test_a_cut_invite_is_damaged(length: int) -> None:
    invite = write_invite(TEA)
    with pytest.raises(UsageError, match="damaged"):
        read_invite(invite[: length % len(invite)])


def test_an_invite_that_unpacks_to_a_bomb_is_refused() -> None:
    import base64
    import hashlib
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(3_000_000)) + packer.flush()
    digits = base64.b32encode(packed + hashlib.sha256(packed).digest()[:4]).decode().lower().rstrip("=")
    assert len(digits) < 8000
    with pytest.raises(UsageError, match="damaged"):
        read_invite("autoresearch1" + digits)


def test_a_data_folder_without_a_manifest_is_in_the_built_in_network(tmp_path: Path) -> None:
    assert load_manifest(tmp_path / "network.toml") == DEFAULT_MANIFEST
    save_manifest(tmp_path / "network.toml", TEA)
    assert load_manifest(tmp_path / "network.toml") == TEA
    assert [path.name for path in tmp_path.iterdir()] == ["network.toml"]
    with pytest.raises(NotFound):
        read_manifest(tmp_path / "other.toml")


def test_a_manifest_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.toml"
    save_manifest(path, TEA)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_manifest(path, DEFAULT_MANIFEST)
    assert load_manifest(path) == TEA
    assert [path.name for path in tmp_path.iterdir()] == ["network.toml"]


def test_trust_is_edited_one_key_at_a_time() -> None:
    key = parse_key("ab" * 32)
    more = TEA.with_attestor(key).with_participant(key)
    assert key in more.trust.attestors & more.trust.participants
    assert more.without_attestor(key).without_participant(key) == TEA
    assert TEA.without_attestor(key) == TEA
    for text in ("", "ab" * 31, "xy" * 32, "ab " * 32):
        with pytest.raises(UsageError, match="no key"):
            parse_key(text)
