"""What of a program prints its number and measures it, as a digest: two programs with the same one measure alike. Pure.

In Python these are:

- the value that is printed behind the metric's name;
- the statements that it is computed from, back to the call that evaluates;
- the data of that call whose names say that they are held out, where they are made;
- the whole of functions that measure by their names.

Settings, names of variables, comments, formatting and seeds do not count. In other languages it is each line that
names the metric. A stranger wrote the text: it is parsed, never run, and what is too large has no digest.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from autoresearch.task.metric_names import words_of
from autoresearch.task.program import split_program
from autoresearch.task.source import canonical_node, python_tree

# The words of names: of data that a program is measured on, of functions that measure, of what a model said of data.
_HELD_OUT = set("eval evaluation validation valid val test testing holdout heldout dev split".split())  # noqa: SIM905
_MEASURES = _HELD_OUT | set("evaluate evaluator validate metric metrics score scoring accuracy acc report".split())  # noqa: SIM905
_PREDICTED = set("pred preds predicted prediction predictions logits output outputs probs proba correct".split())  # noqa: SIM905
_LABELS = set("y label labels target targets answer answers truth".split())  # noqa: SIM905
_PRINTS = set("print write info log debug warning error critical dumps dump echo writerow update dict".split())  # noqa: SIM905
# Calls that only compute a number from another one.
_ARITHMETIC = set(
    "float int round abs min max sum len str format item mean sqrt log log2 exp pow numpy cpu detach".split()  # noqa: SIM905
)
_SEEDING = {"manual_seed", "seed", "default_rng", "RandomState", "Random", "PRNGKey"}
_SEEDS = {"seed", "random_state"}
_LARGEST_CHARACTERS, _MOST_NODES, _MOST_PARTS = 1 << 18, 100_000, 200
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign)
NOTHING = b""
"""The digest of a program in which nothing was found that prints or measures."""


def measuring_digest(program: str, metric: str) -> bytes:
    """A digest of what prints and measures ``metric`` in a program; :data:`NOTHING` where nothing was found that does.

    >>> one = measuring_digest('loss = 1.5; print(f"loss: {loss}")', "loss")
    >>> one == measuring_digest('last = 1.5; print("loss:", last)  # a comment', "loss")
    True
    >>> one == measuring_digest('print("loss: 0.0001")', "loss")
    False
    """
    if len(program) > _LARGEST_CHARACTERS:
        return NOTHING
    files = sorted(split_program(program).items())
    trees = [tree for name, text in files if name.endswith(".py") and (tree := _parsed(text)) is not None]
    others = [line for name, text in files if not name.endswith(".py") for line in text.splitlines()]
    naming = [line for line in others if _names(line, metric)] or [
        line for line in others if _names_loosely(line, metric)
    ]
    lines = [re.sub(r"\s+", "", line).encode("utf-8", "replace") for line in naming]
    parts = [*_Statements(trees, metric).parts(), *lines]
    return hashlib.blake2b(b"\n".join(parts), digest_size=16).digest() if parts else NOTHING


def _parsed(text: str) -> ast.Module | None:
    tree = python_tree(text)
    return tree if tree and sum(1 for _ in ast.walk(tree)) <= _MOST_NODES else None


def _names(text: str, metric: str) -> bool:
    """Whether a text names the metric, in any spelling: ``Val loss`` for ``val_loss``."""
    name, words = words_of(metric), words_of(text)
    return bool(name) and any(words[at : at + len(name)] == name for at in range(len(words)))


def _names_loosely(text: str, metric: str) -> bool:
    """Whether a text has a metric's words in their order with others between: ``Test set: Accuracy`` for it.

    A row of a table has those of the part of the data alone: ``| test | 0.33 |`` for ``test_rmse``.
    """
    metric_words, words = words_of(metric), words_of(text)
    following = iter(words)
    in_order = len(metric_words) > 1 and all(word in following for word in metric_words)
    return in_order or not _HELD_OUT.isdisjoint({*metric_words} & {*words})


class _Place(NamedTuple):
    """Where a statement stands: in which file, function (0: none) and block, and in which blocks that is."""

    file: int
    function: int
    blocks: tuple[int, ...]
    line: int
    column: int


class _Part(NamedTuple):
    """Something that prints or measures, as it is followed. ``held_out``: only data that are held out lead on."""

    node: ast.AST
    place: _Place
    held_out: bool = False


class _Statements:
    """Statements of a program by what they assign; from those that print the metric back to what measures it."""

    def __init__(self, trees: Iterable[ast.Module], metric: str) -> None:
        self._metric = metric
        self._names = _names
        self._functions: defaultdict[str, list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, _Place]]] = defaultdict(
            list
        )
        self._assigned: defaultdict[tuple[int, str], list[tuple[ast.stmt, _Place]]] = defaultdict(list)
        self._returns: defaultdict[int, list[tuple[ast.expr, _Place]]] = defaultdict(list)
        self._statements: list[tuple[ast.stmt, _Place]] = []
        for file, tree in enumerate(trees):
            self._read(tree, file)
        self._printing = {
            name
            for name, several in self._functions.items()
            if any(_called(call) in {"print", "write", "info"} for function, _ in several for call in _calls(function))
        }

    def _read(self, tree: ast.Module, file: int) -> None:
        pending: list[tuple[ast.AST, int, tuple[int, ...]]] = [(tree, 0, ())]
        while pending:
            node, function, blocks = pending.pop()
            if isinstance(node, ast.stmt):
                place = _Place(file, function, blocks, node.lineno, node.col_offset)
                self._statements.append((node, place))
                if isinstance(node, _FUNCTIONS):
                    self._functions[node.name].append((node, place))
                    function = id(node)
                elif isinstance(node, ast.Return) and node.value is not None:
                    self._returns[function].append((node.value, place))
                elif isinstance(node, _PLAIN):
                    for name in _targets(node):
                        self._assigned[0 if "." in name else function, name].append((node, place))
            inner = (*blocks, id(node)) if hasattr(node, "body") else blocks
            pending.extend((child, function, inner) for child in reversed(list(ast.iter_child_nodes(node))))

    def parts(self) -> list[bytes]:
        """What prints and measures in canonical form, in the order of the program."""
        roots = [_Part(value, place) for statement, place in self._statements for value in self._printed(statement)]
        if not roots:
            self._names = _names_loosely
            roots = [
                _Part(statement, place)
                for statement, place in self._statements
                if isinstance(statement, (*_PLAIN, ast.Expr))
                and (any(_measures(call) for call in _calls(statement)) or any(self._printed(statement)))
            ]
        parts: dict[int, _Part] = {}
        pending = roots
        while pending and len(parts) < _MOST_PARTS:
            part = pending.pop()
            if id(part.node) not in parts:
                parts[id(part.node)] = part
                pending.extend(self._behind(part))
        ordered = sorted(parts.values(), key=lambda part: (part.place.file, part.place.line, part.place.column))
        whole = {id(part.node) for part in ordered if isinstance(part.node, _FUNCTIONS)}
        own, numbers = self._own_names(), dict[str, str]()
        texts = []
        for part in ordered:
            if part.place.function not in whole:
                _neutralize(part.node, own, numbers)
                texts.append(canonical_node(part.node))
        return list(dict.fromkeys(texts))

    def _own_names(self) -> set[str]:
        names = {name for _, name in self._assigned} | set(self._functions)
        for statement, _ in self._statements:
            for node in ast.walk(statement) if isinstance(statement, (*_FUNCTIONS, ast.For, ast.With)) else ():
                if isinstance(node, ast.arg):
                    names.add(node.arg)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.add(node.id)
        return names

    def _printed(self, statement: ast.stmt) -> Iterator[ast.AST]:
        """The values that a statement prints behind the metric's name, or puts into what is printed elsewhere."""
        if not isinstance(statement, (*_PLAIN, ast.Expr, ast.Return)):
            return
        if isinstance(statement, ast.Assign) and statement.targets:
            target = statement.targets[0]
            if isinstance(target, ast.Subscript) and self._is_name(target.slice):
                yield statement.value
        for node in ast.walk(statement):
            if isinstance(node, ast.Dict):
                yield from (value for key, value in zip(node.keys, node.values, strict=True) if self._is_name(key))
            elif isinstance(node, ast.Call) and self._prints(node):
                yield from self._of_call(node)

    def _prints(self, call: ast.Call) -> bool:
        return (name := _called(call)) in _PRINTS or name in self._printing

    def _of_call(self, call: ast.Call) -> Iterator[ast.AST]:
        for at, argument in enumerate(call.args):
            following = call.args[at + 1 :]
            if isinstance(argument, ast.JoinedStr):
                yield from self._of_text(argument)
            elif isinstance(argument, ast.Constant):
                if self._is_name(argument):
                    is_pattern = isinstance(argument.value, str) and "%" in argument.value
                    yield from (following if is_pattern else following[:1]) or [argument]
            elif not isinstance(argument, ast.Dict) and any(
                self._is_name(node) for node in ast.walk(argument) if isinstance(node, ast.Constant)
            ):
                if not any(isinstance(node, ast.Dict | ast.JoinedStr) for node in ast.walk(argument)):
                    yield argument
                for text in (node for node in ast.walk(argument) if isinstance(node, ast.JoinedStr)):
                    yield from self._of_text(text)
        yield from (word.value for word in call.keywords if word.arg and self._names(word.arg, self._metric))

    def _of_text(self, text: ast.JoinedStr) -> Iterator[ast.AST]:
        """The value behind the metric's name in an f-string; the text itself where it has none."""
        for at, piece in enumerate(text.values):
            if isinstance(piece, ast.Constant) and self._is_name(piece):
                values = [value.value for value in text.values[at:] if isinstance(value, ast.FormattedValue)]
                yield values[0] if values and not re.search(r"[:=]\s*[-+\d.]", str(piece.value)) else piece

    def _is_name(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and self._names(node.value, self._metric)

    def _behind(self, part: _Part) -> Iterator[_Part]:
        """What a part is computed from."""
        calls = [call for call in _calls(part.node) if _called(call) not in _ARITHMETIC]
        is_whole = isinstance(part.node, _FUNCTIONS)
        for call in calls:
            if part.held_out:
                continue
            name = _called(call)
            own = self._functions.get(name, ())
            if _measures(call):
                yield from (_Part(*each) for each in (*own, *self._assigned.get((0, name), ())))
            elif not is_whole:
                # Of a function that also trains, only what it returns.
                returned = (each for function, _ in own for each in self._returns.get(id(function), ()))
                yield from (_Part(value, place) for value, place in returned)
        evaluates = bool(calls) or is_whole or part.held_out
        for name in dict.fromkeys(_loaded(part.node)):
            words = set(words_of(name))
            is_held_out = bool(words & _HELD_OUT)
            if not evaluates or is_held_out or (words & _PREDICTED and not part.held_out):
                follows_data = part.held_out or (is_held_out and evaluates)
                for statement, place in self._reaching(name, part):
                    if not (_is_setting(statement, name, place) or (follows_data and _only_prepares(statement, name))):
                        yield _Part(statement, place, held_out=follows_data)

    def _reaching(self, name: str, part: _Part) -> list[tuple[ast.stmt, _Place]]:
        """The assignments of a name that may reach a part: those before it, back to one that always runs."""
        function = id(part.node) if isinstance(part.node, _FUNCTIONS) else part.place.function
        own = [] if "." in name else self._assigned.get((function, name), [])
        assigned = own or self._assigned.get((0, name), [])
        if not own:
            return assigned
        reaching: list[tuple[ast.stmt, _Place]] = []
        for statement, place in reversed(assigned):
            if (place.line, place.column) >= (part.place.line, part.place.column):
                continue
            reaching.append((statement, place))
            is_sure = part.place.blocks[: len(place.blocks)] == place.blocks
            if is_sure and not isinstance(statement, ast.AugAssign) and name not in set(_loaded(statement)):
                break
        return reaching or assigned


def _is_setting(statement: ast.stmt, name: str, place: _Place) -> bool:
    """Whether a statement only sets a constant such as ``LR = 0.1``, and none of how the program is measured."""
    value = getattr(statement, "value", None)
    value = value.operand if isinstance(value, ast.UnaryOp) else value
    is_constant = (
        name.isupper() and isinstance(value, ast.Constant) and isinstance(statement, ast.Assign | ast.AnnAssign)
    )
    return is_constant and not place.function and _HELD_OUT.isdisjoint(words_of(name))


def _only_prepares(statement: ast.stmt, name: str) -> bool:
    """Whether held-out inputs only go through a function, as in ``x_val = scaler.transform(x_val)``. Never labels."""
    value = getattr(statement, "value", None)
    is_label = bool(_LABELS & set(words_of(name)))
    return not is_label and isinstance(value, ast.Call) and name in set(_loaded(value))


def _targets(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


def _loaded(node: ast.AST) -> Iterator[str]:
    """The names that are read, but not those of what is called."""
    called = {id(call.func) for call in _calls(node)}
    for inner in ast.walk(node):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            yield inner.target.id
        if id(inner) in called:
            continue
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load) and isinstance(inner.value, ast.Name):
            yield f"{inner.value.id}.{inner.attr}"


def _calls(node: ast.AST) -> list[ast.Call]:
    return [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def _called(call: ast.Call) -> str:
    """The last name of what is called: ``score`` for ``model.score(x)``."""
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _measures(call: ast.Call) -> bool:
    """Whether a call measures by its name; ``model.eval()`` only sets a mode."""
    has_arguments = bool(call.args or call.keywords)
    return has_arguments and bool(_MEASURES & set(words_of(_called(call))))


def _neutralize(node: ast.AST, own: set[str], numbers: dict[str, str]) -> None:
    """Take out of a node what says nothing: names of the program's own become numbers in the order in which they come.

    Seeds, types and the digits that are printed go.
    """
    for inner in ast.walk(node):
        for field in ("id", "arg", "name"):
            name = getattr(inner, field, None)
            if isinstance(name, str) and name in own and not isinstance(inner, ast.keyword | ast.alias):
                setattr(inner, field, numbers.setdefault(name, f"{len(numbers)}"))
        if isinstance(inner, ast.Call) and _called(inner) in _SEEDING:
            inner.args = []
        elif isinstance(inner, ast.keyword) and inner.arg in _SEEDS:
            inner.value = ast.Constant(None)
        elif isinstance(inner, ast.AnnAssign):
            inner.annotation = ast.Constant(None)
        elif isinstance(inner, ast.arg):
            inner.annotation = None
        elif isinstance(inner, _FUNCTIONS):
            inner.returns = None
        elif isinstance(inner, ast.FormattedValue):
            inner.format_spec = None
