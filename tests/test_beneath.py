"""One function opens the files of a folder that a stranger may have made: no link leads out of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.beneath import (
    LeadsOut,
    is_file_beneath,
    open_beneath,
    path_to_write,
    read_beneath,
    remove_beneath,
    resolve_beneath,
    text_beneath,
    write_beneath,
)
from tests.links import CANARY, INSIDE, LINKS, OTHERS, plant

MOST = 1 << 16
Act = Callable[[Path], object]
ACTS: dict[str, Act] = {
    "open": lambda folder: open_beneath(folder, "a/file").read(MOST),
    "read": lambda folder: read_beneath(folder, "a/file", MOST),
    "text": lambda folder: text_beneath(folder, "a/file", MOST),
    "resolve": lambda folder: resolve_beneath(folder, "a/file").read_bytes(),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    place = tmp_path / "home/.ssh/id"
    place.parent.mkdir(parents=True)
    place.write_bytes(CANARY)
    return place


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clone/a").mkdir(parents=True)
    return tmp_path / "clone"


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("kind", LINKS)
def test_a_link_that_leads_out_is_read_by_nothing(folder: Path, secret: Path, kind: str, act: Act) -> None:
    plant(kind, folder / "a/file", secret)
    with pytest.raises(OSError, match=r"leads out of the folder|Too many levels|No such file"):
        act(folder)
    assert not is_file_beneath(folder, "a/file")


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_plain_file_is_refused_without_waiting(folder: Path, secret: Path, kind: str) -> None:
    plant(kind, folder / "a/file", secret)
    with pytest.raises(OSError, match=r"no plain file|it is a folder"):
        read_beneath(folder, "a/file", MOST)


@pytest.mark.parametrize("kind", [*LINKS, *OTHERS, "hard", "missing"])
def test_what_is_written_never_changes_a_file_elsewhere(folder: Path, secret: Path, kind: str) -> None:
    plant(kind, folder / "a/file", secret)
    if kind != "folder":
        write_beneath(folder, "a/file", b"new")
        assert (read_beneath(folder, "a/file", 9), (folder / "a/file").is_symlink()) == (b"new", False)
        remove_beneath(folder, "a/file")
    plant(kind, folder / "a/file", secret)
    if kind != "folder":
        path_to_write(folder, "a/file").write_bytes(b"new")
    assert secret.read_bytes() == CANARY
    assert sorted(path.name for path in secret.parent.iterdir()) == ["id"]
    assert not list((folder / "a").glob(".file.*"))


@pytest.mark.parametrize("name", ["out/new", "out/deep/new", "in/../out/new", "../new", "a/../../new"])
def test_a_folder_that_is_a_link_out_is_written_through_by_nothing(folder: Path, secret: Path, name: str) -> None:
    (folder / "out").symlink_to(secret.parent)
    (folder / "in").symlink_to("a")
    for write in (
        lambda: write_beneath(folder, name, b"new"),
        lambda: write_beneath(folder, name, b"new", new=True),
        lambda: path_to_write(folder, name),
        lambda: remove_beneath(folder, name.replace("new", "id")),
    ):
        with pytest.raises(LeadsOut, match="leads out of the folder, to "):
            write()
    assert [path.name for path in secret.parent.iterdir()] == ["id"]
    assert not (folder.parent / "new").exists()


@pytest.mark.parametrize("kind", INSIDE)
def test_a_link_that_stays_in_the_folder_is_followed(folder: Path, secret: Path, kind: str) -> None:
    (folder / "data").mkdir()
    (folder / "data/v3").write_bytes(b"content")
    INSIDE[kind](folder / "a/file", folder / "data/v3")
    assert read_beneath(folder, "a/file", MOST) == b"content"
    assert resolve_beneath(folder, "a/file") == folder.resolve() / ("a/file" if kind == "hard" else "data/v3")
    assert read_beneath(Path(os.path.relpath(folder)), "a/file", MOST) == b"content"
    if kind != "hard":
        with pytest.raises(OSError, match="it is a link, and no plain file"):
            read_beneath(folder, "a/file", MOST, links=False)
    assert read_beneath(folder, folder.resolve() / "a/file", MOST) == b"content"


def test_the_folder_itself_may_be_named_by_a_link(folder: Path, secret: Path) -> None:
    (folder / "a/file").write_bytes(b"x" * 9)
    (folder.parent / "named").symlink_to(folder)
    write_beneath(folder.parent / "named", "a/b/c", b"y")
    assert read_beneath(folder.parent / "named", "a/file", 9) == b"x" * 9
    with pytest.raises(OSError, match="larger than 0 KiB"):
        read_beneath(folder, "a/file", 8)
    with pytest.raises(OSError, match="no path has"):
        read_beneath(folder, "a/\0", 8)


def test_a_file_is_replaced_whole_with_its_mode_and_a_new_one_replaces_nothing(folder: Path) -> None:
    (folder / "run.sh").write_text("old")
    (folder / "run.sh").chmod(0o751)
    write_beneath(folder, "run.sh", b"new")
    assert (folder / "run.sh").stat().st_mode & 0o777 == 0o751
    with pytest.raises(FileExistsError):
        write_beneath(folder, "run.sh", b"newer", new=True)
    with pytest.raises(IsADirectoryError):
        write_beneath(folder, "a", b"")
    assert ((folder / "run.sh").read_text(), sorted(path.name for path in folder.iterdir())) == ("new", ["a", "run.sh"])


@pytest.mark.slow
def test_a_link_that_is_put_in_place_meanwhile_leads_nowhere_either(folder: Path, secret: Path) -> None:
    ended = threading.Event()
    (folder / "a/id").write_bytes(b"honest")
    (folder / "x").symlink_to("a")

    def swap() -> None:
        while not ended.is_set():
            for target in (secret.parent, "a"):
                (folder / "link").symlink_to(target)
                (folder / "link").replace(folder / "x")
            (folder / "link").symlink_to(secret)
            (folder / "link").replace(folder / "a/id")
            (folder / "plain").write_bytes(b"honest")
            (folder / "plain").replace(folder / "a/id")

    swapping = threading.Thread(target=swap)
    swapping.start()
    contents = []
    for _ in range(2000):
        with suppress(OSError):
            contents.append(read_beneath(folder, "x/id", 99))
        with suppress(OSError):
            write_beneath(folder, "x/new", b"")
    ended.set()
    swapping.join()
    assert set(contents) <= {b"honest"}
    assert [path.name for path in secret.parent.iterdir()] == ["id"]


@given(st.lists(st.sampled_from(["a", "b", "up", "out", "..", ".", "", "/", "id", "loop"]), max_size=8))
def test_no_path_of_any_parts_leads_out(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp() / "parts"
    folder = root / "clone"
    if not root.exists():
        (folder / "a/b").mkdir(parents=True)
        (root / "id").write_bytes(CANARY)
        (folder / "id").write_bytes(b"inside")
        for place in (folder, folder / "a", folder / "a/b"):
            (place / "up").symlink_to("..")
            (place / "out").symlink_to(root)
            (place / "loop").symlink_to("loop/loop")
    with suppress(OSError):
        assert read_beneath(folder, "/".join(parts), 99) == b"inside"
