"""What in a program only sets a seed, the program without it, and the program with other seeds. Pure.

Two programs that differ in their seeds alone are one program: a change of the seed is a repetition, not an idea. Of
Python the syntax tree is read, of other files their lines. Only the number is replaced, so the rest stays as it is:

    SEED = 1337                      torch.manual_seed(1)           add_argument("--seed", default=1)
    def main(random_state=0)         np.random.default_rng([1, 2])  ["python", "x.py", "--seed", "3"]
    std::mt19937 rng(42)             srand(7)                       seed: 3   # YAML, TOML, JSON, INI

A name is that of a seed by its words: ``n_seeds`` is a number of seeds, ``seedling_rate`` has nothing to do with one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from autoresearch.errors import UsageError
from autoresearch.task.program import join_files, source_digest, split_program
from autoresearch.task.source import EMPTY, parsing, python_tree

# What another number of a repetition adds to each seed: a prime, so that seeds that follow on one another don't meet.
_STEP = 104_729
# Every generator takes seeds below this.
_BELOW = 2**31
# Stands for a seed where seeds don't count: a number that no program fixes by chance, so that one with a seed in it has
# a form of its own.
_ANY = 1_618_033_988
# In longer lines of what is not Python nothing is looked for; strangers write them.
_LONGEST_LINE = 1000
_LONGEST_NAME = 64

# First words of a name that ends in "seed" and counts seeds, or says whether there is one.
_COUNTS = frozenset(re.findall(r"\w+", "n num number count max min per use using has no without"))
# Words behind "seed" that leave it a seed.
_BEHIND = frozenset(re.findall(r"\w+", "value val int offset base default everything"))
_ONE_WORD = re.compile(r"(?:rng|rand|random|python|hash|my|base|init|global|train|data|torch|np)*seed\d{0,3}")
# The words of a function that sets a seed; "seed" is one of them.
_SETTING = frozenset(
    re.findall(
        r"\w+",
        "seed seeds set fix init reset random rng prng manual everything all global torch np numpy jax tf python cuda "
        "mps worker workers env fixed from u64 u32",
    )
)
# What takes a seed as its first argument, whatever its name says.
_SEEDED = frozenset(
    re.findall(
        r"\w+",
        "PRNGKey default_rng RandomState Random SeedSequence MT19937 PCG64 PCG64DXSM Philox SFC64 srand srandom "
        "srand48 curand_init NewSource NewPCG mt19937 mt19937_64 minstd_rand minstd_rand0 default_random_engine",
    )
)
# What takes the name of a setting, and behind it the value.
_BY_NAME = frozenset(("get", "getenv", "putenv", "setdefault", "pop", "set", "setattr"))
_DEFAULTS = frozenset(("field", "Field", "Option", "Argument", "Parameter"))
_ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.operator, ast.unaryop, ast.Load)

_DIGITS = r"(?:0[xX][0-9a-fA-F]{1,16}|\d{1,40})"
_NUMBER = rf"(?P<number>-?{_DIGITS})(?=[uUlL]{{0,3}}(?![\w.]))"
_LIST = rf"(?P<list>[\[{{(]\s{{0,4}}{_DIGITS}(?:\s{{0,4}},\s{{0,4}}{_DIGITS}){{0,63}}\s{{0,4}},?\s{{0,4}}[\]}})])"
_NONE = r"(?P<none>null|None|nil|~)(?![\w.])"
_NAME = rf"(?<![\w.-])(?P<name>-{{0,2}}[A-Za-z_][\w.-]{{0,{_LONGEST_NAME}}}?)"
_FLAG = re.compile(rf"{_NAME}(?:=|(?<=\w)\s{{1,4}}(?=\d)){_NUMBER}", re.ASCII)
# Behind a name: "=", ":", ":=", "{" of C++, ": u64 =" of Rust, or the blank of #define.
_LINE_FORMS = (
    re.compile(
        rf"{_NAME}[\"']?\s{{0,8}}(?::\s{{0,4}}\w{{1,16}}\s{{0,4}}=|:=|[:={{])\s{{0,8}}[\"']?(?:{_NUMBER}|{_LIST}|{_NONE})",
        re.ASCII,
    ),
    re.compile(rf"#\s{{0,4}}define\s{{1,8}}{_NAME}\s{{1,8}}\(?{_NUMBER}", re.ASCII),
)
_CALL = re.compile(
    rf"(?<!\w)(?P<name>[A-Za-z_][\w.:]{{0,{_LONGEST_NAME}}})!?\s{{0,4}}[({{]\s{{0,4}}{_NUMBER}", re.ASCII
)
# std::mt19937 rng(42), of which the name is that of the type
_ENGINE = re.compile(rf"(?<!\w)(?P<name>\w{{1,32}})\s{{1,8}}\w{{1,32}}\s{{0,4}}[({{=]\s{{0,4}}{_NUMBER}", re.ASCII)
# Every name of a seed, and of what takes one, has one of these in it.
_MAY_HAVE = re.compile(rb"seed|rand|mt19937|pcg|philox|sfc64|newsource|engine|prng", re.IGNORECASE)
_IN_TEXT = re.compile(rb"[rRuUbB]{0,2}(?P<quote>\"\"\"|'''|\"|')(?P<number>\d{1,40})(?P=quote)")


class Seed(NamedTuple):
    """A seed in a file: the bytes between which its number stands, and the number; None where it fixes none."""

    start: int
    end: int
    number: int | None


_Other: TypeAlias = Callable[[int | None], int | None]


def names_seed(name: str, *, several: bool = False) -> bool:
    """Whether a setting of this name is a seed, such as ``--random-seed``, or with ``several`` a list of them."""
    words = _words(name)
    if words[:1] == ["autoresearch"]:  # AUTORESEARCH_SEED comes from the run
        return False
    if words[-2:] == ["random", "state"] or words[-1:] == ["randomstate"]:
        return True
    while len(words) > 1 and (words[-1] in _BEHIND or words[-1].isdigit() or len(words[-1]) == 1):
        words.pop()
    if not words or (len(words) > 1 and words[0] in _COUNTS):
        return False
    return _ONE_WORD.fullmatch(words[-1]) is not None or (several and words[-1] == "seeds")


def seedless(program: str) -> str:
    """A program with one number in place of all its seeds; as it is where it has none, or is no valid program."""
    return _rewritten(program, lambda _: _ANY)


@lru_cache(maxsize=256)
def seedless_digest(program: str) -> bytes:
    """What names a program whatever its seeds are. Raises UsageError when a ``.py`` file is not Python."""
    return source_digest(seedless(program))


def stated_seedless(program: str) -> bytes | None:
    """The same, as a run states it: None where the program has no seed in it."""
    digest = seedless_digest(program)
    return None if digest == source_digest(program) else digest


def reseeded(program: str, number: int) -> str:
    """A program with other seeds in place of those that it fixes, the same for the same ``number``; 0: as it is.

    A seed that fixes nothing, as in ``seed = None``, stays.
    """
    return _rewritten(program, _others(number)) if number else program


def reseeded_line(command: str, number: int) -> str:
    """A command line with another seed behind each ``--seed``, as :func:`reseeded` has them."""
    return _replaced(command, list(_flags(command.encode().decode("latin-1"))), _others(number))


def fixes_seed(name: str, content: str) -> bool:
    """Whether the file of this name fixes a seed that can be seen, and so can be replaced."""
    return any(seed.number is not None and seed.number >= 0 for seed in seeds_in(name, content))


def hides_seed(name: str, content: str) -> bool:
    """Whether a Python file sets a seed, and neither fixes one that can be seen nor takes the seed of the run."""
    if not name.endswith(".py") or "AUTORESEARCH_SEED" in content or fixes_seed(name, content):
        return False
    calls = [node for node in ast.walk(python_tree(content) or EMPTY) if isinstance(node, ast.Call)]
    names = [_last_name(call.func) for call in calls]
    return any(_sets_seed(name) for name, call in zip(names, calls, strict=True) if call.args) or any(
        name.endswith("TrainingArguments")
        for name in names  # of Hugging Face: its own seed is 42 unless it is named
    )


def seeds_in(name: str, content: str) -> list[Seed]:
    """The seeds in the file of this name, as they stand there; none in Python that can't be read."""
    seeds = _of_python(content) if name.endswith(".py") else _of_lines(content)
    last, apart = 0, []
    for seed in sorted(set(seeds), key=lambda seed: seed[:2]):
        if seed.start >= last:
            apart.append(seed)
            last = seed.end
    return apart


def _rewritten(program: str, other: _Other) -> str:
    try:
        files = split_program(program)
        return join_files({name: _replaced(text, seeds_in(name, text), other) for name, text in files.items()})
    except (UsageError, UnicodeError):
        return program


def _others(number: int) -> _Other:
    return lambda seed: None if seed is None or seed < 0 else (seed + number * _STEP) % _BELOW


def _replaced(content: str, seeds: Sequence[Seed], other: _Other) -> str:
    data = content.encode()
    for seed in reversed(seeds):
        if (number := other(seed.number)) is not None:
            data = data[: seed.start] + str(number).encode() + data[seed.end :]
    return data.decode()


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[: 4 * _LONGEST_NAME]).lower())


def _sets_seed(name: str) -> bool:
    """Whether a function or class of this name takes a seed as its first argument."""
    words = set(_words(name))
    return name in _SEEDED or (not words.isdisjoint(("seed", "seeds")) and words <= _SETTING)


# --- Python ---


def _of_python(content: str) -> Iterator[Seed]:
    data = content.encode()
    starts = [0, *(match.end() for match in re.finditer(rb"\r\n?|\n", data))]
    nodes = list(ast.walk(python_tree(content) or EMPTY))
    # Python before 3.12 does not know where the parts of an f-string are.
    hidden = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}

    def span(node: ast.expr) -> tuple[int, int]:
        last = node.end_lineno or node.lineno
        return starts[node.lineno - 1] + node.col_offset, starts[last - 1] + (node.end_col_offset or 0)

    for node in nodes:
        if id(node) in hidden:
            continue
        for value in _values(node):
            for literal in _literals(value):
                if id(literal) not in hidden:
                    yield from _seed_at(*span(literal), data)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            start, end = span(node)
            if not _MAY_HAVE.search(data, start, end):
                continue
            for seed in _flags(data[start:end].decode("latin-1")):
                yield Seed(start + seed.start, start + seed.end, seed.number)


def _seed_at(start: int, end: int, data: bytes) -> Iterator[Seed]:
    text = data[start:end]
    if match := _IN_TEXT.fullmatch(text):
        yield Seed(start + match.start("number"), start + match.end("number"), int(match["number"]))
    elif text == b"None":
        yield Seed(start, end, None)
    elif re.fullmatch(rb"-?\s{0,4}[0-9][0-9a-fA-FxXoO_]{0,39}", text):
        with parsing():
            number = ast.literal_eval(text.decode())
        yield Seed(start, end, number)


def _values(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions in a node that are nothing but seeds: of settings by their names, and of calls that set one."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(target, value)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            yield from _assigned(target, value)
        case ast.arguments():
            arguments = [*node.posonlyargs, *node.args]
            for argument, default in zip(reversed(arguments), reversed(node.defaults), strict=False):
                yield from _named(argument.arg, default)
            for argument, late in zip(node.kwonlyargs, node.kw_defaults, strict=True):
                yield from _named(argument.arg, late)
        case ast.Call():
            yield from _in_call(node)
        case _:
            yield from _in_collection(node)


def _in_collection(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                yield from _named(_text(key), value)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):  # ["--seed", "3"]
            for flag, value in pairwise(parts):
                if _text(flag).startswith("-"):
                    yield from _named(_text(flag), value)


def _assigned(target: ast.expr, value: ast.expr) -> Iterator[ast.expr]:
    match target, value:
        case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
            for name, part in zip(names, parts, strict=True):
                yield from _named(_last_name(name), part)
        case _:
            yield from _named(_last_name(target), value)


def _named(name: str, value: ast.expr | None) -> Iterator[ast.expr]:
    if value is not None and name and names_seed(name, several=isinstance(value, ast.List | ast.Tuple | ast.Set)):
        yield value


def _in_call(call: ast.Call) -> Iterator[ast.expr]:
    name = _last_name(call.func)
    for word in call.keywords:
        yield from _named(word.arg or "", word.value)
    if not call.args:
        return
    is_key = name == "key" and isinstance(call.func, ast.Attribute) and _last_name(call.func.value) == "random"
    if is_key or _sets_seed(name):
        yield call.args[0]
    if name in _BY_NAME or name.startswith("DEFINE_"):
        for flag, value in pairwise(call.args):
            yield from _named(_text(flag), value)
    for value in [word.value for word in call.keywords if word.arg == "default"]:  # of argparse and click
        for flag in call.args:
            yield from _named(_text(flag), value)


def _last_name(node: ast.expr) -> str:
    """The last part of the name of what is called or assigned to."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=key):
            return _text(key)
    return ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _literals(value: ast.expr) -> Iterator[ast.expr]:
    """The literals that a seed's expression is made of; none where anything but arithmetic is in it."""
    pending: list[ast.expr] = [value]
    while pending:
        match pending.pop():
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                pending += parts
            case ast.IfExp(body=body, orelse=other):
                pending += [body, other]
            case ast.Call(func=func, args=args, keywords=words) if _last_name(func) in _DEFAULTS:
                pending += [*args[:1], *(word.value for word in words if word.arg == "default")]
            case (ast.Constant() | ast.UnaryOp(op=ast.USub(), operand=ast.Constant())) as literal:
                yield literal
            case ast.BinOp() as sum_:
                yield from _terms(sum_)


def _terms(value: ast.BinOp) -> Sequence[ast.expr]:
    terms: list[ast.expr] = []
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            terms.append(node)
        elif not isinstance(node, _ARITHMETIC):
            return ()
    return terms


# --- other files ---


def _of_lines(content: str) -> Iterator[Seed]:
    at = 0
    for raw in content.encode().split(b"\n"):
        if len(raw) <= _LONGEST_LINE and _MAY_HAVE.search(raw):
            for seed in _in_line(raw.decode("latin-1")):
                yield Seed(at + seed.start, at + seed.end, seed.number)
        at += len(raw) + 1


def _in_line(line: str) -> Iterator[Seed]:
    yield from _flags(line)
    for form in _LINE_FORMS:
        for match in form.finditer(line):
            if names_seed(match["name"], several="list" in match.groupdict() and match["list"] is not None):
                yield from _matched(match)
    for match in _CALL.finditer(line):
        last = re.split(r"::|\.", match["name"])[-1]
        if _sets_seed(last) or match["name"] == "set.seed" or names_seed(match["name"]):
            yield from _matched(match)
    for match in _ENGINE.finditer(line):
        if match["name"] in _SEEDED:
            yield from _matched(match)


def _flags(text: str) -> Iterator[Seed]:
    """``--seed 3`` and ``seed=3`` in a command line."""
    for match in _FLAG.finditer(text):
        is_flag = match["name"].startswith("-") or "=" in match[0]
        if is_flag and names_seed(match["name"]):
            yield from _matched(match)


def _matched(match: re.Match[str]) -> Iterator[Seed]:
    groups = match.groupdict()
    if groups.get("none") is not None:
        yield Seed(match.start("none"), match.end("none"), None)
        return
    start, end = match.span("number" if groups.get("number") is not None else "list")
    for part in re.finditer(rf"-?{_DIGITS}", match.string[start:end]):
        number = int(part[0], 16 if "x" in part[0].lower() else 10)
        yield Seed(start + part.start(), start + part.end(), number)
