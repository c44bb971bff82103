"""Founders in a manifest, tokens in invites, and the files of the invites that this machine gave out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.record.encoding import decode
from autoresearch.record.record import DAY_MS
from autoresearch.trust.invite import Invitations, join_with, joined, read_invite, token_of, write_invite
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import decode_manifest, encode_manifest, format_manifest, parse_manifest
from autoresearch.trust.roster import Trust
from tests.record.making import NOW_MS
from tests.trust.networks.making import TEA, manifests

ROOT, OTHER = b"r" * 32, b"q" * 32
FOUNDED = TEA.with_founder(ROOT)


@given(manifests, st.binary(min_size=32, max_size=32) | st.none())
def test_an_invite_gives_back_network_and_token(manifest: NetworkManifest, token: bytes | None) -> None:
    assert read_invite(write_invite(manifest, token)) == (manifest, token)


def test_without_founder_and_token_a_manifest_is_what_it_always_was() -> None:
    assert decode(encode_manifest(TEA)).keys().isdisjoint({"founders", "token"})
    assert decode(encode_manifest(TEA))["v"] == 1
    assert "founders" not in format_manifest(TEA)


def test_founders_may_be_edited_and_make_no_other_network() -> None:
    assert FOUNDED.network.id == TEA.network.id
    assert decode(encode_manifest(FOUNDED))["v"] == 2
    assert parse_manifest(format_manifest(FOUNDED).encode(), "tea.toml") == FOUNDED
    assert FOUNDED.without_founder(ROOT) == TEA
    with pytest.raises(UsageError, match="founders are at most 16"):
        replace(TEA, trust=Trust(founders=frozenset(bytes([number]) * 32 for number in range(17))))


def test_a_node_that_is_asked_for_its_network_tells_no_token() -> None:
    with pytest.raises(UsageError, match="the token of an invite"):
        decode_manifest(encode_manifest(FOUNDED, b"s" * 32))
    with pytest.raises(UsageError):
        decode_manifest(encode_manifest(FOUNDED, b"short"))


def test_a_join_holds_for_its_key_and_network_alone() -> None:
    join = join_with(b"s" * 32, TEA.network.id, ROOT)
    assert (join.token, joined(join, TEA.network.id)) == (token_of(b"s" * 32), True)
    assert not joined(join, bytes(16))
    for changed in ({"participant": OTHER}, {"token": token_of(b"t" * 32)}, {"token": bytes(32)}, {"proof": bytes(64)}):
        assert not joined(msgspec.structs.replace(join, **changed), TEA.network.id)


@pytest.fixture
def invitations(tmp_path: Path) -> Invitations:
    return Invitations(tmp_path / "network.toml", TEA.network)


def test_an_invite_is_open_until_it_expires_or_is_ended(invitations: Invitations, tmp_path: Path) -> None:
    made, seed = invitations.make(NOW_MS, uses=2, days=7)
    assert (made.token, made.uses) == (token_of(seed), 2)
    assert [made.is_open(NOW_MS + ms) for ms in (0, 7 * DAY_MS - 1, 7 * DAY_MS)] == [True, True, False]
    ended = invitations.revoke(invitations.find(made.token.hex()[:6]))
    assert not ended.is_open(NOW_MS)
    assert invitations.all() == [ended]
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert seed.hex().encode() not in everything
    assert msgspec.json.encode(seed)[1:-1] not in everything


def test_invites_of_another_network_are_not_this_networks(invitations: Invitations, tmp_path: Path) -> None:
    invitations.make(NOW_MS, uses=1, days=1)
    other = replace(TEA.network, nonce=b"n" * 16)
    assert Invitations(tmp_path / "network.toml", other).all() == []


@pytest.mark.parametrize(("uses", "days"), [(0, 1), (257, 1), (1, 0), (1, 366), (-1, 7)])
def test_an_invite_for_nobody_or_for_ever_is_none(invitations: Invitations, uses: int, days: int) -> None:
    with pytest.raises(UsageError, match="an invite has 1 to"):
        invitations.make(NOW_MS, uses=uses, days=days)
    assert invitations.all() == []


def test_an_invite_is_found_by_the_beginning_of_its_token(invitations: Invitations) -> None:
    for _ in range(17):  # two of them begin alike
        invitations.make(NOW_MS, uses=1, days=1)
    with pytest.raises(NotFound):
        invitations.find("")
    with pytest.raises(NotFound):
        invitations.find("zz")
    heads = [invitation.token.hex()[0] for invitation in invitations.all()]
    with pytest.raises(AmbiguousId):
        invitations.find(max(heads, key=heads.count))


def test_a_damaged_file_is_a_sentence_and_what_to_publish_waits(invitations: Invitations, tmp_path: Path) -> None:
    assert invitations.kept_join() is None
    before = invitations.stamp()
    invitations.keep_join(join_with(b"s" * 32, TEA.network.id, ROOT))
    assert joined(invitations.kept_join(), TEA.network.id)
    assert invitations.stamp() != before
    (tmp_path / "join.json").write_bytes(os.urandom(40))
    assert invitations.kept_join() is None
    made, _ = invitations.make(NOW_MS, uses=1, days=1)
    (tmp_path / "invites" / f"{made.token.hex()}.json").write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        invitations.all()
