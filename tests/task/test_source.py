"""Two sources are the same program exactly when a run can't tell them apart, in every version of Python."""

from __future__ import annotations

import ast
import functools
import gc
import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.task.program import source_digest
from autoresearch.task.source import canonical_source, parse_python

ROOT = Path(__file__).parents[2]
TRAIN = (ROOT / "experiments" / "train.py").read_text()

SPELLINGS = [
    ("x = 1  # int [1, 6]\n", "# a comment\nx=1\n\n"),
    ("x = 0.001", "x = 1e-3"),
    ("x = 1000", "x = 1_000"),
    ("x = 255", "x = 0xff"),
    ("x = 'a'", 'x = "a"'),
    ("x = 'ab'", 'x = "a" "b"'),
    ("x = f'a{b}c'", 'x = "a" f"{b}" "c"'),
    ("x = f'{b:}'", "x = f'{b}'"),
    ("x = 'é'", "x = '\\xe9'"),
    ("def f():\n    'says what'\n    return 1", "def f():\n\treturn 1"),
    ("def f():\n    'says what'", "def f(): pass"),
    ("class A:\n    '''text'''\n    x = 1", "class A:\n  x = (1)"),
    ("'''module'''\nx = 1", "x = 1;"),
    ("if a:\n  if b:\n    c", "if a:\n        if b: c"),
    ("x = 1\r\ny = 2\r\n", "x = 1\ny = 2\n"),
    ("async def f():\n    'doc'\n    await g()", "async def f(): await g()"),
]

DIFFERENT = [
    ("x = 1", "x = 2"),
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 'a'", "x = b'a'"),
    ("x = None", "x = 'None'"),
    ("x = ''", "x = None"),
    ("return_ = f''", "return_ = ''"),
    ("def f(): return f''", "def f(): return"),
    ("x = 1j", "x = 1"),
    ("x = a - b - c", "x = a - (b - c)"),
    ("f(a, b)", "f((a, b))"),
    ("f(*a)", "f(a)"),
    ("{**a}", "{None: a}"),
    ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
    ("x = ['a', 'b']", "x = ['ab']"),
    ("x = [[], []]", "x = [[[]]]"),
    ("x = 'a)(Name id=str:1:b'", "x = 'a'"),
    ("x = 1\n'not a docstring'", "x = 1"),
    ("f(a=b)", "f(a, b)"),
    ("x[1:]", "x[:1]"),
    ("x = f'{a!r}'", "x = f'{a!s}'"),
    ("x = f'{a:>{b}}'", "x = f'{a:>b}'"),
    ("import a", "import a as b"),
    ("from . import a", "from .. import a"),
    ("for x in y: a\nelse: b", "for x in y: a\nb"),
]


@pytest.mark.parametrize(("first", "second"), SPELLINGS)
def test_spelling_does_not_matter(first: str, second: str) -> None:
    assert canonical_source(first) == canonical_source(second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_what_a_run_could_notice_matters(first: str, second: str) -> None:
    assert canonical_source(first) != canonical_source(second)


constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=0),
    st.floats(min_value=0, allow_nan=False, allow_infinity=False),
    st.text(),
    st.binary(),
)


@given(constants, constants)
@example(0, False)
@example(1, 1.0)
@example("", b"")
def test_different_constants_are_different_programs(first: object, second: object) -> None:
    same = type(first) is type(second) and first == second

    assert (canonical_source(f"x = {first!r}") == canonical_source(f"x = {second!r}")) == same


comments = st.text(st.characters(exclude_characters="\r\n\f\x00", exclude_categories=["Cs", "Cc"]), max_size=30)


@given(st.lists(comments, min_size=1, max_size=4), st.integers(min_value=1, max_value=4))
def test_comments_and_blank_lines_in_the_shipped_source_do_not_matter(texts: list[str], blank: int) -> None:
    lines = ["", "", *TRAIN.split("\n")]  # the first two lines are where an encoding would be declared
    for i, comment in enumerate(texts):
        at = 2 + len(lines) * i // (len(texts) + 1)
        if not _inside_a_text(lines[:at]):
            lines[at:at] = [f"# {comment}", *[""] * blank]

    assert source_digest("\n".join(lines)) == source_digest(TRAIN)


def _inside_a_text(lines: list[str]) -> bool:
    return "\n".join(lines).count('"""') % 2 == 1


def _constants_of_train() -> list[ast.Constant]:
    """The numbers and texts in the code of the shipped source; of docstrings none."""
    tree = ast.parse(TRAIN)
    statements = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    return [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in statements]


@given(st.sampled_from(_constants_of_train()), st.integers(min_value=7, max_value=10**9))
def test_any_changed_constant_in_the_shipped_source_matters(constant: ast.Constant, number: int) -> None:
    assert constant.end_col_offset is not None
    lines = TRAIN.split("\n")
    line = lines[constant.lineno - 1]
    lines[constant.lineno - 1] = f"{line[: constant.col_offset]}{number}{line[constant.end_col_offset :]}"
    changed = "\n".join(lines)

    assert (source_digest(changed) == source_digest(TRAIN)) == (constant.value == number)


def test_the_dump_is_this_one() -> None:
    source = "'''doc'''\nLR = 1e-3  # log [0.0003, 0.03]\ndef f(x, *, y=None): return f'{x!r:>{y}}' @ -2\n"

    assert canonical_source(source) == (
        b"(Module body=[(Assign targets=[(Name id=str:2:LR)] value=(Constant float:21:0x1.0624dd2f1a9fcp-10))"
        b"(FunctionDef args=(arguments args=[(arg arg=str:1:x)] kw_defaults=[(Constant NoneType:4:None)]"
        b" kwonlyargs=[(arg arg=str:1:y)]) body=[(Return value=(BinOp left=(JoinedStr values=[(FormattedValue"
        b" conversion=int:2:72 format_spec=(JoinedStr values=[(Constant str:1:>)(FormattedValue conversion=int:2:-1"
        b" value=(Name id=str:1:y))]) value=(Name id=str:1:x))]) op=(MatMult)"
        b" right=(UnaryOp op=(USub) operand=(Constant int:1:2))))] name=str:1:f)])"
    )
    assert source_digest("x = 1") == hashlib.sha256(canonical_source("x=1")).digest()
    assert source_digest("x = 1").hex() == "17897b97003f77799fb938aac6b529cf0c331f97a22683a19c6bec89c92d7b5b"


REFUSED = [
    "def f(:",
    "x = 1\n  y = 2",
    "x = '\x00'",
    "\ufeffx = 1",
    "(" * 5000,
    "# coding: latin-1\nx = 1",
    "\n# -*- coding: cp1252 -*-\nx = 1",
    "x = '\ud800'",
    "x = " + "9" * 5000,
]


@pytest.mark.parametrize("source", REFUSED)
def test_what_is_not_python_in_utf8_is_refused_with_a_sentence(source: str) -> None:
    with pytest.raises(UsageError) as caught:
        canonical_source(source)
    assert str(caught.value)
    assert caught.value.hint


def test_a_declared_utf8_is_a_comment() -> None:
    assert canonical_source("# -*- coding: utf-8 -*-\nx = 1") == canonical_source("x = 1")


def test_a_long_sum_does_not_exhaust_the_stack() -> None:
    assert canonical_source("x = " + "+".join(["a"] * 900)).count(b"BinOp") == 899


@given(st.text())
def test_any_text_has_a_dump_or_a_sentence(source: str) -> None:
    refusal = ""
    try:
        dump = canonical_source(source)
    except UsageError as error:
        refusal = error.hint

    assert refusal or dump.startswith(b"(Module")


SCRIPT = """
import hashlib, importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("source", sys.argv[1] + "/autoresearch/task/source.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps([hashlib.sha256(module.canonical_source(source)).hexdigest() for source in json.load(sys.stdin)]))
"""


RARE = """\
async def f(rows, matrix):
    async for row in rows:
        async with row as opened:
            yield +opened @ matrix
try:
    f()
except* ValueError as error:
    match error:
        case {"key": 1, **rest} | [rest, *_]:
            await rest
"""
# What the oldest version does not have.
NEWER = {"TypeAlias", "TemplateStr", "Interpolation"}


@functools.cache
def every_construct() -> dict[str, str]:
    """Programs in which each construct of the language is, with their digests."""
    standard_library = Path(ast.__file__).parent
    names = ["dataclasses", "enum", "fractions", "statistics", "pathlib", "traceback"]
    files = [standard_library / f"{name}.py" for name in names]
    files += [*(ROOT / "experiments").glob("*.py"), *(ROOT / "autoresearch" / "task").glob("*.py")]
    sources = [RARE, *(file.read_text("utf-8") for file in files)]
    sources += [source for pair in SPELLINGS + DIFFERENT for source in pair]
    seen = {type(node).__name__ for source in sources for node in ast.walk(ast.parse(source))}
    kinds = (ast.stmt, ast.expr, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.pattern)
    assert {made.__name__ for kind in kinds for made in kind.__subclasses__()} - seen <= NEWER
    return {source: source_digest(source).hex() for source in sources}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_other_versions_of_python_agree(version: str) -> None:
    interpreters = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}*/bin/python"))
    if not interpreters:
        pytest.skip(f"Python {version} is not here")

    answer = subprocess.run(
        [interpreters[-1], "-I", "-c", SCRIPT, ROOT],
        input=json.dumps([*every_construct()]),
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(answer.stdout) == [*every_construct().values()]


class Garbage:
    """Runs for a moment when it is collected, so that another thread gets its turn."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        sum(range(300))


@pytest.mark.slow
def test_threads_parse_at_the_same_time() -> None:
    errors: list[BaseException] = []
    end = time.monotonic() + 1
    text = Path(ast.__file__).read_text("utf-8")

    def repeat(depth: int, parse: Callable[[str], object]) -> None:
        if depth:
            repeat(depth - 1, parse)
            return
        while time.monotonic() < end and not errors:
            for _ in range(5):
                Garbage()
            parse(text)

    def parse_with_lock(source: str) -> None:
        try:
            parse_python(source)
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    def parse_without(source: str) -> None:
        """As a library does that knows of no lock: it may fail, others not."""
        with suppress(SystemError):
            ast.parse(source)

    threads = [threading.Thread(target=repeat, args=(20 * number, parse_with_lock)) for number in range(3)]
    threads.append(threading.Thread(target=repeat, args=(70, parse_without)))
    usual, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-5)
    gc.set_threshold(700, 10, 10)  # Python's own
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
        gc.set_threshold(*thresholds)
    assert errors == []
