"""Root keys at rest: encrypted in OpenSSH's format, changed whole, backed up, and not needed by the daemon."""

import shutil
import stat
import subprocess
from functools import partial

import pytest

from autoresearch.errors import Refused
from autoresearch.trust import identity
from autoresearch.trust.identity import LockedKey, adopt_root, load_identity, own_device, unlock
from autoresearch.trust.keys import KeyPair

WORDS = "correct horse battery staple"
# Guesses that cost little: what a passphrase costs at most is the key derivation's own matter.
create_identity = partial(identity.create_identity, rounds=2)
restore_identity = partial(identity.restore_identity, rounds=2)
protect_root = partial(identity.protect_root, rounds=2)
back_up_root = partial(identity.back_up_root, rounds=2)


def test_an_encrypted_root_key_is_named_without_the_passphrase_and_opens_with_it(tmp_path):
    made = create_identity(tmp_path, passphrase=WORDS)
    loaded = load_identity(tmp_path)
    assert loaded.root == LockedKey(made.root.public, is_local=True)
    assert loaded.device.public == made.device.public
    assert unlock(tmp_path, loaded, WORDS).root == made.root


@pytest.mark.parametrize("guess", ["", "correct horse battery", "x" * 2000, WORDS + "\n"])
def test_a_wrong_passphrase_is_refused(tmp_path, guess):
    create_identity(tmp_path, passphrase=WORDS)
    with pytest.raises(Refused):
        unlock(tmp_path, load_identity(tmp_path), guess)


def test_no_secret_lies_in_the_clear_beside_an_encrypted_key(tmp_path):
    made = create_identity(tmp_path)
    secret = bytes(made.root.key)
    protect_root(tmp_path, made.root, WORDS)
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert secret not in content
        assert secret.hex().encode() not in content
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_passphrase_is_changed_and_taken_away(tmp_path):
    made = create_identity(tmp_path, passphrase=WORDS)
    protect_root(tmp_path, made.root, "another")
    with pytest.raises(Refused):
        unlock(tmp_path, load_identity(tmp_path), WORDS)
    assert unlock(tmp_path, load_identity(tmp_path), "another").root == made.root
    protect_root(tmp_path, made.root, None)
    assert load_identity(tmp_path).root == made.root


@pytest.mark.parametrize("name", ["root.key", "root.pub", "device.key"])
def test_files_that_others_can_reach_are_refused(tmp_path, name):
    create_identity(tmp_path, passphrase=WORDS)
    (tmp_path / name).chmod(0o644)
    with pytest.raises(Refused):
        load_identity(tmp_path)


def test_a_root_key_that_is_not_the_one_it_is_said_to_be_is_refused(tmp_path):
    create_identity(tmp_path / "a", passphrase=WORDS)
    create_identity(tmp_path / "b", passphrase=WORDS)
    shutil.copy(tmp_path / "b" / "root.key", tmp_path / "a" / "root.key")
    with pytest.raises(Refused):
        unlock(tmp_path / "a", load_identity(tmp_path / "a"), WORDS)


def test_a_backup_restores_the_participant_with_a_new_device(tmp_path):
    made = create_identity(tmp_path / "old")
    back_up_root(tmp_path / "backup", made.root, WORDS)
    with pytest.raises(Refused):
        back_up_root(tmp_path / "backup", made.root, WORDS)
    restored = restore_identity(tmp_path / "new", (tmp_path / "backup").read_bytes(), WORDS)
    assert restored.root == made.root
    assert restored.device.public != made.device.public
    with pytest.raises(Refused):
        restore_identity(tmp_path / "new", (tmp_path / "backup").read_bytes(), WORDS)


def test_a_damaged_backup_is_refused_and_leaves_nothing(tmp_path):
    made = create_identity(tmp_path / "old")
    back_up_root(tmp_path / "backup", made.root, WORDS)
    content = (tmp_path / "backup").read_bytes()
    for broken in (b"", b"hello", content[:200], content.replace(b"A", b"B", 3)):
        with pytest.raises(Refused):
            restore_identity(tmp_path / "new", broken, WORDS)
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")
def test_openssh_reads_a_backup(tmp_path):
    made = create_identity(tmp_path / "keys", passphrase=WORDS)
    back_up_root(tmp_path / "backup", made.root, WORDS)
    read = subprocess.run(
        ["ssh-keygen", "-y", "-P", WORDS, "-f", str(tmp_path / "backup")], capture_output=True, text=True, check=True
    )
    assert read.stdout.split()[:2] == (tmp_path / "keys" / "root.pub").read_text().split()[:2]


def test_a_further_machine_has_no_root_key_and_says_where_it_is(tmp_path):
    root = KeyPair.generate()
    device = own_device(tmp_path)
    assert own_device(tmp_path) == device
    mine = adopt_root(tmp_path, root.public)
    assert mine.root == LockedKey(root.public, is_local=False)
    with pytest.raises(Refused, match="not on this machine"):
        unlock(tmp_path, mine, WORDS)


def test_a_machine_with_a_root_key_of_its_own_adopts_no_other(tmp_path):
    made = create_identity(tmp_path)
    with pytest.raises(Refused):
        adopt_root(tmp_path, KeyPair.generate().public)
    assert load_identity(tmp_path).root == made.root
