"""What the daemon's threads rely on in other libraries."""

import subprocess
import sys

import pytest

# Each type is new to four threads at a time; they are switched as often as possible.
PROGRAM = """
import sys, threading, types
import msgspec

sys.setswitchinterval(1e-6)
SOURCE = '''
import msgspec
class Leaf(msgspec.Struct, kw_only=True):
    number: "int | None" = None
    text: "str | None" = None
    others: "list[int] | dict[str, float] | None" = None
class Tree(msgspec.Struct, kw_only=True):
    leaf: "Leaf"
    leaves: "list[Leaf]"
'''
for number in range(400):
    module = types.ModuleType(f"trees{number}")
    sys.modules[module.__name__] = module
    exec(SOURCE, vars(module))
    ready = threading.Barrier(4)

    def decode():
        ready.wait()
        msgspec.json.decode(b'{"leaf": {"number": 1}, "leaves": [{"text": "x", "others": [2]}]}', type=module.Tree)

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.mark.slow
def test_threads_may_decode_a_type_for_the_first_time_together() -> None:
    """msgspec 0.22.0 read what another thread had not written yet, and a daemon died without a word."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
