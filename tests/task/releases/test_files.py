"""The files of a release: bundle and hash are functions of the files, and nothing else is taken for a bundle."""

from __future__ import annotations

import io
import tarfile
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.task.program import form_fault
from autoresearch.task.release import BUNDLE_BYTES, BadBundle, File, fault_of_path, pack, tree_hash, unpack

PARTS = st.from_regex(r"\A[a-zä_][a-z0-9_ä-]{0,20}\Z")
PATHS = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: f"{'/'.join(parts)}.csv")
PATHS = PATHS.filter(lambda path: not fault_of_path(path) and not form_fault(path))


def fits(files: list[File]) -> bool:
    paths = [file.path for file in files]
    return len(set(paths)) == len(paths) and not any(path.startswith(f"{other}/") for path in paths for other in paths)


FILES = st.lists(st.builds(File, PATHS, st.binary(max_size=600), st.booleans()), min_size=1, max_size=6).filter(fits)


def archive(*entries: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as made:
        for member in entries:
            made.addfile(member, io.BytesIO(bytes(member.size)))
    return buffer.getvalue()


def entry(name: str, **fields: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.mode = 0o644
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@given(FILES, st.randoms(use_true_random=False))
def test_a_bundle_holds_the_files_whatever_their_order(files: list[File], random: Random) -> None:
    bundle, shuffled = pack(files), list(files)
    assert unpack(bundle) == sorted(files)
    random.shuffle(shuffled)
    assert (pack(shuffled), tree_hash(shuffled)) == (bundle, tree_hash(files))


@given(FILES)
def test_the_hash_names_every_byte_mode_and_name(files: list[File]) -> None:
    first, rest = files[0], files[1:]
    others = (
        first._replace(content=first.content + b"x"),
        first._replace(executable=not first.executable),
        first._replace(path=f"{first.path}x"),
    )
    assert len({tree_hash([other, *rest]) for other in (first, *others)}) == 4


@given(st.binary(max_size=3000))
def test_no_bytes_are_more_than_refused(data: bytes) -> None:
    with pytest.raises(BadBundle):
        unpack(data)


@given(FILES, st.data())
def test_a_changed_bundle_has_other_files_or_is_refused(files: list[File], data: st.DataObject) -> None:
    bundle = bytearray(pack(files))
    bundle[data.draw(st.integers(0, len(bundle) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        unpacked = unpack(bytes(bundle))
    except BadBundle:
        return
    assert tree_hash(unpacked) != tree_hash(files)


@pytest.mark.parametrize(
    "made",
    [
        archive(entry("link", type=tarfile.SYMTYPE, linkname="/etc/passwd")),
        archive(entry("link", type=tarfile.LNKTYPE, linkname="../x")),
        archive(entry("folder", type=tarfile.DIRTYPE)),
        archive(entry("pipe", type=tarfile.FIFOTYPE)),
        archive(entry("device", type=tarfile.CHRTYPE)),
        *(archive(entry(name)) for name in ("../outside", "/etc/x", "a/../../x", "a//b", "./a", "x" * 300)),
        *(archive(entry(name)) for name in (".git/hooks/post-checkout", "a/.GIT/config", "a\\b", "c:x", "a\nb")),
        archive(entry("a"), entry("a")),
        archive(entry("a"), entry("a/b")),
        archive(entry("b"), entry("a")),
        *(archive(entry("a", **fields)) for fields in ({"mode": 0o4755}, {"uid": 7}, {"mtime": 5}, {"uname": "root"})),
        archive(entry("a", pax_headers={"comment": "hidden"})),
        archive(entry("a"), form=tarfile.GNU_FORMAT) + b"more",
        archive(entry("a"))[:512].replace(b"00000000000", b"77777777777", 1),
        archive(),
        b"",
    ],
)
def test_an_archive_that_is_no_bundle_is_refused(made: bytes) -> None:
    with pytest.raises(BadBundle):
        unpack(made)


def test_more_than_a_component_may_have_is_refused() -> None:
    for files, why in (
        ([File("a", bytes(BUNDLE_BYTES + 1))], "MiB"),
        ([File(f"f{number}", b"") for number in range(5000)], "files"),
        ([], "no file"),
    ):
        with pytest.raises(BadBundle, match=why):
            pack(files)


@given(st.text(max_size=300))
def test_any_text_is_judged_as_a_path(path: str) -> None:
    if fault_of_path(path) is None:
        assert not path.startswith("/")
        assert ".." not in path.split("/")
        assert path.isprintable()
