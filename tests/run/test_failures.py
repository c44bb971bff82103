"""What helps a program that met a wall, by the words that it printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.run.failures import (
    COMPILED_HINT,
    NETWORK_HINT,
    SEMAPHORES_HINT,
    SOCKETS_HINT,
    SYSTEM_HINT,
    TEMPORARY_HINT,
    WRITE_HINT,
    way_out,
)
from autoresearch.run.sandbox.job import Level

SCRATCH = "/tmp/autoresearch-scratch-ab12_x/scratch"
PYTHON = "/home/me/.pyenv/versions/3.11.7/lib/python3.11"
DENIED = "PermissionError: [Errno 13] Permission denied"
STARTED = f'Traceback:\n  File "{PYTHON}/subprocess.py", line 1955, in _execute_child\n    raise child_exception\n'
LOCK = f'  File "{PYTHON}/multiprocessing/synchronize.py", line 57, in __init__\n    sl = self._semlock = SemLock(\n'
SHARER = f'  File "{PYTHON}/multiprocessing/resource_sharer.py", line 126, in _start\n'
ERROR = "PermissionError: [Errno 1] Operation not permitted"

AT_LANDLOCK = {
    f"{STARTED}{DENIED}: './solver'": COMPILED_HINT,
    f"{STARTED}{DENIED}: '{SCRATCH}/build/solver'": COMPILED_HINT,
    "sh: 1: ./solver: Permission denied": COMPILED_HINT,
    "/bin/sh: 1: ./a.out: Permission denied": COMPILED_HINT,
    "run.sh: line 3: ./made: Permission denied": COMPILED_HINT,
    "run.sh: 3: ./made: Permission denied": COMPILED_HINT,
    "make: ./run: Permission denied\nmake: *** [Makefile:2: all] Error 127": COMPILED_HINT,
    "timeout: failed to run command ‘./bench’: Permission denied": COMPILED_HINT,
    f"{LOCK}{DENIED}": SEMAPHORES_HINT,
    f"{SHARER}{ERROR}": SOCKETS_HINT,
    f'  File "{PYTHON}/multiprocessing/managers.py", line 162\n{ERROR}\nEOFError': SOCKETS_HINT,
    "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>": NETWORK_HINT,
    "curl: (6) Could not resolve host: example.org": NETWORK_HINT,
    f"{DENIED}: '/tmp/x.txt'": TEMPORARY_HINT,
    f"{DENIED}: '/results/out.txt'": WRITE_HINT.format(path="/results/out.txt"),
    f"{DENIED}: 'data/cache.npy'": WRITE_HINT.format(path="data/cache.npy"),
    f"{DENIED}: '/sys/kernel/x'": SYSTEM_HINT.format(path="/sys/kernel/x"),
    "cat: /etc/shadow: Permission denied": SYSTEM_HINT.format(path="/etc/shadow"),
    # No wall said anything.
    "NameError: name 'get_ipython' is not defined": "",
    "ValueError: bad value": "",
    "FileNotFoundError: [Errno 2] No such file or directory: './solver'": "",
    "Permission denied": "",
    "loss: 0.5": "",
    "": "",
}


@pytest.mark.parametrize(("text", "hint"), AT_LANDLOCK.items())
def test_each_wall_has_its_own_way_out(text: str, hint: str) -> None:
    assert way_out(text, Level.LANDLOCK) == hint
    assert way_out(f"epoch 1 loss 0.5\n{text}\n", Level.LANDLOCK) == hint


@pytest.mark.parametrize(("text", "hint"), AT_LANDLOCK.items())
def test_nothing_of_landlock_is_said_where_it_is_not_what_walls_in(text: str, hint: str) -> None:
    of_landlock = (COMPILED_HINT, SEMAPHORES_HINT, SOCKETS_HINT)
    expected = "" if hint in of_landlock or "/etc/" in hint or "/sys/" in hint else hint
    assert way_out(text, Level.BUBBLEWRAP) == expected


def test_a_folder_that_is_shown_to_read_is_no_place_to_write() -> None:
    text = "OSError: [Errno 30] Read-only file system: '/data/out.txt'"
    assert way_out(text, Level.BUBBLEWRAP) == WRITE_HINT.format(path="/data/out.txt")


@given(st.text(st.sampled_from("Permission denied: './x\n/tmp“\x1b[")), st.sampled_from(Level))
def test_any_text_has_an_answer(text: str, level: Level) -> None:
    assert isinstance(way_out(text, level), str)


def test_a_long_text_is_read_in_no_time() -> None:
    for piece in ("'", "/", "a/", "Permission denied: ", "'/x", ": "):
        way_out(piece * 5_000_000, Level.LANDLOCK)
