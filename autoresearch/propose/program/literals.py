"""The literals of a program that a search may turn. Each has a name that other edits leave alone.

Of Python, at the top: ``LR``, ``BETAS[0]``, ``Config.lr`` of a class, ``config.optim.lr`` of a dict, ``--lr`` of
argparse. Deeper, where only a well-known name or a comment makes a number a setting:
``RandomForestClassifier.n_estimators`` of a call, ``main.lr`` in a function, ``C.optim.lr`` of an object.
Of other languages: ``name = number`` in a line, by a comment behind it that declares the range, or by a declaration as
a constant and its name:

    constexpr int N = 16;   // 1 .. 64
    #define UNROLL 4
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from autoresearch.propose.program import ranges
from autoresearch.propose.program.known_names import guess_compiled, names_a_choice
from autoresearch.task.source import EMPTY, python_tree

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# Of a function, as against a class, only these arguments are settings: `dim=1` or `alpha=0.5` there mean other things.
_OF_FUNCTIONS = re.compile(r"(?:mini_?)?batch_size|lr|learning_rate|weight_decay|momentum|dropout|max_(?:grad_)?norm")
# Which axis, not how many.
_AXES = frozenset({"dim", "axis"})
# What calls of these hold has its name from elsewhere, or none.
_NAMELESS = frozenset({"dict", "add_argument"})


class NamedValue(NamedTuple):
    """A value with a name, and whether something reads it there."""

    name: str
    node: ast.expr
    free: bool = True


def in_calls(nodes: Sequence[ast.AST]) -> Iterator[NamedValue]:
    """The keyword arguments of calls: of classes by their names, of functions those that are surely settings."""
    for node in nodes:
        if isinstance(node, ast.Call) and (called := _called(node)) and called not in _NAMELESS:
            for word in node.keywords:
                is_class = called[0].isupper() and word.arg not in _AXES
                if word.arg and (is_class or _OF_FUNCTIONS.fullmatch(word.arg)):
                    yield NamedValue(f"{called}.{word.arg}", word.value)


def in_functions(nodes: Sequence[ast.AST]) -> Iterator[NamedValue]:
    """The defaults of functions, and what is assigned once in them; those of ``__init__`` belong to the class."""
    owners = {id(inner): node.name for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in nodes:
        if isinstance(node, Function):
            owner = owners.get(id(node))
            if owner is None or node.name == "__init__":
                yield from _defaults(node, owner, nodes)
            yield from _assigned(node)


def in_attributes(nodes: Sequence[ast.AST]) -> Iterator[NamedValue]:
    """What is assigned to attributes of a config: ``C.trainer.learning_rate = 5e-4``, but nothing of ``self``."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Attribute() as target], value=value):
                parts: list[str] = []
                holder: ast.expr = target
                while isinstance(holder, ast.Attribute):
                    parts.insert(0, holder.attr)
                    holder = holder.value
                if isinstance(holder, ast.Name) and holder.id not in {"self", "cls"}:
                    yield NamedValue(".".join((holder.id, *parts)), value)


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _defaults(function: Function, owner: str | None, nodes: Sequence[ast.AST]) -> Iterator[NamedValue]:
    name, arguments = owner or function.name, function.args
    usual = [*arguments.posonlyargs, *arguments.args]
    names = [argument.arg for argument in usual[0 if owner is None else 1 :]]
    calls = [
        {*names[: len(node.args)], *(word.arg for word in node.keywords)}
        for node in nodes
        if isinstance(node, ast.Call) and _called(node) == name
    ]
    always = set.intersection(*calls) if calls else set()
    late = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    tail = usual[len(usual) - len(arguments.defaults) :]
    for argument, default in [*zip(tail, arguments.defaults, strict=True), *late]:
        if default is not None and argument.arg not in always:
            yield NamedValue(f"{name}.{argument.arg}", default)


def _assigned(function: Function) -> Iterator[NamedValue]:
    inside = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    bound = Counter(node.id for node in inside if not isinstance(node.ctx, ast.Load))
    read = {node.id for node in inside if isinstance(node.ctx, ast.Load)}
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=node) if bound[name] == 1 and name not in arguments:
                yield NamedValue(f"{function.name}.{name}", node, free=name in read)


_CONFIG = re.compile(
    r"(^|_)(config|cfg|conf|h?params?|hparams|hyperparameters|args|options|opts|settings|defaults)(_|$)"
)
# What may stand between a literal and the comment of its line: code, with the texts in it.
_COMMENT = re.compile(rb"""(?:[^#'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*#(.*)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of the program: its name, its place, and what its code says of it."""

    name: str
    value: ranges.Value
    node: ast.expr
    free: bool = True
    """Whether something reads it, as far as can be seen."""
    declared: ranges.ValueRange | None = None
    """What ``choices=`` of argparse, or ``Literal`` of a dataclass, allows."""
    known_only: bool = False
    """Whether only a well-known name makes it a setting: in a call, or in a dict that is not called a config."""
    is_deep: bool = False
    """Whether it lies in a call or a function, where most literals are no settings."""

    @property
    def group(self) -> str:
        """The name of the whole tuple: all its numbers share a comment."""
        return self.name.partition("[")[0]

    @property
    def root(self) -> str:
        """The name that its statement binds."""
        return re.split(r"[.\[]", self.name, maxsplit=1)[0]


def python_literals(source: str) -> list[Literal]:
    """All literals that have a name, in the order of the file; none if the source doesn't parse.

    A name that is bound more than once is left out: its value is not in one place.
    """
    tree = python_tree(source) or EMPTY
    nodes = list(ast.walk(tree))
    places = [*_top_level(tree, nodes), *_arguments(nodes)]
    places += _deeper(nodes, {literal.name: literal for literal in places})
    bound = Counter(name for name, _ in _bound(tree, nodes))
    named = Counter(literal.name for literal in places)
    once = [literal for literal in places if bound[literal.root] <= 1 and named[literal.name] == 1]
    in_line = [literal for literal in once if literal.node.end_lineno == literal.node.lineno]
    return sorted(in_line, key=lambda literal: (literal.node.lineno, literal.node.col_offset))


def repeated_literals(source: str) -> dict[str, tuple[Literal, list[int]]]:
    """The top-level literals whose name is bound more than once: the first place of each, and the lines that bind it.

    None if the source doesn't parse.
    """
    tree = python_tree(source) or EMPTY
    nodes = list(ast.walk(tree))
    lines: dict[str, list[int]] = {}
    for name, line in _bound(tree, nodes):
        lines.setdefault(name, []).append(line)
    places = [literal for literal in _top_level(tree, nodes) if len(lines.get(literal.name, ())) > 1]
    return {literal.name: (literal, sorted(lines[literal.name])) for literal in reversed(places)}


def comments(literals: Iterable[Literal], lines: list[bytes]) -> dict[str, str]:
    """The comment behind each literal, by name. Of several literals in a line the last one has it."""
    last = {literal.node.lineno: literal for literal in literals}
    texts = {}
    for literal in literals:
        node, owner = literal.node, last[literal.node.lineno]
        match = _COMMENT.fullmatch(lines[node.lineno - 1], node.end_col_offset or 0)
        if match and literal.group == owner.group:
            texts[literal.name] = match[1].decode(errors="replace").lstrip("#")
    return texts


def _top_level(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[Literal]:
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from _fields(statement, nodes)
        elif (assigned := _assignment(statement)) is not None:
            is_config = _CONFIG.search(assigned[0].lower()) is not None
            for name, value, node in _spread(*assigned):
                yield Literal(name, value, node, free=assigned[0] in read, known_only="." in name and not is_config)


def _deeper(nodes: list[ast.AST], named: Mapping[str, Literal]) -> Iterator[Literal]:
    """The literals in calls and functions; what a config class has under the same name is known from there."""
    for place in (*in_calls(nodes), *in_functions(nodes), *in_attributes(nodes)):
        for name, value, node in _spread(place.name, place.node):
            if name not in named:
                yield Literal(name, value, node, free=place.free, known_only=True, is_deep=True)


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=node):
            return name, node
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.Call(keywords=words)):
            # of a dataclass: field(default=...)
            default = next((word.value for word in words if word.arg == "default"), None)
            return None if default is None else (name, _as_declared(annotation, default))
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as node):
            return name, _as_declared(annotation, node)
    return None


def _spread(name: str, node: ast.expr) -> Iterator[tuple[str, ranges.Value, ast.expr]]:
    """The literals of a value: itself, the numbers of a short tuple, the entries of a dict."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if 0 < len(parts) <= 4:
            for number, part in enumerate(parts):
                yield from _spread(f"{name}[{number}]", part) if "[" not in name else ()
        case ast.Dict(keys=keys, values=values):
            for key, entry in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _spread(f"{name}.{key.value}", entry)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            for keyword in keywords:
                if keyword.arg:
                    yield from _spread(f"{name}.{keyword.arg}", keyword.value)
        case _ if (value := ranges.literal_value(node)) is not None:
            yield name, value, node


def _as_declared(annotation: ast.expr | None, node: ast.expr) -> ast.expr:
    """A whole number that is declared as a float, as a float: ``lr: float = 1``."""
    is_float = isinstance(annotation, ast.Name) and annotation.id == "float"
    if is_float and isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1e15:
        return ast.copy_location(ast.Constant(float(node.value)), node)
    return node


# --- config classes ---


def _fields(statement: ast.ClassDef, nodes: list[ast.AST]) -> Iterator[Literal]:
    """The defaults of a dataclass, or of a plain class that only holds values."""
    if not _is_config(statement):
        return
    assigned = [target for inner in statement.body if (target := _assignment(inner)) is not None]
    passed, allowed = _always_passed(statement, nodes), dict(_literal_types(statement))
    for field, node in assigned:
        for name, value, place in _spread(f"{statement.name}.{field}", node):
            declared = None if field in passed else _one_of(allowed.get(field), name, value)
            yield Literal(name, value, place, free=field not in passed, declared=declared)


def _is_config(statement: ast.ClassDef) -> bool:
    for decorator in statement.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "dataclass":
            return True
    values = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)
    return not statement.bases and all(isinstance(inner, values) for inner in statement.body)


def _always_passed(statement: ast.ClassDef, nodes: list[ast.AST]) -> set[str]:
    """The fields that every call of the class sets: their defaults mean nothing."""
    names = [inner.target.id for inner in statement.body if isinstance(inner, ast.AnnAssign)
             and isinstance(inner.target, ast.Name)]  # fmt: skip
    calls = [
        {*names[: len(node.args)], *(word.arg for word in node.keywords if word.arg)}
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == statement.name
    ]
    return set.intersection(*calls) if calls else set()


def _literal_types(statement: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """Of each field that is a ``Literal["a", "b"]``, what it may be."""
    for inner in statement.body:
        match inner:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                annotation=ast.Subscript(
                    value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=ast.Tuple() as choices
                ),
            ):
                yield name, choices


# --- command line ---


def _arguments(nodes: list[ast.AST]) -> Iterator[Literal]:
    """The defaults of ``add_argument``; those with ``choices`` keep to them."""
    for node in nodes:
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"):
            continue
        names = [flag.value for flag in node.args if isinstance(flag, ast.Constant) and isinstance(flag.value, str)]
        words = {word.arg: word.value for word in node.keywords if word.arg}
        if not names or "default" not in words:
            continue
        place = _as_declared(words.get("type"), words["default"])
        name = next((name for name in names if name.startswith("--")), names[0])
        choices = words.get("choices")
        for full, value, inner in _spread(name, place):
            yield Literal(full, value, inner, free=choices is None, declared=_one_of(choices, full, value))


def _one_of(choices: ast.expr | None, name: str, value: ranges.Value) -> ranges.ValueRange | None:
    """The range that listed choices are: of numbers, and of words where the name says that they are a way to train."""
    if not isinstance(choices, ast.List | ast.Tuple) or isinstance(value, bool):
        return None
    if isinstance(value, str) and not names_a_choice(name):
        return None
    allowed = [ranges.literal_value(part) for part in choices.elts]
    values = tuple(dict.fromkeys(choice for choice in allowed if type(choice) is type(value)))
    return ranges.ValueRange("one of", choices=values) if len(values) == len(allowed) > 1 and value in values else None


# --- names that are bound in more than one place ---


def _bound(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[tuple[str, int]]:
    """The names that top-level statements bind, once for each time, and those that a function may bind; with lines."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if (assigned := _assignment(statement)) is not None:
            yield assigned[0], statement.lineno
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id, node.lineno
    for node in nodes:
        if isinstance(node, ast.Global):
            yield from ((name, node.lineno) for name in node.names)


_LINE = re.compile(
    rf"(?P<before>.*?)\b(?P<name>[A-Za-z_]\w*)(?:\s*:\s*\w+)?\s*=\s*(?P<number>{ranges.NUMBER})[A-Za-z]{{0,3}}\s*[;,]?\s*(?:(?:/{{2,}}|#+|--)(?P<comment>.*))?"
)
_DEFINE = re.compile(
    rf"(?P<before>\s*#\s*define\s+)(?P<name>[A-Za-z_]\w*)\s+\(?(?P<number>{ranges.NUMBER})[A-Za-z]{{0,3}}\)?\s*(?:/{{2,}}(?P<comment>.*))?"
)
# What declares a constant in C, C++, CUDA, Rust, Go, Zig and Java.
_DECLARES = re.compile(r"\s*(?:\w+\s+)*?(?:constexpr|const|final)\b")
_MARKS = re.compile(r"//|#|--")


def line_literals(lines: list[bytes]) -> list[ranges.Constant]:
    """The numbers of lines, in the order of the file. A name that is there twice is left out."""
    defined = list(_define_constants(lines))
    named = Counter(constant.name for constant in defined)
    return [constant for constant in defined if named[constant.name] == 1]


def repeated_lines(lines: list[bytes]) -> dict[str, list[int]]:
    """The numbers that are there twice or more, by name, with their lines."""
    places: dict[str, list[int]] = {}
    for constant in _define_constants(lines):
        places.setdefault(constant.name, []).append(constant.line)
    return {name: numbers for name, numbers in places.items() if len(numbers) > 1}


def _define_constants(lines: list[bytes]) -> Iterator[ranges.Constant]:
    for count, raw in enumerate(lines, 1):
        line = raw.decode(errors="surrogateescape").rstrip("\r\n")
        defined = _DEFINE.fullmatch(line)
        match = defined or _LINE.fullmatch(line)
        if match is None or (defined is None and _MARKS.search(match["before"])):
            continue
        text, comment = match["number"], match["comment"] or ""
        value = int(text) if text.lstrip("+-").isdigit() and len(text) < 18 else float(text)
        if not -ranges.LARGEST < value < ranges.LARGEST:
            continue
        declared = ranges.read_range(comment, value)
        is_constant = defined is not None or _DECLARES.match(match["before"]) is not None
        allowed = declared or (_by_name(match["name"], value, comment) if is_constant else None)
        if allowed is not None:
            before = len(_bytes(line[: match.start("number")]))
            width = len(_bytes(text))
            yield ranges.Constant(match["name"], value, count, before, before + width, allowed, declared is None)


def _by_name(name: str, value: ranges.Value, comment: str) -> ranges.ValueRange | None:
    return None if ranges.is_fixed(comment) else guess_compiled(name, value)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
