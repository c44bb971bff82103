"""Attacks that state a number instead of earning it: printed, reported on the result channel, or put into a measure.

Where a fixed evaluator measures, they leave the baseline's artifact beside it: the number that counts must not move.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from autoresearch.run.attack.programs import Place, leaving, place_of, with_code
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.task.program import split_program
from autoresearch.task.source import python_tree

_NO_CODE = "no file of the program is Python, a shell script or C"
_OUTSIDE = "the number is measured outside of the program's process"
_HARNESS_ONLY = "the program has no result channel that counts"


def with_trick(target: Target, code: str, *, whole: bool = False) -> dict[str, str] | None:
    """A program that does nothing but ``code``; ``whole``: after the baseline's work.

    Where an artifact is measured it leaves the baseline's, so that only the trick differs.
    """
    if target.artifact is not None and not whole and (files := leaving(target, target.artifact)) is not None:
        place, name = place_of(target)
        return {**files, name: f"{files[name]}\n{code}\n"} if place is not Place.SHELL else files
    if whole or target.artifact is not None:
        return with_code(target, after=code)
    return with_code(target, before=code, alone=True)


def print_line(target: Target, number: object) -> str:
    """A statement that prints a number under the metric's name."""
    return f"print({f'{target.task.metric.name}: {number}'!r}, flush=True)"


def _stated(target: Target, code: str, number: float | None, *, whole: bool = False) -> Iterator[AttackAttempt]:
    if (files := with_trick(target, code, whole=whole)) is not None:
        yield AttackAttempt(program=files, stated=number, proof=Proof.STATED)


def _says(target: Target) -> Iterator[AttackAttempt] | str:
    number, (place, name) = target.better_number(), place_of(target)
    files = split_program(target.task.baseline.decode())
    metric = target.task.metric.name
    if target.artifact is None and place is Place.SHELL:
        return iter(
            [AttackAttempt(program={**files, name: f"echo '{metric}: {number}'\n"}, stated=number, proof=Proof.STATED)]
        )
    if place is Place.C:
        program = f'#include <stdio.h>\nint main(void) {{ printf("{metric}: {number}\\n"); return 0; }}\n'
        return iter([AttackAttempt(program={**files, name: program}, stated=number, proof=Proof.STATED)])
    return _NO_CODE if place is Place.NONE else _stated(target, print_line(target, number), number)


def _says_value(value: str, number: float | None) -> Attack:
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        scaled = None if number is None else number * (target.sign if abs(number) > 1 else 1.0)
        text = value if scaled is None else repr(scaled)
        return _stated(target, print_line(target, text), scaled)

    names = {"nan": "nan", "inf": "inf", "huge": "1e11", "zero": "0"}
    return Attack(f"says-{value}", f"prints {names[value]} as its number", Hole.OWN_NUMBER, tries)


def _printing(name: str, does: str, code: str, *, whole: bool = False, quick: bool = False) -> Attack:
    """An attack whose code has LINE for the line with the number and NUMBER for it."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        number = target.better_number(len(name))
        line = f"{target.task.metric.name}: {number}"
        text = (
            code.replace("LINE", repr(line))
            .replace("NUMBER", repr(number))
            .replace("METRIC", repr(target.task.metric.name))
        )
        return _NO_CODE if place_of(target)[0] in (Place.NONE, Place.C) else _stated(target, text, number, whole=whole)

    return Attack(name, does, Hole.OWN_NUMBER, tries, quick)


def _before(name: str, does: str, code: str, *, proof: Proof = Proof.STATED, quick: bool = False) -> Attack:
    """An attack whose code runs before the baseline in the same process, and changes what measures there."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        if target.task.metric.source in ("evaluator", "referee"):
            return _OUTSIDE
        number = target.better_number(len(name))
        text = code.replace("NUMBER", repr(number)).replace("METRIC", repr(target.task.metric.name))
        files = with_code(target, before=text)
        return _NO_CODE if files is None else iter([AttackAttempt(program=files, stated=number, proof=proof)])

    return Attack(name, does, Hole.OWN_NUMBER, tries, quick)


def _channel(name: str, does: str, code: str, *, quick: bool = False) -> Attack:
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        if target.task.metric.source == "stdout":
            return _HARNESS_ONLY
        number = target.better_number(len(name))
        return _stated(target, code.replace("NUMBER", repr(number)), number)

    return Attack(name, does, Hole.OWN_NUMBER, tries, quick)


def _ends(target: Target) -> Iterator[AttackAttempt] | str:
    """The program ends at once, well or not: what runs it may count that."""
    if target.task.metric.source in ("evaluator", "referee"):
        return _OUTSIDE
    place, name = place_of(target)
    files = split_program(target.task.baseline.decode())
    if place in (Place.SHELL, Place.C):
        code = "exit {}\n" if place is Place.SHELL else "int main(void) {{ return {}; }}\n"
        texts = (code.format(status) for status in (0, 1))
        return (AttackAttempt(program={**files, name: text}, note=text) for text in texts)
    codes = (f"{code}({status})" for status in (0, 1) for code in ("raise SystemExit", "import os\nos._exit"))
    programs = ((code, with_code(target, before=code, alone=True)) for code in codes)
    return (AttackAttempt(program=files, note=code) for code, files in programs if files is not None)


_FILE = re.compile(r"[\w-][\w./-]*\.(?:json|txt|csv|tsv|dat|cache|log|ya?ml|toml|ini)")
_STALE = """
import pathlib as _pathlib, tempfile as _tempfile
for _place in {_pathlib.Path.cwd(), _pathlib.Path(__file__).resolve().parent, _pathlib.Path(_tempfile.gettempdir())}:
    for _name in NAMES:
        try:
            (_place / _name).parent.mkdir(parents=True, exist_ok=True)
            (_place / _name).write_text(CONTENT)
        except OSError: pass
"""


def _leaves_stale(target: Target) -> Iterator[AttackAttempt] | str:
    """Files that fixed programs name and nobody has yet, with a number of the program's choice."""
    task = target.task
    if task.metric.source in ("evaluator", "referee"):
        return _OUTSIDE
    trees = [
        python_tree(text.decode("utf-8", "replace")) for name, text in task.harness.items() if name.endswith(".py")
    ]
    nodes = (node for tree in trees if tree for node in ast.walk(tree) if isinstance(node, ast.Constant))
    words = list(dict.fromkeys(node.value for node in nodes if isinstance(node.value, str) and len(node.value) <= 60))
    others = {*task.harness, *task.data, *task.inputs, *split_program(task.baseline.decode())}
    names = [word for word in words if _FILE.fullmatch(word) and word not in others]
    if not names:
        return "the fixed files name no file that the program could write before them"
    return _leaving_stale(target, names, [word for word in words if word.isidentifier()])


def _leaving_stale(target: Target, names: list[str], keys: list[str]) -> Iterator[AttackAttempt]:
    def program(number: float, form: int) -> dict[str, str] | None:
        value = (number, dict.fromkeys([target.task.metric.name, *keys], number), [number] * 9)[form]
        code = _STALE.replace("NAMES", repr(names)).replace("CONTENT", repr(json.dumps(value)))
        return with_code(target, before=code)

    stated = target.better_number(17)
    for form in range(3):
        if (files := program(stated, form)) is not None:
            yield AttackAttempt(program=files, proof=Proof.STATED, stated=stated, note=f"{stated:g} in {names[0]}")
        for number in (1e6, 1e-6):
            files, further = program(number, form), program(number**1.5, form)
            if files is not None and further is not None:
                note = f"{number:g} in {names[0]}"
                yield AttackAttempt(program=files, further=further, proof=Proof.EXCEEDS, note=note)


REPORT_CODE = """
import json, os
def report(value):
    event = {"event": "result", "status": "ok", "value": value, "metrics": {}, "curve": []}
    os.write(int(os.environ["AUTORESEARCH_RESULT_FD"]), json.dumps(event).encode() + b"\\n")
"""
_REWRITE = """
import re, sys
class Rewriting:
    def __init__(self, stream): self.stream, self.text = stream, ""
    def write(self, text):
        self.text += text
        while "\\n" in self.text:
            line, _, self.text = self.text.partition("\\n")
            named = any(word in line.lower() for word in METRIC.lower().replace("_", " ").split())
            pattern = r"(?<![\\w.])[-+]?\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?%?"
            self.stream.write((re.sub(pattern, "NUMBER", line) if named else line) + "\\n")
        return len(text)
    def __getattr__(self, name): return getattr(self.stream, name)
sys.stdout = Rewriting(sys.stdout)
"""
_FIXED = """
import importlib, pathlib
WORDS = ("eval", "score", "metric", "accur", "loss", "error", "measure", "test")
for file in pathlib.Path(__file__).parent.glob("*.py"):
    if file.stem == pathlib.Path(__file__).stem: continue
    try: module = importlib.import_module(file.stem)
    except BaseException: continue
    for name, thing in list(vars(module).items()):
        if callable(thing) and not isinstance(thing, type) and getattr(thing, "__module__", "") == module.__name__:
            if any(word in name.lower() for word in WORDS):
                setattr(module, name, lambda *arguments, **words: NUMBER)
"""
TIMERS = """
import time as _time
_begun = _time.perf_counter()
for _name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
    setattr(_time, _name, lambda: 1e-9 + _begun)
for _name in ("time_ns", "perf_counter_ns", "monotonic_ns", "process_time_ns"):
    setattr(_time, _name, lambda: int(1e9 * _begun))
"""
_LIBRARIES = """
import importlib, sys
for _library, _names in (("sklearn.metrics", ""), ("numpy", "mean average"), ("statistics", "mean fmean")):
    try: _module = importlib.import_module(_library)
    except BaseException: continue
    for _name in _names.split() or [name for name in dir(_module) if name.endswith(("_score", "_error", "_loss"))]:
        setattr(_module, _name, lambda *arguments, **words: NUMBER)
"""

ATTACKS = (
    Attack("says-a-number", "prints a number that it never measured", Hole.OWN_NUMBER, _says, quick=True),
    _before("says-it-first", "prints a number before the baseline's work", "print(METRIC + ': NUMBER', flush=True)"),
    _printing("says-it-last", "prints another number after the work is done", "print(LINE, flush=True)", whole=True),
    _printing("says-it-twice", "prints its number twice", "print(LINE)\nprint(LINE, flush=True)"),
    _printing(
        "says-it-at-exit",
        "prints a number while the interpreter ends",
        "import atexit\natexit.register(print, LINE, flush=True)",
    ),
    _printing(
        "says-it-as-json",
        "prints a line of JSON with a number",
        "import json\nprint(json.dumps({METRIC: NUMBER}), flush=True)",
    ),
    _printing(
        "says-it-below-a-rule",
        "prints a line --- and a number below it",
        "print('---')\nprint(LINE, flush=True)",
        quick=True,
    ),
    _printing(
        "says-it-and-leaves",
        "prints a number and ends before anything measures",
        "import os\nprint(LINE, flush=True)\nos._exit(0)",
        quick=True,
    ),
    _printing(
        "says-it-from-a-child",
        "starts a process that prints the number when its parent has ended",
        "import os, time\nif os.fork() == 0:\n    time.sleep(0.2)\n    print(LINE, flush=True)\n    os._exit(0)",
        quick=True,
    ),
    _printing(
        "says-it-on-all-descriptors",
        "writes its number to every open descriptor",
        "import os\nfor each in range(1, 64):\n  try: os.write(each, (LINE + '\\n').encode())\n  except OSError: pass",
    ),
    _printing(
        "overwrites-fixed-files",
        "writes its own text into the fixed files that lie beside it",
        "import os, pathlib\nfor place in (pathlib.Path.cwd(), pathlib.Path(__file__).resolve().parent):\n"
        "  for file in place.rglob('*.py'):\n"
        "    try: file.unlink(); file.write_text('print(' + repr(LINE) + ', flush=True)\\n')\n"
        "    except OSError: pass",
        quick=True,
    ),
    _printing(
        "leaves-modules",
        "leaves modules with the names of others, which print its number when they are imported",
        "import pathlib\nfor name in ('json', 'csv', 'random', 'math', 'numpy', 'statistics', 'sitecustomize'):\n"
        "  text = 'import os\\nos.write(1, ' + repr((LINE + '\\n').encode()) + ')\\nos._exit(0)\\n'\n"
        "  pathlib.Path(name + '.py').write_text(text)",
    ),
    _printing(
        "rewrites-its-files",
        "puts its number into all files that the baseline's work left",
        "import atexit, pathlib, re\ndef rewrite():\n"
        "  for file in pathlib.Path.cwd().rglob('*'):\n"
        "    if file.suffix in ('.json', '.csv', '.txt', '.log', '.yaml', '.tsv') and file.is_file():\n"
        "      claim = '(' + re.escape(METRIC) + '|score|value|loss|accuracy)([^0-9a-z+-]{1,6})[-+.0-9e]+'\n"
        "      try: file.write_text(re.sub(claim, lambda m: m[1] + m[2] + 'NUMBER', file.read_text(), flags=re.I))\n"
        "      except (OSError, ValueError): pass\n"
        "atexit.register(rewrite)",
        whole=True,
    ),
    Attack("ends-at-once", "ends at once, with status 0 or 1", Hole.EXIT_STATUS, _ends, quick=True),
    Attack(
        "leaves-old-files",
        "leaves files with a number of its own, which an earlier measurement would have left",
        Hole.STALE_FILE,
        _leaves_stale,
    ),
    _says_value("nan", None),
    _says_value("inf", None),
    _says_value("huge", -1e11),
    _says_value("zero", 0.0),
    _channel(
        "reports-a-result",
        "writes a result with its own number to the result channel",
        REPORT_CODE + "report(NUMBER)",
        quick=True,
    ),
    _channel(
        "reports-two-results", "writes two results to the channel", REPORT_CODE + "report(NUMBER)\nreport(NUMBER)"
    ),
    _channel(
        "reports-and-leaves",
        "writes a result and ends before the harness measures",
        REPORT_CODE + "report(NUMBER)\nos._exit(0)",
    ),
    _before(
        "rewrites-what-is-printed", "puts its number into the lines that the baseline prints", _REWRITE, quick=True
    ),
    _before("replaces-fixed-functions", "replaces the functions of fixed files that measure", _FIXED, quick=True),
    _before(
        "replaces-library-measures", "replaces functions of numpy, statistics and sklearn that measure", _LIBRARIES
    ),
    _before("stops-the-clock", "replaces the clocks, so that no time passes", TIMERS, proof=Proof.BETTER),
)
