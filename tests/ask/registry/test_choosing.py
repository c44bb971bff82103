"""What a name means is a function of the set of releases; a name that can mean several means none."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.registry.choosing import ListedRelease, ReleaseChoice, Spec, choose, equivocal
from autoresearch.errors import AmbiguousName, AutoresearchError, NotFound, UsageError
from autoresearch.log.rows import ReleaseRow
from autoresearch.task.release import is_prerelease, version_key

VERSIONS = ("1.0.0", "1.1.0", "2.0.0-rc1", "odd")
PUBLISHERS = (b"\x11" * 32, b"\x22" * 32, b"\x33" * 32)


def release(
    number: int = 0,
    version: str = "1.0.0",
    *,
    publisher: bytes = PUBLISHERS[0],
    content: bytes = b"c",
    attested: bool = True,
    own: bool = False,
    yanked: bool = False,
) -> ListedRelease:
    row = ReleaseRow(
        number.to_bytes(32, "big"), publisher, number, "policy", "q", version, version_key(version), content
    )
    return ListedRelease(row, publisher, attested, own, b"y" * 32 if yanked else None)


@st.composite
def sets(draw: st.DrawFn) -> list[ListedRelease]:
    trusted = {publisher: draw(st.booleans()) for publisher in PUBLISHERS}
    own = draw(st.none() | st.sampled_from(PUBLISHERS))
    results = []
    for number in range(draw(st.integers(0, 8))):
        publisher = draw(st.sampled_from(PUBLISHERS))
        fields = {"content": draw(st.sampled_from([b"a", b"b"])), "yanked": draw(st.booleans())}
        fields |= {"publisher": publisher, "attested": trusted[publisher], "own": publisher == own}
        results.append(release(number, draw(st.sampled_from(VERSIONS)), **fields))
    return results


def answer(releases: list[ListedRelease], spec: Spec, pinned: bytes | None = None) -> object:
    try:
        return choose(releases, spec, pinned=pinned)
    except AutoresearchError as error:
        return type(error), str(error), error.hint, getattr(error, "candidates", None)


@given(sets(), st.sampled_from(["", *VERSIONS, "9"]), st.sampled_from(["", "1111", "2222"]), st.randoms())
def test_any_order_of_arrival_gives_the_same(
    releases: list[ListedRelease], version: str, publisher: str, random: Random
) -> None:
    spec, shuffled = Spec("q", version, publisher), list(releases)
    random.shuffle(shuffled)
    assert answer(shuffled, spec) == answer(releases, spec)
    assert equivocal(shuffled) == equivocal(releases)


@given(sets(), st.sampled_from(["", *VERSIONS]))
def test_what_is_taken_is_what_the_rules_allow(releases: list[ListedRelease], version: str) -> None:
    taken = answer(releases, Spec("q", version))
    if not isinstance(taken, ReleaseChoice):
        return
    first = taken.release
    left = {each.publisher for each in releases if each.yanked is None or version}
    owners = {each.publisher for each in releases if each.own and each.publisher in left}
    trusted = owners or {each.publisher for each in releases if each.attested and each.publisher in left}
    assert trusted == {first.publisher}
    same = [each for each in releases if each.publisher == first.publisher]
    assert first.row.id not in equivocal(releases)
    if version:
        assert first.row.version == version
        assert first.yanked is None or all(each.yanked for each in same if each.row.version == version)
        return
    assert first.yanked is None
    better = [
        each
        for each in same
        if each.yanked is None and each.row.id not in equivocal(same) and not is_prerelease(each.row.version)
    ]
    assert all(each.row.version_key <= first.row.version_key for each in better)


@given(sets(), st.integers(0, 7))
def test_what_is_pinned_is_taken_whatever_else_there_is(releases: list[ListedRelease], number: int) -> None:
    pinned = number.to_bytes(32, "big")
    taken = answer(releases, Spec("q", "9"), pinned)
    matches = [each for each in releases if each.row.id == pinned]
    if not matches:
        assert taken[0] is NotFound
    else:
        assert isinstance(taken, ReleaseChoice)
        assert taken.release.row.id == pinned
        assert bool(taken.warnings) == (matches[0].yanked is not None)


def test_two_attested_publishers_are_listed_and_neither_is_taken() -> None:
    both = [release(1), release(2, publisher=PUBLISHERS[1])]
    with pytest.raises(AmbiguousName) as error:
        choose(both, Spec("q"))
    assert (error.value.exit_status, len(error.value.candidates)) == (9, 2)
    assert "11111111" in error.value.hint
    assert "22222222" in error.value.hint
    assert choose(both, Spec("q", publisher="2222")).release is both[1]
    mine = release(3, publisher=PUBLISHERS[2], own=True)
    assert choose([*both, mine], Spec("q")).release is mine


def test_a_stranger_alone_is_listed_and_taken_by_its_key() -> None:
    stranger = release(1, attested=False)
    with pytest.raises(AmbiguousName, match="unattested"):
        choose([stranger], Spec("q"))
    assert choose([stranger], Spec("q", publisher="1111")).release is stranger
    ours = release(2, publisher=PUBLISHERS[1])
    assert choose([stranger, ours], Spec("q")).release is ours


def test_one_version_with_two_contents_is_shown_and_not_taken() -> None:
    two = [release(1, "1.1.0"), release(2, "1.1.0", content=b"other")]
    with pytest.raises(AmbiguousName, match=r"two different releases 1\.1\.0") as error:
        choose(two, Spec("q"))
    assert len(error.value.candidates) == 2
    older = release(0, "1.0.0")
    taken = choose([*two, older], Spec("q"))
    assert taken.release is older
    assert "two different contents" in taken.warnings[0]
    with pytest.raises(AmbiguousName):
        choose([*two, older], Spec("q", "1.1.0"))
    assert choose([two[0], release(2, "1.1.0", content=b"other", yanked=True)], Spec("q")).release is two[0]


def test_yanked_ones_are_hidden_kept_and_warned_of() -> None:
    old, new = release(1, "1.0.0"), release(2, "1.1.0", yanked=True)
    assert choose([old, new], Spec("q")).release is old
    taken = choose([old, new], Spec("q", "1.1.0"))
    assert (taken.release, "is yanked" in taken.warnings[0]) == (new, True)
    with pytest.raises(NotFound, match="all releases of q are yanked"):
        choose([new], Spec("q"))


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    try:
        spec = Spec.parse(text)
    except UsageError:
        return
    assert "/" not in spec.name
    assert not spec.name.startswith((".", "-"))
