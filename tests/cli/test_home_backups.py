"""The whole home as one file: what was there is there again, and nothing is ever overwritten."""

from __future__ import annotations

import contextlib
import io
import itertools
import sqlite3
import subprocess
import sys
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.models import CompactAnswer

from autoresearch.log.blobs import BlobStore
from autoresearch.paths import Paths
from tests.cli.conftest import Cli
from tests.cli.filling import Filled
from tests.daemon.daemons import Daemon, wait_for


def files(root: Path) -> dict[str, int]:
    """The files of a home that matter, with the rights on them."""
    stored = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm", ".lock")))
    return {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in stored}


def test_a_restored_home_is_what_it_was_while_others_wrote_to_it(
    cli: Cli, filled: Filled, paths: Paths, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("node", "config", "set", "work.hours", "sat-sun")
    paths.make_api_token()
    paths.daemon_log.write_text("a line")
    file = tmp_path / "node.tar"
    with sqlite3.connect(paths.log) as writing:
        writing.execute("INSERT INTO meta VALUES('half', 'written')")  # and not committed
        done = cli("node", "backup", str(file))
        writing.rollback()
    assert done.exit_code == 0, done.stderr
    assert "Your keys are in it" in done.stderr
    assert file.stat().st_mode & 0o077 == 0
    questions = (("run", "list", "--json"), ("node", "id", "devices", "--json"), ("show", filled.best, "--code"))
    before = [cli(*words).stdout for words in questions]

    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    done = cli("node", "restore", str(file))
    assert done.exit_code == 0, done.stderr
    assert [cli(*words).stdout for words in questions] == before
    assert cli("node", "config", "get", "work.hours").stdout.strip() == "sat-sun"
    expected = {name: mode for name, mode in files(home).items() if not name.endswith(("api-token", "daemon.log"))}
    assert files(tmp_path / "other") == expected
    assert (tmp_path / "other/data/keys").stat().st_mode & 0o077 == 0

    again = cli("node", "restore", str(file))
    assert again.exit_code != 0
    assert "into an empty home only" in again.stderr
    assert "exists already" in cli("node", "backup", str(file)).stderr


def test_a_backup_has_the_bytes_of_each_blob_that_it_names_while_blobs_are_put(
    cli: Cli, filled: Filled, paths: Paths, tmp_path: Path
) -> None:
    ended = threading.Event()

    def put() -> None:
        with BlobStore(paths.blobs) as blobs:
            for number in itertools.takewhile(lambda _: not ended.is_set(), itertools.count()):
                blobs.put(b"blob %d" % number)

    with ThreadPoolExecutor(1) as pool:
        putting = pool.submit(put)
        try:
            done = [cli("node", "backup", str(tmp_path / f"{number}.tar")) for number in range(5)]
        finally:
            ended.set()
        putting.result()
    assert [each.exit_code for each in done] == [0] * 5
    for number in range(5):
        with tarfile.open(tmp_path / f"{number}.tar") as tar:
            held = {Path(name).name for name in tar.getnames() if "/blobs/objects/" in name}
            index = tmp_path / f"{number}.sqlite"
            index.write_bytes(tar.extractfile("data/blobs/index.sqlite").read())  # type: ignore[union-attr]
        with sqlite3.connect(index) as reading:
            named = {row[0].hex() for row in reading.execute("SELECT sha256 FROM blob")}
        assert named - held == set()


def test_what_a_backup_names_and_lacks_is_not_taken_for_here(
    cli: Cli, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("node", "backup", str(tmp_path / "whole.tar")).exit_code == 0
    with tarfile.open(tmp_path / "whole.tar") as whole, tarfile.open(tmp_path / "part.tar", "w") as part:
        for member in whole:
            if "/blobs/objects/" not in member.name:
                part.addfile(member, whole.extractfile(member))
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    assert cli("node", "restore", str(tmp_path / "part.tar")).exit_code == 0
    refused = cli("show", filled.best, "--code")
    assert (refused.exit_code, "is not on this machine" in refused.stderr) == (4, True), refused.stderr


@pytest.mark.parametrize("cut", [0.5, 0.99, "between"])
def test_a_backup_that_is_not_whole_restores_nothing(
    cli: Cli, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: float | str
) -> None:
    file = tmp_path / "node.tar"
    cli("node", "backup", str(file))
    with tarfile.open(file) as tar:
        last = tar.getmembers()[-1].offset
    content = file.read_bytes()
    file.write_bytes(content[: last if isinstance(cut, str) else int(cut * last)])
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "other"))
    refused = cli("node", "restore", str(file))
    assert refused.exit_code != 0
    assert "no whole backup" in refused.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_a_restore_that_is_killed_is_done_again_and_nothing_begins_before(
    cli: Cli, filled: Filled, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, other = tmp_path / "node.tar", tmp_path / "other"
    cli("node", "backup", str(file))
    before = cli("run", "list", "--json").stdout
    expected = files(home)
    monkeypatch.setenv("AUTORESEARCH_HOME", str(other))
    process = subprocess.Popen([sys.executable, "-m", "autoresearch_cli", "node", "restore", str(file)])
    wait_for(lambda: (other / "data/restoring").exists() or process.poll() is not None)
    process.kill()
    process.wait()
    if not (other / "data/restoring").exists():  # it was faster
        (other / "data/restoring").write_text(str(file))
    for words in (
        ("node", "backup", str(tmp_path / "half.tar")),
        ("up",),
        ("node", "restore", str(tmp_path / "else.tar")),
    ):
        refused = cli(*words)
        assert refused.exit_code not in {0, 70}, words
    assert "half restored" in cli("up").stderr
    done = cli("node", "restore", str(file))
    assert done.exit_code == 0, done.stderr
    assert files(other) == {
        name: mode for name, mode in expected.items() if not name.endswith(("api-token", "daemon.log"))
    }
    assert cli("run", "list", "--json").stdout == before


def written_backup(file: Path, *members: tarfile.TarInfo) -> Path:
    """A file that begins as a backup does."""
    with tarfile.open(file, "w") as tar:
        mark = tarfile.TarInfo("autoresearch-backup")
        mark.size = 2
        tar.addfile(mark, io.BytesIO(b"1\n"))
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(max(member.size, 0))))
    return file


# What leads out of the home, is not in its shortest form, or can't be a name of a backup.
NAMES = ["data/../../evil", "/etc/evil", "other/evil", "data//tmp/evil", "data//../evil", "./config/x", "config/./x"]
NAMES += [
    "data",
    "data\\..\\evil",
    "C:/evil",
    "data/a\nb",
    "data/\x1b[2J",
    f"data/{'x' * 300}",
    "data/" + "y/" * 600 + "z",
]
NAMES += ["config/\u202etxt", "~/x", "data/..", "data/ /../../x", "restoring", "autoresearch-backup/x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_backup_writes_nowhere_else(cli: Cli, home: Path, tmp_path: Path, name: str) -> None:
    honest = tarfile.TarInfo("config/config.toml")
    refused = cli("node", "restore", str(written_backup(tmp_path / "evil.tar", honest, tarfile.TarInfo(name))))
    assert refused.exit_code == 2, refused.stderr
    assert "take another backup" in refused.stderr
    assert not home.exists() or not any(path.is_file() for path in home.rglob("*"))


KINDS = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]


@pytest.mark.parametrize("kind", [*KINDS, tarfile.CONTTYPE])
def test_a_backup_holds_plain_files_alone(cli: Cli, home: Path, tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("data/x")
    member.type, member.linkname = kind, "/etc/passwd"
    refused = cli("node", "restore", str(written_backup(tmp_path / "evil.tar", member)))
    assert refused.exit_code == 2
    assert "which no backup has" in refused.stderr
    assert not home.exists() or not any(path.is_file() for path in home.rglob("*"))


@pytest.mark.parametrize(
    "names", [("data/x", "data/x"), ("data/x", "data/X"), ("data/\u00e9", "data/e\u0301"), ("data/x", "data/x/y")]
)
def test_no_two_files_of_a_backup_are_one(cli: Cli, home: Path, tmp_path: Path, names: tuple[str, str]) -> None:
    refused = cli("node", "restore", str(written_backup(tmp_path / "evil.tar", *map(tarfile.TarInfo, names))))
    assert refused.exit_code == 2
    assert "one file on some disks" in refused.stderr or "needs a folder" in refused.stderr
    assert not home.exists() or not any(path.is_file() for path in home.rglob("*"))


def with_size(size: int) -> bytes:
    """A header of a tar file with a size that no writer writes."""
    header = bytearray(tarfile.TarInfo("data/x").tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = (0xFF if size < 0 else 0x80).to_bytes() + size.to_bytes(11, signed=True)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@pytest.mark.parametrize("size", [-1, -512, -1024, -(2**70), 2**40, 2**62, 2**80])
def test_sizes_that_no_file_has_are_a_sentence(cli: Cli, home: Path, tmp_path: Path, size: int) -> None:
    file = written_backup(tmp_path / "evil.tar")
    content = file.read_bytes()[:1024]
    file.write_bytes(content + with_size(size) + bytes(1024))
    refused = cli("node", "restore", str(file))
    assert refused.exit_code == 2, refused.stderr
    assert not home.exists() or not any(path.is_file() for path in home.rglob("*"))


def test_a_backup_that_is_damaged_between_two_files_is_refused_as_a_whole(
    cli: Cli, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, other = tmp_path / "whole.tar", tmp_path / "other"
    assert cli("node", "backup", str(whole)).exit_code == 0
    with tarfile.open(whole) as tar:
        places = [member.offset for member in tar][2::20]
    monkeypatch.setenv("AUTORESEARCH_HOME", str(other))
    for place in places:
        content = bytearray(whole.read_bytes())
        content[place + 3] ^= 1  # in the name: the header's sum does not fit
        (tmp_path / "damaged.tar").write_bytes(content)
        refused = cli("node", "restore", str(tmp_path / "damaged.tar"))
        assert (refused.exit_code, "missing or damaged" in refused.stderr) == (2, True), refused.stderr
        assert not any(path.is_file() for path in other.rglob("*"))


def test_what_is_no_backup_is_refused_with_a_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no tar")
    tarfile.open(tmp_path / "empty.tar", "w").close()
    for name in ("text", "empty.tar", "missing"):
        refused = cli("node", "restore", str(tmp_path / name))
        assert refused.exit_code not in {0, 70}
        assert name in refused.stderr
    assert "nothing to keep" in cli("node", "backup", str(tmp_path / "new.tar")).stderr


@pytest.mark.slow
def test_beside_a_running_daemon_a_backup_is_made_and_none_is_put_back(cli: Cli, home: Path, tmp_path: Path) -> None:
    daemon, file = Daemon(home).start(), tmp_path / "node.tar"
    try:
        assert cli("node", "backup", str(file)).exit_code == 0
        assert "The daemon runs." in cli("node", "restore", str(file)).stderr
    finally:
        daemon.stop()
    restored = Daemon(tmp_path / "other")
    assert cli("node", "restore", str(file)).exit_code != 0
    with tarfile.open(file) as tar:
        assert {"data/log.sqlite", "data/keys/device.key", "state/local.sqlite"} <= set(tar.getnames())
    assert not restored.home.exists()


@pytest.mark.slow
def test_compacting_gives_space_back_and_loses_nothing(cli: Cli, filled: Filled, paths: Paths) -> None:
    with contextlib.closing(sqlite3.connect(paths.log)) as log:
        log.executescript("CREATE TABLE gone(x); INSERT INTO gone VALUES(zeroblob(1000000)); DROP TABLE gone;")
    before = cli("run", "list", "--json").stdout
    answer = msgspec.json.decode(cli("node", "compact", "--json").stdout, type=CompactAnswer)
    [log_file] = [file for file in answer.files if file.file == str(paths.log)]
    assert log_file.before - log_file.after > 900_000
    assert paths.log.stat().st_size == log_file.after
    assert cli("run", "list", "--json").stdout == before

    with sqlite3.connect(paths.log) as writing:
        writing.execute("INSERT INTO meta VALUES('half', 'written')")
        refused = cli("node", "compact")
        writing.rollback()
    assert refused.exit_code != 0
    assert f"{paths.log} can't be compacted: database is locked" in refused.stderr


def test_everything_goes_but_the_keys(cli: Cli, filled: Filled, paths: Paths) -> None:
    refused = cli("node", "uninstall", "--everything")
    assert (refused.exit_code, "--yes" in refused.stderr) == (2, True)
    assert paths.log.exists()
    cli("node", "config", "set", "work.workers", "2")
    keys = {file.name: file.read_bytes() for file in paths.keys.iterdir()}
    done = cli("node", "uninstall", "--everything", "--yes")
    assert (done.exit_code, f"your keys stay in {paths.keys}" in done.stderr) == (0, True)
    assert {file.name: file.read_bytes() for file in paths.keys.iterdir()} == keys
    assert list(paths.data.iterdir()) == [paths.keys]
    assert not any(place.exists() for place in (paths.config, paths.cache, paths.state, paths.runtime))
    assert cli("node", "uninstall", "--everything", "--yes").exit_code == 0
