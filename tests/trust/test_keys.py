"""Keys: made once, kept private, never overwritten, refused when they are not."""

import os
import resource
import signal
import stat

import pytest

from autoresearch.errors import NotFound, Refused
from autoresearch.record.record import Record, admit, seal
from autoresearch.trust.identity import create_identity, delegation, load_identity
from autoresearch.trust.keys import KeyPair
from tests.record.making import NETWORK, NOW_MS


def test_an_identity_reads_back_as_it_was_made(tmp_path):
    made = create_identity(tmp_path / "keys")
    loaded = load_identity(tmp_path / "keys")
    assert (loaded.root.public, loaded.device.public) == (made.root.public, made.device.public)
    assert made.root.public != made.device.public


def test_key_files_are_for_their_owner_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        create_identity(tmp_path / "keys")
    finally:
        os.umask(before)
    for name in ("root.key", "device.key"):
        assert stat.S_IMODE((tmp_path / "keys" / name).stat().st_mode) == 0o600


def test_keys_are_never_overwritten(tmp_path):
    create_identity(tmp_path)
    before = (tmp_path / "root.key").read_bytes()
    with pytest.raises(Refused):
        create_identity(tmp_path)
    (tmp_path / "device.key").unlink()
    with pytest.raises(Refused):
        create_identity(tmp_path)
    assert (tmp_path / "root.key").read_bytes() == before


def test_a_full_disk_leaves_no_half_of_a_key(tmp_path):
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(Refused, match=r"root\.key can't be written"):
            create_identity(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    create_identity(tmp_path)
    load_identity(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_a_key_that_others_can_reach_is_refused_with_the_command_that_helps(tmp_path, mode):
    create_identity(tmp_path)
    path = tmp_path / "device.key"
    path.chmod(mode)
    with pytest.raises(Refused) as refused:
        load_identity(tmp_path)
    assert refused.value.hint == f"chmod 600 {path}"


def test_a_missing_key_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        load_identity(tmp_path)


def test_a_link_is_not_followed(tmp_path):
    create_identity(tmp_path / "real")
    (tmp_path / "keys").mkdir()
    for name in ("root.key", "device.key"):
        (tmp_path / "keys" / name).symlink_to(tmp_path / "real" / name)
    with pytest.raises(Refused):
        load_identity(tmp_path / "keys")


@pytest.mark.parametrize("content", ["", "autoresearch key 1 ed25519 plain\n", "other\n" + "0" * 64, "\x00" * 40])
def test_a_damaged_key_is_refused(tmp_path, content):
    create_identity(tmp_path)
    (tmp_path / "device.key").write_text(content)
    with pytest.raises(Refused):
        load_identity(tmp_path)


def test_the_root_key_delegates_the_device_in_a_record_that_is_admitted(tmp_path):
    made = create_identity(tmp_path)
    body = delegation(made, expires_ms=NOW_MS + 1)
    record = seal(made.root, NETWORK, "identity", body, seq=1, prev=b"", time_ms=NOW_MS)
    admitted = admit(record.raw, record.signature, NETWORK, now_ms=NOW_MS)
    assert isinstance(admitted, Record)
    assert admitted.body == body
    assert (body.root, body.device) == (made.root.public, made.device.public)


def test_a_key_shows_no_secret_when_printed():
    pair = KeyPair.generate()
    assert bytes(pair.key).hex() not in repr(pair)
