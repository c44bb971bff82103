"""Which releases are components; hostile ones are none, whatever they say. And the order of versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.kinds import Release
from autoresearch.task.release import component_of, content_digest, is_prerelease, version_key
from tests.nasty import NASTY
from tests.record.making import BLOB

TREE = f"h1:{'ab' * 32}"
GOOD = {
    "type": "policy",
    "tree": TREE,
    "class_name": "main:Q",
    "file_path": "main.py",
    "params": {"size": {"default": 4}},
}
ORDER = ["0.9", "1.0a1", "1.0-beta.2", "1.0-beta.11", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.2", "1.10"]
SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20) | st.binary(max_size=20)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner))
NUMBERS = st.lists(st.integers(0, 10**30), min_size=1, max_size=4)
BAD_NAMES = ("..", ".", ".git", "a/b", "a b", "", NASTY[:60], "a\n", "-x", "ä", "--upload-pack=x", "a\\b")


def release(name: str = "q_table", version: str = "1.0", **metadata: object) -> Release:
    return Release(name=name, version=version, bundle=BLOB, metadata={**GOOD, **metadata})


def test_a_release_of_a_component_is_read() -> None:
    component = component_of(release(unknown=[1], git="https://example.org/x", commit="ab" * 20))
    assert component is not None
    assert (component.name, component.metadata.type, component.metadata.params["size"].default) == (
        "q_table",
        "policy",
        4,
    )


@given(st.dictionaries(st.sampled_from([*GOOD, "git", "commit", "needs", "requirements", "license"]), VALUES))
def test_no_metadata_is_more_than_no_component(metadata: dict[str, object]) -> None:
    component = component_of(Release(name="a", version="1", bundle=BLOB, metadata=metadata))
    assert component is None or component.metadata.tree == metadata["tree"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"name": name} for name in BAD_NAMES),
        *({"version": version} for version in ("-1", "1 0", "1/2", NASTY[:60], "1.0\n")),
        *({"type": kind} for kind in ("", "Policy", "a b", "x" * 33, "policy\n", 7, None)),
        *({"tree": tree} for tree in ("", "h1:", "ab" * 32, f"{TREE}\n", f"h2:{'ab' * 32}")),
        *({"class_name": name} for name in ("main", "main:", "os.system('x')", "a:b\n", "a:b c", NASTY)),
        *({"file_path": path} for path in ("../x", "/etc/passwd", "a/../../b", ".git/config", "x" * 241)),
        *({"requirements_path": path} for path in ("../x", "a\x00b")),
        *({"commit": commit} for commit in ("HEAD", "abc", "--output=x", "AB" * 20, "ab" * 20 + "\n")),
        *({"description": "x" * 2049}, {"requirements": ["x"] * 257}, {"needs": [7]}, {"license": "x" * 65}),
        *({"params": {"a": {"default": [1]}}}, {"params": {f"p{n}": {} for n in range(129)}}, {"git": "x" * 513}),
    ],
)
def test_what_could_harm_is_no_component(wrong: dict[str, object]) -> None:
    assert component_of(release(**wrong)) is None


def test_the_content_is_what_is_installed() -> None:
    contents = [
        *({}, {"description": "other words", "license": "MIT", "git": "https://example.org/a"}),
        *({"class_name": "main:Other"}, {"tree": f"h1:{'cd' * 32}"}, {"needs": ["environment/2048"]}),
    ]
    digests = [content_digest(component) for fields in contents if (component := component_of(release(**fields)))]
    assert digests[0] == digests[1]
    assert (len(digests), len(set(digests))) == (5, 4)


def test_versions_are_in_order() -> None:
    assert sorted(set(ORDER), key=version_key) == ORDER
    assert version_key("1.0") == version_key("1.0.0") == version_key("v1")
    assert [version for version in ORDER if is_prerelease(version)] == ORDER[1:5]
    assert version_key("main") == "" < version_key("0")


@given(st.text(max_size=64))
def test_any_text_has_a_place_among_versions(text: str) -> None:
    assert isinstance(version_key(text), str)


@given(NUMBERS, NUMBERS)
def test_numbers_are_compared_as_numbers(first: list[int], second: list[int]) -> None:
    def key(numbers: list[int]) -> str:
        return version_key(".".join(map(str, numbers)))

    def trimmed(numbers: list[int]) -> list[int]:
        while len(numbers) > 1 and not numbers[-1]:
            numbers = numbers[:-1]
        return numbers

    assert (key(first) < key(second)) == (trimmed(first) < trimmed(second))
