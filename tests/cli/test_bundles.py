"""A log carried by hand from one machine to another, with the daemon up or down."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from autoresearch.log.blobs import BlobStore
from autoresearch.log.bundle_format import DAG_CBOR, RAW, closing, opening, write_block, write_header
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.record import DEFAULT_NETWORK
from tests.cli.conftest import Cli
from tests.cli.filling import Filled
from tests.record.making import key, run_body, sealed


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """Another machine: commands after ``monkeypatch`` moved there are its own."""
    home = tmp_path / "elsewhere"
    return Paths.from_environment({"AUTORESEARCH_HOME": str(home)})


def ids(paths: Paths) -> set[bytes]:
    with Log.open(paths.log, DEFAULT_NETWORK, read_only=True) as log:
        return {record_id for _, record_id in log.records.iter_keys()}


def test_a_log_is_carried_to_another_machine(
    cli: Cli, filled: Filled, paths: Paths, elsewhere: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick = tmp_path / "log.car"
    written = cli("run", "export", "--bundle", str(stick), "--json")
    assert json.loads(written.stdout)["records"] == len(ids(paths)) == 9
    assert json.loads(written.stdout)["missing"] == 1
    monkeypatch.setenv("AUTORESEARCH_HOME", str(elsewhere.data.parent))
    first = json.loads(cli("node", "import", str(stick), "--json").stdout)
    assert (first["new"], first["present"], first["refused"]) == (9, 0, 0)
    assert ids(elsewhere) == ids(paths)
    assert "1.3" in cli("top").stdout
    assert cli("show", "@", "--code").exit_code == 0
    assert "0 new records, 9 known, 0 refused, 0 new blobs" in cli("node", "import", str(stick)).stderr
    with BlobStore(elsewhere.blobs, read_only=True) as blobs, BlobStore(paths.blobs, read_only=True) as own:
        stored = {name: blobs.find(bytes.fromhex(name)) for name in names(own)}
    assert sum(each is None for each in stored.values()) == 1, "the training log alone is left out"


def names(blobs: BlobStore) -> list[str]:
    return [path.name for path in blobs.root.glob("objects/*/*")]


def test_a_bundle_that_was_cut_off_is_a_sentence_that_says_what_came(
    cli: Cli, filled: Filled, elsewhere: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stick = tmp_path / "log.car"
    cli("run", "export", "--bundle", str(stick), "--blobs", "none")
    stick.write_bytes(stick.read_bytes()[:-100])
    monkeypatch.setenv("AUTORESEARCH_HOME", str(elsewhere.data.parent))
    result = cli("node", "import", str(stick))
    assert result.exit_code == 2
    assert "not a whole bundle" in result.stderr
    assert f"{len(ids(elsewhere))} new records" in result.stderr


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_exit_status_tells_of_records_that_were_refused(
    cli: Cli, elsewhere: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(elsewhere.data.parent))
    first, record = (
        opening(DEFAULT_NETWORK),
        sealed(key(1), run_body(1.0), network=DEFAULT_NETWORK, time_ms=DEFAULT_NETWORK.start_ms + 1),
    )
    with (tmp_path / "log.car").open("wb") as file:
        write_header(file, hashlib.sha256(first).digest())
        for codec, data in (
            (DAG_CBOR, first),
            (DAG_CBOR, record.raw),
            (RAW, bytes(64)),
            (DAG_CBOR, record.raw),
            (RAW, record.signature),
            (DAG_CBOR, closing(2, 0)),
        ):
            write_block(file, codec, data)

    result = cli("node", "import", str(tmp_path / "log.car"), *words)

    assert result.exit_code == 1
    assert (
        '"refused":1' in result.stdout.replace(" ", "")
        if words
        else "1 new record, 0 known, 1 refused" in result.stderr
    )
    assert ids(elsewhere) == {record.id}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "export", "--task", "x"), "There is no task x here"),
        (("run", "export", "--bundle", "x.car", "-o", "y"), "--output"),
        (("run", "export", "--bundle", "/dev/full/x.car"), "there is no folder /dev/full"),
        (("run", "export", "--bundle", "."), "folder"),
        (("run", "export", "--bundle", "x.car", "--task", "nothing"), "nothing"),
        (("node", "import", "junk.car"), "not a whole bundle"),
    ],
)
def test_what_does_not_go_is_a_sentence(
    cli: Cli, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "junk.car").write_bytes(b"junk")
    result = cli(*words)
    assert result.exit_code in (2, 4, 6)
    assert message in result.stderr
    assert "bug" not in result.stderr
    assert not list(tmp_path.glob(".*")), "a temporary file was left"
    assert not (tmp_path / "x.car").exists()


def test_a_bundle_takes_no_task_folder(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    cli("run", "export", "--bundle", str(tmp_path / "b.car"))
    assert cli("node", "import", str(tmp_path / "b.car"), "--task", str(filled.task.folder)).exit_code == 2
