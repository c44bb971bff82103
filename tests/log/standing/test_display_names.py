"""Participants are called by their key, which can be typed again, and by a name that nobody can misuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.context import participant_of, participant_with_key, trust_context
from autoresearch.log.standing.credit import credit
from autoresearch.log.standing.queries import board
from autoresearch.record.kinds import Identity
from autoresearch.text import NAME_CHARACTERS, plain_name
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, BEN, ROOTS, STRANGER, Village, settled
from tests.record.making import NETWORK, key


def named(village: Village, by: KeyPair, root: KeyPair, name: str) -> None:
    village.append(by, "identity", Identity(action="profile", root=root.public, name=name))


def test_a_device_and_its_root_key_are_one_participant_with_one_name(village: Village) -> None:
    named(village, ANN, ROOTS[1], "ann")
    participant = participant_of(village.log, ANN.public, village.now_ms)
    assert participant == participant_with_key(village.log, ROOTS[1].public)
    assert (participant.key, participant.name) == (ROOTS[1].public.hex(), "ann")
    assert participant.key.startswith(participant.short)
    named(village, ROOTS[1], ROOTS[1], "anna")
    assert participant_of(village.log, ANN.public, village.now_ms).name == "anna"


def test_a_name_is_taken_away_by_one_of_spaces_and_not_by_a_profile_that_says_nothing_of_it(village: Village) -> None:
    named(village, ANN, ROOTS[1], "ann")
    named(village, ANN, ROOTS[1], "")
    assert participant_with_key(village.log, ROOTS[1].public).name == "ann"
    named(village, ROOTS[1], ROOTS[1], " ")
    assert participant_with_key(village.log, ROOTS[1].public).name == ""
    named(village, ANN, ROOTS[1], "anna")
    assert participant_with_key(village.log, ROOTS[1].public).name == "anna"


def test_nobody_names_somebody_else(village: Village) -> None:
    named(village, STRANGER, ROOTS[1], "owned")
    named(village, BEN, ROOTS[1], "owned")
    assert participant_with_key(village.log, ROOTS[1].public).name == ""
    assert participant_of(village.log, STRANGER.public, village.now_ms).name == ""


def test_the_board_and_the_credit_call_a_participant_alike(village: Village) -> None:
    named(village, ANN, ROOTS[1], "ann")
    village.run(1.0, "good", by=ANN)
    row = next(
        row for row in board(village.log, village.task, trust_context(village.log), limit=5) if row.title == "good"
    )
    account = next(account for account in credit(settled(village.log)) if account.known_as == [row.participant])
    assert account.keys == [row.participant.key]
    assert row.author == ANN.public.hex()


def test_a_key_that_begins_like_anothers_makes_both_longer(tmp_path: Path) -> None:
    mine, other = bytes.fromhex("3fa9bc12" + "0" * 56), bytes.fromhex("3fa9bc12" + "01" + "0" * 54)
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=Trust(participants=frozenset({mine}))) as log:
        assert participant_with_key(log, mine).short == "3fa9bc12"
    trust = Trust(participants=frozenset({mine, other, key(3).public}))
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=trust) as log:
        assert participant_with_key(log, mine).short == "3fa9bc1200000"
        assert participant_with_key(log, other).short == "3fa9bc1201000"


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("ann", "ann"),
        ("Jürgen Ω", "Jürgen Ω"),
        ("evil \x1b[2J\x07", "evil [2J"),
        ("a\nb\tc", "a b c"),
        ("ann” · confirmed by 9", "ann · confirmed by 9"),
        ("x" * 100, "x" * (NAME_CHARACTERS - 1) + "…"),
        ("\u202ennA", "nnA"),
        ("a" + "\u0335" * 40, "a\u0335\u0335"),
        (" \u200b ", ""),
    ],
)
def test_a_name_keeps_to_its_place(name: str, cleaned: str) -> None:
    assert plain_name(name) == cleaned


@given(st.text(max_size=200))
def test_a_plain_name_is_short_and_stays_as_it_is(text: str) -> None:
    name = plain_name(text)
    assert len(name) <= NAME_CHARACTERS
    assert name.isprintable()
    assert plain_name(name) == name
    assert not set(name) & set('"“”')
