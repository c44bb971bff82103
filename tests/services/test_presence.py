"""Which services run here: a name is held by one, a dead one is gone, a damaged file harms nobody."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.services import Announcement, Service, client_keys, find_service, reserved, running_services


def service(name: str, address: str = "127.0.0.1") -> Service:
    return Service(
        name=name, kind="env", component="environment.x", project="/", address=address, port=5, pid=1, since_ms=0
    )


def test_a_service_is_listed_while_it_runs(tmp_path: Path) -> None:
    assert running_services(tmp_path / "none") == []
    with reserved(tmp_path, "hall") as file:
        assert running_services(tmp_path) == []  # it has not begun yet
        announcement = Announcement(file, service("hall"))
        assert running_services(tmp_path) == [service("hall")]
        announcement.answered(7)
        assert find_service("hall", tmp_path).requests == 7
        assert file.stat().st_mode & 0o077 == 0
        with pytest.raises(Refused, match="a service hall runs already"), reserved(tmp_path, "hall"):
            pass
    assert running_services(tmp_path) == []
    with pytest.raises(NotFound, match="no service hall"):
        find_service("hall", tmp_path)
    with reserved(tmp_path, "hall"):
        pass


def test_one_that_is_about_to_begin_is_waited_for(tmp_path: Path) -> None:
    held, seen = threading.Event(), threading.Event()

    def begin() -> None:
        with reserved(tmp_path, "late") as file:
            held.set()
            Announcement(file, service("late", "0.0.0.0"))
            seen.wait(20)

    thread = threading.Thread(target=begin)
    thread.start()
    assert held.wait(20)
    assert find_service("late", tmp_path, wait_s=20).place == ("127.0.0.1", 5)
    seen.set()
    thread.join()


def test_what_a_killed_one_left_is_taken_away(tmp_path: Path) -> None:
    script = (
        "import sys, os, pathlib; from autoresearch.services import Announcement, Service, reserved\n"
        "with reserved(pathlib.Path(sys.argv[1]), 'dead') as file:\n"
        "    Announcement(file, Service(name='dead', kind='env', component='x', project='', address='', port=1, "
        "pid=1, since_ms=0))\n"
        "    print('up', flush=True); os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == "up\n"
    assert (tmp_path / "dead.json").exists()
    assert running_services(tmp_path) == []
    assert not (tmp_path / "dead.json").exists()


def test_a_damaged_file_is_left_out(tmp_path: Path) -> None:
    with reserved(tmp_path, "bad") as file, reserved(tmp_path, "good") as good:
        Announcement(good, service("good"))
        for data in (b"", b"[]", b"\xff", b'{"name": 1}'):
            file.write_bytes(data)
            assert [each.name for each in running_services(tmp_path)] == ["good"]


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", "a" * 65, "a b", "a\n"])
def test_what_can_be_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="can't be a service's name"), reserved(tmp_path, name):
        pass


def test_keys_for_a_service(tmp_path: Path) -> None:
    assert client_keys("", tmp_path / "key") is None
    keys = client_keys("ab" * 32, tmp_path / "key")
    assert keys is not None
    assert keys.server == b"\xab" * 32
    with pytest.raises(UsageError):
        client_keys("ab", tmp_path / "key")
