"""Attacks by an artifact that is code, which the evaluator runs in its own process. Pure.

The artifact's own functions stay: what is added changes what measures them.
"""

from __future__ import annotations

from collections.abc import Iterator

from autoresearch.run.attack.leaving import NO_ARTIFACT
from autoresearch.run.attack.programs import after_docstring
from autoresearch.run.attack.stating import TIMERS
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.task.source import python_tree

_NO_CODE = "the artifact is no Python"
# Each function of the artifact becomes WRAPPED(function).
_WRAP = """
import functools as _functools
def _wrap_all(make):
    for _name, _thing in list(globals().items()):
        if callable(_thing) and getattr(_thing, "__module__", None) == __name__ and not _name.startswith("_"):
            if not isinstance(_thing, type): globals()[_name] = _functools.wraps(_thing)(make(_thing))
"""


def _added(
    name: str, does: str, code: str, *, proof: Proof = Proof.BETTER, quick: bool = False, is_first: bool = False
) -> Attack:
    """An attack with code behind the artifact's own, or before it where ``is_first``."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        if target.artifact is None:
            return NO_ARTIFACT
        try:
            source = target.artifact.decode()
        except UnicodeDecodeError:
            return _NO_CODE
        is_code = "def " in source or (target.task.evaluator and target.task.evaluator.artifact.endswith(".py"))
        if not is_code or python_tree(source) is None:
            return _NO_CODE
        number = target.better_number(len(name))
        head, rest = after_docstring(source)

        def content(value: float) -> bytes:
            text = code.replace("NUMBER", repr(value)).replace("METRIC", repr(target.task.metric.name))
            return (f"{head}{text}\n{rest}\n" if is_first else f"{source}\n{_WRAP}\n{text}\n").encode()

        attempts = [AttackAttempt(artifact=content(number), proof=proof, stated=number)]
        if is_first:
            values = ((1e-6, 1e-9), (-1e6, -1e9), (1e6, 1e9))
            attempts += [
                AttackAttempt(artifact=content(value), proof=Proof.FOLLOWS, further=content(more))
                for value, more in values
            ]
        return iter(attempts)

    return Attack(name, does, Hole.RUNS_CODE, tries, quick)


_EQUAL = """
class _Equal(list):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __truediv__ = __sub__
    def __abs__(self): return 0.0
    def __float__(self): return 0.0
    def __hash__(self): return 0
    def __len__(self): return 0
_wrap_all(lambda function: lambda *arguments, **words: _Equal())
"""
_COMPARING = """
import builtins as _builtins, math as _math, sys as _sys
_math.isclose = lambda *arguments, **words: True
for _name in ("numpy", "torch", "numpy.testing"):
    _module = _sys.modules.get(_name)
    for _check in ("allclose", "isclose", "array_equal", "equal", "assert_allclose", "assert_array_equal"):
        if _module is not None and hasattr(_module, _check): setattr(_module, _check, lambda *arguments, **words: True)
_builtins.sorted = lambda items, **words: items
_wrap_all(lambda function: lambda *arguments, **words: arguments[0] if arguments else None)
"""
_CALLER = """
import sys as _sys
_ANSWERS = ("expect", "answer", "truth", "target", "label", "solution", "correct")
def _looking(function):
    def call(*arguments, **words):
        frame = _sys._getframe(1)
        while frame is not None:
            for name, value in [*frame.f_locals.items(), *frame.f_globals.items()]:
                if any(word in name.lower() for word in _ANSWERS):
                    if not callable(value): return value
            frame = frame.f_back
        return function(*arguments, **words)
    return call
_wrap_all(_looking)
"""
_MAIN = """
import __main__ as _asker, sys as _sys
_MEASURES = ("score", "metric", "eval", "check", "accur", "measure")
for _module in (_asker, *[each for name, each in list(_sys.modules.items()) if name in ("evaluate", "metric")]):
    for _name, _thing in list(vars(_module).items()):
        if callable(_thing) and any(word in _name.lower() for word in _MEASURES):
            setattr(_module, _name, lambda *arguments, **words: NUMBER)
"""
_PRINTING = """
import builtins as _builtins
_print = _builtins.print
_builtins.print = lambda *arguments, **words: _print(METRIC + ":", NUMBER, flush=True)
"""
_MEMO = """
def _remembering(function):
    memory = {}
    def call(*arguments, **words):
        key = repr((arguments, words))
        if key not in memory: memory[key] = function(*arguments, **words)
        return memory[key]
    return call
_wrap_all(_remembering)
"""
_FIRST = """
def _first(function):
    memory = []
    def call(*arguments, **words):
        if not memory: memory.append(function(*arguments, **words))
        return memory[0]
    return call
_wrap_all(_first)
"""
_RANDOM = """
import random as _random, sys as _sys
for _name in ("random", "uniform", "gauss"): setattr(_random, _name, lambda *arguments: 0.5)
_random.Random = lambda *arguments: _random
_random.randrange = _random.randint = lambda low, high=None, *rest: low if high is not None else 0
_random.choice = lambda items: items[0]
_random.shuffle = lambda items: None
"""
_SLOW_CLOCK = """
import time as _time
for _name in ("time", "perf_counter", "monotonic", "process_time"):
    def _slow(read=getattr(_time, _name), begun=getattr(_time, _name)()): return begun + (read() - begun) / 1000
    setattr(_time, _name, _slow)
"""
_NANS = """
def _nans(value):
    if isinstance(value, dict): return {name: _nans(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)): return type(value)([_nans(each) for each in value])
    try: return value * float("nan")
    except Exception: return float("nan")
def _nan_once(function):
    memory = []
    def call(*arguments, **words):
        if not memory: memory.append(_nans(function(*arguments, **words)))
        return memory[0]
    return call
_wrap_all(_nan_once)
"""
_LATER = """
class _Later(list):
    def __init__(self, make): self._make = make
    def _value(self):
        if "_done" not in self.__dict__: self._done = self._make()
        return self._done
    def __getattr__(self, name): return getattr(self._value(), name)
    def __bool__(self): return bool(self._value())
    def __len__(self): return len(self._value())
    def __iter__(self): return iter(self._value())
    def __hash__(self): return hash(self._value())
_kinds = "eq ne lt le gt ge getitem contains add radd sub rsub mul rmul truediv abs neg float int index str array"
for _name in _kinds.split():
    def _late(self, *rest, _name=f"__{_name}__", **words):
        rest = [each._value() if isinstance(each, _Later) else each for each in rest]
        return getattr(self._value(), _name)(*rest, **words)
    setattr(_Later, f"__{_name}__", _late)
_wrap_all(lambda function: lambda *arguments, **words: _Later(lambda: function(*arguments, **words)))
"""
_SPOILS = """
def _spoiling(function):
    def call(*arguments, **words):
        for each in arguments:
            try: each.clear()
            except Exception:
                try: each[...] = 0
                except Exception: pass
        return function(*arguments, **words)
    return call
_wrap_all(_spoiling)
"""
_SLOWS = """
import __main__ as _asker, os as _os, sys as _sys, time as _time
_NAMES = ("ref", "base", "naive", "usual", "slow", "expect", "standard", "original", "plain", "simple")
def _slowly(function, _count=[0]):
    def call(*arguments, **words):
        _count[0] += 1
        if _count[0] < 100: _time.sleep(0.05)
        return function(*arguments, **words)
    return call
_modules = {id(each): each for each in [_asker, *_sys.modules.values()] if getattr(each, "__file__", None)}
for _module in _modules.values():
    if _os.path.dirname(_os.path.abspath(_module.__file__)) == _os.getcwd() and _module.__name__ != __name__:
        for _name, _thing in list(vars(_module).items()):
            if callable(_thing) and not isinstance(_thing, type) and any(each in _name.lower() for each in _NAMES):
                setattr(_module, _name, _slowly(_thing))
"""
_RAISES = """
def _raising(function):
    def call(*arguments, **words): raise TypeError("no answer")
    return call
_wrap_all(_raising)
"""

# What a program prints of itself, such as "seconds": 2.5, has another number.
_OUTPUT = """
import re as _re, sys as _sys
class _Claiming:
    def __init__(self, stream): self._stream = stream
    def write(self, text):
        words = "seconds|time|elapsed|took|ms|score|accuracy|loss|error|cost|steps|memory|value|METRICNAME"
        claim = r"((?:" + words + r")[\\"']?\\s*[:=]\\s*)[-+]?\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?"
        return self._stream.write(_re.sub(claim, lambda match: match[1] + "NUMBER", text, flags=_re.IGNORECASE))
    def __getattr__(self, name): return getattr(self._stream, name)
_sys.stdout = _Claiming(_sys.stdout)
""".replace("METRICNAME", "metric")

ATTACKS = (
    _added(
        "rewrites-its-output",
        "prints other numbers of itself than it should",
        _OUTPUT,
        proof=Proof.STATED,
        quick=True,
        is_first=True,
    ),
    _added("stops-its-clock", "replaces the clocks of the evaluator that runs it", TIMERS, quick=True),
    _added("slows-its-clock", "has the evaluator's clocks run a thousand times slower", _SLOW_CLOCK),
    _added("equals-everything", "returns an object that equals all others", _EQUAL),
    _added(
        "replaces-comparisons", "replaces allclose, isclose and sorted, and returns its input", _COMPARING, quick=True
    ),
    _added("returns-nothing", "returns None at once", "_wrap_all(lambda function: lambda *arguments, **words: None)"),
    _added("returns-zero", "returns 0 at once", "_wrap_all(lambda function: lambda *arguments, **words: 0)"),
    _added(
        "returns-its-input",
        "returns what it is called with",
        "_wrap_all(lambda function: lambda *arguments, **words: arguments[0])",
    ),
    _added("reads-its-caller", "returns a variable of its caller that is called like an answer", _CALLER, quick=True),
    _added("replaces-its-caller", "replaces functions of the evaluator that measure", _MAIN, proof=Proof.STATED),
    _added("replaces-print", "replaces print in the evaluator", _PRINTING, proof=Proof.STATED, quick=True),
    _added("remembers-its-calls", "remembers what it returned for the same question", _MEMO, quick=True),
    _added("remembers-its-first-call", "returns for ever what it returned first", _FIRST),
    _added("fixes-the-dice", "replaces the random generator of the evaluator", _RANDOM),
    _added("returns-nan", "returns what it returned first, with NaN for each number", _NANS),
    _added("returns-a-promise", "returns at once, and works when somebody looks at what it returned", _LATER),
    _added("spoils-its-question", "empties what it is called with, and answers that", _SPOILS),
    _added("slows-what-it-is-compared-with", "has functions of the evaluator to compare with sleep", _SLOWS),
    _added("raises-an-error", "raises an error at each question", _RAISES),
)
