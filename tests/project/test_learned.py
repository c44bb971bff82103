"""What was learned as one file: the same bytes for the same state, nothing but state files out of a stranger's."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.project import learned
from autoresearch.project.learned import DamagedState, pack_learned, unpack_learned

KEYS = st.from_regex(r"[a-z]{1,8}\.[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
STATES = st.dictionaries(st.tuples(KEYS, st.sampled_from(["json", "safetensors"])), st.binary(max_size=200), max_size=8)


@given(state=STATES)
def test_what_is_packed_comes_out_and_has_the_same_bytes_again(
    tmp_path_factory: pytest.TempPathFactory, state: dict[tuple[str, str], bytes]
) -> None:
    folder = tmp_path_factory.mktemp("state")
    first, second, out = folder / "one.zip", folder / "two.zip", folder / "out"
    for number, files in enumerate((state, dict(reversed(state.items())))):
        place = folder / str(number)
        place.mkdir()
        for (key, kind), content in files.items():
            (place / f"{key}.{kind}").write_bytes(content)
        (place / "notes.txt").write_text("left out")
        pack_learned(place, (first, second)[number])
    assert first.read_bytes() == second.read_bytes()
    unpack_learned(first, out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        f"{key}.{kind}": content for (key, kind), content in state.items()
    }


def packed(*names: str, content: bytes = b"{}", **changes: object) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in names:
            entry = zipfile.ZipInfo(name)
            for key, value in changes.items():
                setattr(entry, key, value)
            file.writestr(entry, content)
    return archive.getvalue()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "no zip": lambda: b"hello",
    "empty": lambda: b"",
    "cut": lambda: packed("policy.a.json", content=b"x" * 999)[300:],
    "outside": lambda: packed("../policy.a.json"),
    "absolute": lambda: packed("/etc/policy.a.json"),
    "folder": lambda: packed("data/policy.a.json"),
    "hidden": lambda: packed(".policy.json"),
    "code": lambda: packed("policy.a.py"),
    "twice": lambda: packed("policy.a.json", "policy.a.json"),
    "bomb": lambda: packed("policy.a.json", content=b"0" * 10_000_000, compress_type=zipfile.ZIP_DEFLATED),
    "too many": lambda: packed(*(f"policy.a{number}.json" for number in range(learned.MOST_FILES + 1))),
    "a million names": lambda: packed(*(f"a{number}" for number in range(20_000))),
    "behind something": lambda: packed("policy.a.json") + b"more",
    "damaged": lambda: packed("policy.a.json", content=b"x" * 99).replace(b"xxxx", b"yyyy", 1),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_strangers_file_is_taken_whole_or_not_at_all(kind: str, tmp_path: Path) -> None:
    source, out = tmp_path / "learned.zip", tmp_path / "a/out"
    source.write_bytes(HOSTILE[kind]())
    with pytest.raises(DamagedState, match=r"learned\.zip holds no learned state: ."):
        unpack_learned(source, out)
    assert list(out.iterdir()) == []
    assert {path.name for path in tmp_path.rglob("*")} == {"learned.zip", "a", "out"}


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    source, out = tmp_path / "learned.zip", tmp_path / "out"
    source.write_bytes(packed("policy.a.json"))
    out.mkdir()
    (out / "policy.a.json").write_text("mine")
    with pytest.raises(DamagedState):
        unpack_learned(source, out)
    assert (out / "policy.a.json").read_text() == "mine"


@given(noise=st.binary(max_size=400), place=st.integers(0, 400))
def test_bytes_of_any_kind_raise_no_other_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("noise")
    good = packed("policy.a.json", "policy.a.safetensors")
    (folder / "learned.zip").write_bytes(good[:place] + noise + good[place + len(noise) :])
    try:
        unpack_learned(folder / "learned.zip", folder / "out")
    except DamagedState:
        assert list((folder / "out").iterdir()) == []
