"""The search space around one base source: its constants with their ranges, and the patches that apply to it.

Its own top-level ``assert`` statements say which combinations it allows.

Numbers live on [0, 1]: choices that are numbers are ordered, so their neighbours are near; other choices (and patches)
are only equal or different. Values from elsewhere may lie outside the declared range. ``assert WIDTH % HEAD_DIM == 0``
near the constants says what no range can. Only arithmetic, comparisons and ``and``/``or``/``not`` over constants are
understood; any other assertion is left to the run.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from autoresearch.propose.program.edits import NO_PATCHES, EditError, Patches, constants, python_files, set_constants
from autoresearch.propose.program.known_names import divisions, widened
from autoresearch.propose.program.ranges import LARGEST, Constant, Draws, Value, ValueRange
from autoresearch.task.program import source_digest
from autoresearch.task.source import EMPTY, python_tree

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]  # numbers only: checked by _number
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
}
# Longer assertions are not constraints between constants; the limit also bounds the recursion.
_NODES = 60
_LARGEST = 1e18


class _Unknown(Exception):
    """The expression holds something that cannot be decided from the constants."""


def assertions(source: str) -> list[ast.expr]:
    """The conditions of the top-level assertions that speak about constants alone."""
    values = {name: constant.value for name, constant in constants(source).items()}
    return [test for text in python_files(source) for test in _asserted(text) if _decide(test, values) is not None]


def _asserted(text: str) -> list[ast.expr]:
    return [
        statement.test
        for statement in (python_tree(text) or EMPTY).body
        if isinstance(statement, ast.Assert) and sum(1 for _ in ast.walk(statement.test)) <= _NODES
    ]


def divides(name: str, divisor: str) -> ast.expr:
    """The condition that one constant is a multiple of another."""
    rest = ast.BinOp(ast.Name(name, ast.Load()), ast.Mod(), ast.Name(divisor, ast.Load()))
    return ast.Compare(rest, [ast.Eq()], [ast.Constant(0)])


def holds(tests: Sequence[ast.expr], values: Mapping[str, Value]) -> bool:
    """Whether no assertion fails with these constants; one that cannot be decided does not count."""
    return all(_decide(test, values) is not False for test in tests)


def _decide(test: ast.expr, values: Mapping[str, Value]) -> bool | None:
    try:
        return bool(_evaluate(test, values))
    except ZeroDivisionError:
        return False
    except _Unknown:
        return None


def _evaluate(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, values)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(_evaluate(operand, values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _number(_evaluate(left, values)), _number(_evaluate(right, values))
            return _number(_BINARY[type(op)](a, b))
        case ast.BoolOp(op=op, values=parts):
            results = [bool(_evaluate(part, values)) for part in parts]
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_evaluate(side, values) for side in (left, *comparators)]
            return all(_compare(op, a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False))
    raise _Unknown


def _compare(op: ast.cmpop, left: Value, right: Value) -> bool:
    if type(op) not in _COMPARE:
        raise _Unknown
    if not isinstance(op, ast.Eq | ast.NotEq):
        left, right = _number(left), _number(right)
    return _COMPARE[type(op)](left, right)


def _number(value: Value) -> float:
    if isinstance(value, str) or abs(value) > _LARGEST:
        raise _Unknown
    return value


# A value so near to an end of its range lies at the end.
_END = 0.02
# How far outside its range a value tried elsewhere may pull the search, in widths of the range.
OUTSIDE = 0.3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A dimension of the search, with the value that its base source has."""

    name: str
    range: ValueRange
    default: Value
    guessed: bool = False
    """Whether the range is a guess by the name."""

    ordered: bool = field(init=False)
    """Whether values have places on a line, rather than being only equal or different."""

    def __post_init__(self) -> None:
        choices = self.range.choices
        numbers = all(isinstance(choice, int | float) and not isinstance(choice, bool) for choice in choices)
        object.__setattr__(self, "ordered", self.range.kind != "one of" or numbers)  # asked in each step of a search

    def admit(self, value: object) -> Value | None:
        """The value as this gene would hold it, or None when it is none that the gene can hold."""
        if isinstance(self.default, bool) or isinstance(value, bool):
            return value if isinstance(value, bool) and isinstance(self.default, bool) else None
        if isinstance(self.default, str) or isinstance(value, str):
            return value if isinstance(value, str) and value in self.range.choices else None
        if not isinstance(value, int | float) or not -1e15 < value < 1e15:
            return None
        if self.range.kind == "log" and value <= 0:
            return None
        if isinstance(self.default, int):
            return int(value) if value == int(value) else None
        return float(value)

    def place(self, value: Value) -> float:
        """Where the value lies: 0 to 1 inside the range, a little beyond outside it; choices by their rank."""
        if not self.ordered:
            return float(self.range.choices.index(value)) if value in self.range.choices else -1.0
        number = float(value)
        if self.range.kind == "one of":
            unit = _rank([float(choice) for choice in self.range.choices], number)
        elif self.range.kind == "log":
            unit = math.log(number / self.range.low) / math.log(self.range.high / self.range.low)
        else:
            unit = (number - self.range.low) / (self.range.high - self.range.low)
        return min(1.0 + OUTSIDE, max(-OUTSIDE, unit))

    def at(self, unit: float) -> Value:
        """The value at a place, inside the range; numbers rounded to two digits, so that equal means equal."""
        unit = min(1.0, max(0.0, unit))
        low, high = self.range.low, self.range.high
        if self.range.kind == "one of":
            choices = self._choices()
            return choices[round(unit * (len(choices) - 1))]
        number = low * (high / low) ** unit if self.range.kind == "log" else low + unit * (high - low)
        if isinstance(self.default, int):
            # 157 and 160 trees are the same idea; within a narrow range each number counts
            coarse = self.range.kind == "log" and number >= 100 and high >= 4 * low
            return int(min(high, max(low, float(f"{number:.2g}") if coarse else round(number))))
        return min(high, max(low, float(f"{number:.2g}")))

    def anywhere(self, draws: Draws) -> Value:
        """A value from the whole range, each equally likely (on the logarithm where the range is one)."""
        if self.range.kind == "one of":
            return draws.choice(self._choices())
        if isinstance(self.default, int) and self.range.kind == "int":
            return int(self.range.low) + draws.below(int(self.range.high - self.range.low) + 1)
        return self.at(draws.uniform())

    def near(self, value: Value, spread: float, draws: Draws) -> Value:
        """A value near this one (normal with this spread on [0, 1]); for unordered choices, any other one."""
        if not self.ordered:
            others = [choice for choice in self.range.choices if choice != value]
            return draws.choice(others) if others else value
        place = self.place(value)
        for _ in range(20):
            unit = place + spread * draws.normal()
            if 0.0 <= unit <= 1.0 and self.at(unit) != value:
                return self.at(unit)
        return self._neighbour(value, draws)

    def _neighbour(self, value: Value, draws: Draws) -> Value:
        """The next choice or whole number, up or down: for steps that are wider than the spread."""
        steps = len(self.range.choices) - 1 if self.range.kind == "one of" else 20
        if self.range.kind == "int":
            steps = int(self.range.high - self.range.low)
        step = 1.0 / max(1, steps)
        place = min(1.0, max(0.0, self.place(value)))
        up = draws.chance(0.5)
        for sign in (1, -1) if up else (-1, 1):
            if -1e-9 <= place + sign * step <= 1 + 1e-9 and self.at(place + sign * step) != value:
                return self.at(place + sign * step)
        return value

    def _choices(self) -> list[Value]:
        if self.ordered:
            return sorted(self.range.choices, key=float)
        return list(self.range.choices)


def constant_parameter(constant: Constant) -> Parameter | None:
    """The gene of a constant that has a range."""
    allowed, value = constant.range, constant.value
    if allowed is None:
        return None
    choices = allowed.choices or (1 if allowed.whole else 1.0,)
    if type(value) is int and any(isinstance(choice, float) for choice in choices):
        value = float(value)
    return Parameter(constant.name, allowed, value, constant.guessed)


def _rank(choices: list[float], number: float) -> float:
    """The place of a number among ordered choices, between two of them by proportion."""
    choices = sorted(choices)
    last = len(choices) - 1
    if number <= choices[0]:
        return 0.0 if number == choices[0] else -OUTSIDE
    for i, (below, above) in enumerate(pairwise(choices)):
        if number <= above:
            return (i + (number - below) / (above - below)) / last
    return 1.0 + OUTSIDE


Genome = dict[str, Value]
# So many values are kept.
ADMITTED_MAX = 100_000
# A record holds no more; constants with a range in their comment come first.
GENES_MAX = 128


@dataclass(frozen=True, slots=True)
class Space:
    """A base source with its genes, in the order of the file, patches last."""

    source: str
    parameters: dict[str, Parameter]
    constants: dict[str, Value]
    conditions: tuple[ast.expr, ...]
    patches: Patches = NO_PATCHES
    admitted: dict[tuple[str, type, object], Value | None] = field(default_factory=dict, repr=False, compare=False)
    """What values from elsewhere are here, by gene, type and value: thousands of runs have few different ones."""

    def default(self) -> Genome:
        """The genome of the base source itself."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def read(self, genome: Mapping[str, object]) -> Genome:
        """A genome from elsewhere, as far as it makes sense here; the base's own values for the rest."""
        values = self.default()
        for name, parameter in self.parameters.items():
            if name in genome and (value := self._admit(parameter, genome[name])) is not None:
                values[name] = value
        return values

    def _admit(self, parameter: Parameter, value: object) -> Value | None:
        if not isinstance(value, bool | int | float | str):
            return parameter.admit(value)
        key = (parameter.name, type(value), value)
        if key not in self.admitted:
            if len(self.admitted) >= ADMITTED_MAX:
                self.admitted.clear()
            self.admitted[key] = parameter.admit(value)
        return self.admitted[key]

    def allows(self, genome: Mapping[str, Value]) -> bool:
        """Whether the program's own assertions hold for this genome."""
        return holds(self.conditions, {**self.constants, **genome})

    def widened(self, genome: Mapping[str, Value]) -> Space:
        """The space with room beyond the settings of a genome that lie at the ends of their ranges.

        Only where the range was a guess by name around the base's own value: ends that somebody stated are meant.
        """
        wider = {
            name: replace(parameter, range=widened(name, parameter.range, parameter.default, genome[name]))
            for name, parameter in self.parameters.items()
            if parameter.guessed and parameter.ordered and not _END < parameter.place(genome[name]) < 1.0 - _END
        }
        return replace(self, parameters={**self.parameters, **wider}) if wider else self

    def settings(self, names: Collection[str] = ()) -> Genome:
        """The values that the base source has, without those that no record can hold.

        Besides its own settings these are constants that are settings elsewhere, by their names ``names``.
        """
        values = self.default()
        for name in names:
            if name in self.constants and len(values) < GENES_MAX:
                values.setdefault(name, self.constants[name])
        return {
            name: value
            for name, value in values.items()
            if (value.isprintable() if isinstance(value, str) else abs(value) < LARGEST)
        }

    def genome_of(self, program: str, like: Mapping[str, Value]) -> Genome | None:
        """The genome of a program that changes constants of the base alone; None when it changes anything else.

        Its patches are those of the genome ``like``: that of the program that was edited.
        """
        genome, literals = self.read(like), constants(program)
        for name, parameter in self.parameters.items():
            if not name.startswith("+"):
                value = parameter.admit(literals[name].value) if name in literals else None
                if value is None:
                    return None
                genome[name] = value
        built = self.build(genome)
        return genome if built is not None and source_digest(built) == source_digest(program) else None

    def build(self, genome: Mapping[str, Value]) -> str | None:
        """The program of a genome, or None when its patches do not fit together."""
        names = [name[1:] for name, value in genome.items() if name.startswith("+") and value]
        changed = {
            name: genome[name]
            for name, parameter in self.parameters.items()
            if not name.startswith("+") and genome[name] != parameter.default
        }
        try:
            return set_constants(self.patches.apply(self.source, names), changed)
        except EditError:
            return None


def space_of(source: str, patches: Patches = NO_PATCHES) -> Space:
    """Read the search space of a source: empty when it has no number that can be turned and no patch applies.

    ``patches`` are those of its task, with the settings that its command gives.
    """
    literals = {name: patches.commented(constant) for name, constant in constants(source).items()}
    offered = [
        Parameter(f"+{name}", ValueRange("one of", choices=(False, True)), default=False)
        for name in patches.offered(source)
    ]
    free = [constant for constant in literals.values() if not patches.gives(constant.name)]
    turned = [(constant, parameter) for constant in free if (parameter := constant_parameter(constant))]
    room = GENES_MAX - len(offered)
    chosen = {id(parameter) for _, parameter in sorted(turned, key=lambda item: item[0].guessed)[:room]}
    parameters = [parameter for _, parameter in turned if id(parameter) in chosen] + offered
    values = {name: constant.value for name, constant in literals.items()}
    conditions = assertions(source)
    conditions += [test for pair in divisions(literals) if holds([test := divides(*pair)], values)]
    return Space(source, {parameter.name: parameter for parameter in parameters}, values, tuple(conditions), patches)
