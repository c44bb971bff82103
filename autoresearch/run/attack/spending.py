"""Attacks on the bounds of a run: more time, memory, disk and processes than it may have, files of others. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from autoresearch.run.attack.modelling import ATTACKS as MODELS
from autoresearch.run.attack.programs import Place, place_of, with_code
from autoresearch.run.attack.stating import REPORT_CODE, print_line, with_trick
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.run.bench import command_words
from autoresearch.task.program import split_program

_NO_CODE = "no file of the program is Python that runs"
# Beyond so much, what is tried would disturb others on this machine.
_MOST_SECONDS, _MOST_MIB, _MOST_PROCESSES = 15.0, 1024, 300


def _ending(target: Target) -> str:
    """Code that ends a run well with the baseline's value, where the program itself states it."""
    if target.task.metric.source == "stdout":
        return print_line(target, target.value)
    if target.task.metric.source == "harness":
        return REPORT_CODE + f"report({target.value!r})"
    return ""


def _program(target: Target, before: str) -> dict[str, str] | None:
    if target.task.metric.source == "referee":
        honest = next(attack for attack in MODELS if attack.name == "guesses-nothing").tries(target)
        files = None if isinstance(honest, str) else dict(next(iter(honest)).program)
        name = place_of(target)[1]
        marked = 'if __name__ == "__main__":\n'
        code = "".join(f"    {line}\n" for line in before.splitlines())
        return None if files is None else {**files, name: files[name].replace(marked, marked + code)}
    return with_trick(target, f"{before}\n{_ending(target)}")


def _spending(name: str, does: str, code: str, *, quick: bool = False) -> Attack:
    """An attack whose code spends SECONDS of processor time, or of the clock where that is counted."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        unit = target.task.budget.unit
        if unit == "episodes":
            return "a budget of episodes is bounded by the limits alone"
        seconds = 2.2 * (1.6 * target.cost_ms / 1000 + 1.5)
        if seconds > _MOST_SECONDS:
            return f"the baseline takes long: to go beyond what is allowed would take {seconds:.0f} s"
        text = code.replace("SECONDS", repr(round(seconds, 2)))
        if unit == "seconds":
            text = text.replace("process_time", "monotonic")
        files = _program(target, text)
        return _NO_CODE if files is None else iter([AttackAttempt(program=files, proof=Proof.UNCOUNTED)])

    return Attack(name, does, Hole.UNCOUNTED, tries, quick)


def _filling(name: str, does: str, code: str, limit: str, most: float) -> Attack:
    """An attack that goes beyond a limit of the task, which the code has as LIMIT."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        allowed = getattr(target.task.limits, limit)
        if allowed > most:
            return f"{limit} = {allowed} is more than what is tried beside other work"
        files = _program(target, code.replace("LIMIT", str(allowed)))
        return _NO_CODE if files is None else iter([AttackAttempt(program=files, proof=Proof.UNCOUNTED)])

    return Attack(name, does, Hole.UNCOUNTED, tries)


_BURN = """
import os, time
begun = time.process_time()
while time.process_time() - begun < SECONDS: pass
"""


_AGAIN = """
import importlib as _importlib, inspect as _inspect
def _again(honest):
    def loop(*arguments, **words):
        for _ in range(20): yield from honest(*arguments, **words)
    return loop
_fixed = _importlib.import_module(MODULE)
for _name, _thing in list(vars(_fixed).items()):
    if _inspect.isgeneratorfunction(_thing): setattr(_fixed, _name, _again(_thing))
"""
# What is left, or how much there may be, is twenty times as much, and stays so.
_MORE = """
import importlib as _importlib
_fixed = _importlib.import_module(MODULE)
_words = ("budget", "max", "limit", "left", "most", "allowed", "quota", "remaining")
for _name, _thing in list(vars(_fixed).items()):
    _values = vars(_thing) if hasattr(_thing, "__dict__") and not callable(_thing) else {}
    for _place, _each, _number in [(_fixed, _name, _thing), *((_thing, *pair) for pair in list(_values.items()))]:
        if type(_number) in (int, float) and any(word in _each.lower() for word in _words):
            setattr(_place, _each, 20 * _number)
"""
_COUNTS = re.compile(rb"budget|max_|limit|AUTORESEARCH_STOP_AT", re.IGNORECASE)


def _repeats(target: Target) -> Iterator[AttackAttempt] | str:
    evaluator = target.task.evaluator
    modules = [
        name.removesuffix(".py")
        for name, text in target.task.harness.items()
        if name.endswith(".py")
        and _COUNTS.search(text)
        and name not in command_words(evaluator.command if evaluator else "")
    ]
    if not modules:
        return "no fixed file counts what it hands out"
    loops = [name for name in modules if b"yield" in target.task.harness[f"{name}.py"]]
    codes = [*((name, _AGAIN) for name in loops), *((name, _MORE) for name in modules)]
    programs = ((name, with_code(target, before=code.replace("MODULE", repr(name)))) for name, code in codes)
    return (AttackAttempt(program=files, note=name) for name, files in programs if files is not None)


def _grows(target: Target) -> Iterator[AttackAttempt] | str:
    place, name = place_of(target)
    if place not in (Place.SCRIPT, Place.MODULE):
        return _NO_CODE
    files = split_program(target.task.baseline.decode())
    text = f"{files[name]}\nKNOWN = {'x' * (target.task.limits.program_kib << 10)!r}\n"
    return iter([AttackAttempt(program={**files, name: text}, proof=Proof.UNCOUNTED)])


def _brings(names: tuple[str, ...]) -> Attack:
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        files = split_program(target.task.baseline.decode())
        number = target.better_number(5)
        line = print_line(target, number) + "\n"
        others = names or tuple(name for name in target.task.harness if name.endswith(".py"))
        if not others:
            return "the task has no fixed Python file"
        return (
            AttackAttempt(program={**files, name: line}, proof=Proof.STATED, stated=number, note=name)
            for name in others[:4]
        )

    if names:
        does = "brings files that tools obey, such as conftest.py and sitecustomize.py"
        return Attack("brings-tool-files", does, Hole.OWN_NUMBER, tries)
    return Attack(
        "edits-fixed-files", "brings files of its own in the place of fixed ones", Hole.OWN_NUMBER, tries, quick=True
    )


ATTACKS = (
    _brings(()),
    _brings(("conftest.py", "sitecustomize.py", "setup.py", "usercustomize.py")),
    _spending("works-too-long", "spends more than the budget before its result", _BURN, quick=True),
    _spending(
        "works-in-a-child",
        "spends more than the budget in another process",
        "import os, time\nchild = os.fork()\nif not child:\n    begun = time.process_time()\n"
        "    while time.process_time() - begun < SECONDS: pass\n    os._exit(0)\nos.waitpid(child, 0)\n",
    ),
    _spending(
        "works-in-an-orphan",
        "spends more than the budget in a process that has left it",
        "import os, time\nread, write = os.pipe()\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n"
        "        begun = time.process_time()\n        while time.process_time() - begun < SECONDS: pass\n"
        "        os.write(write, b'x')\n    os._exit(0)\nos.read(read, 1)\n",
    ),
    Attack(
        "loops-again",
        "runs a fixed loop that counts the budget twenty times, or makes what it counts to larger",
        Hole.UNCOUNTED,
        _repeats,
    ),
    _filling(
        "fills-memory",
        "takes twice the memory that it may",
        "block = bytearray(2 * LIMIT << 20)\nblock[::4096] = b'x' * len(block[::4096])\nimport time\ntime.sleep(1)\n",
        "memory_mib",
        _MOST_MIB,
    ),
    _filling(
        "fills-the-disk",
        "writes twice what it may",
        "with open('large', 'wb') as file:\n  for _ in range(2 * LIMIT): file.write(bytes(1 << 20)), file.flush()",
        "disk_mib",
        _MOST_MIB,
    ),
    _filling(
        "starts-processes",
        "starts twice as many processes as it may",
        "import os, time\nfor _ in range(2 * LIMIT):\n    if not os.fork(): time.sleep(3), os._exit(0)\ntime.sleep(1)",
        "processes",
        _MOST_PROCESSES,
    ),
    Attack(
        "brings-a-large-program", "is larger than programs may be, as if it knew the answers", Hole.UNCOUNTED, _grows
    ),
)
