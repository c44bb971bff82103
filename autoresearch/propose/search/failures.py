"""What runs that failed for one cause say of what cannot work: rules such as ``WIDTH % HEADS == 0`` or ``BATCH < 64``.

A rule explains a cause when each program that failed for it breaks the rule, and no program that has a value does.
Several rules can explain the same failures. A genome is refused only where all of them say that it fails, so what the
runs leave open is still tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from autoresearch.propose.program.known_names import named_in
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.program.space import Genome, Space
from autoresearch.propose.search.moves import Sample

# So many programs that failed for one cause say why.
LEAST = 3
# Products of two settings are looked at among so many whole numbers, which takes cubic time.
_PRODUCTS = 12
_LINE = 120
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on some settings. ``kind`` is ``!=``, ``<``, ``>`` (of one or of a product) or ``%``."""

    names: tuple[str, ...]
    kind: str
    bound: tuple[Value, ...] = ()

    def __str__(self) -> str:
        """As a person reads it: ``WIDTH % HEADS == 0``."""
        if self.kind == "%":
            *product, divisor = self.names
            return f"{' * '.join(product)} % {divisor} == 0"
        if self.kind == "!=":
            return " or ".join(f"{name} != {value}" for name, value in zip(self.names, self.bound, strict=True))
        return f"{' * '.join(self.names)} {self.kind} {self.bound[0]:.6g}"

    def is_broken(self, values: Mapping[str, Value]) -> bool:
        """Whether these values break it."""
        held = [values[name] for name in self.names]
        if self.kind == "!=":
            return all(value == bound for value, bound in zip(held, self.bound, strict=True))
        if self.kind == "%":
            return held[-1] == 0 or _product(held[:-1]) % float(held[-1]) != 0
        product, bound = _product(held), float(self.bound[0])
        return product >= bound if self.kind == "<" else product <= bound


@dataclass(frozen=True, slots=True)
class Cause:
    """Programs that failed with one error, and all rules that explain it."""

    line: str
    """The error of one of them."""
    programs: int
    rules: tuple[Rule, ...]

    def refuses(self, values: Mapping[str, Value]) -> bool:
        """Whether each explanation says that these values fail."""
        return all(rule.is_broken(values) for rule in self.rules)

    def __str__(self) -> str:
        """The explanation, where only one is left."""
        if len(self.rules) != 1:
            return ""
        return f"Kept: {self.rules[0]}. {self.programs} programs that broke it ended with “{self.line[:_LINE]}”."


def causes(space: Space, working: Sequence[Sample], failed: Sequence[Sample]) -> list[Cause]:
    """Why programs of this base failed, as far as the runs explain it, in the order of the errors."""
    good = [_values(space, sample.genome) for sample in working if sample.weight == 1]
    groups: dict[str, list[Sample]] = {}
    for sample in sorted(failed, key=lambda sample: sample.run.id):
        if sample.weight == 1:
            groups.setdefault(_NUMBER.sub("#", sample.run.fault), []).append(sample)
    explained = []
    for _, group in sorted(groups.items()):
        if good and len(group) >= LEAST and (rules := _explained(space, good, group)):
            explained.append(Cause(group[0].run.fault, len(group), rules))
    return explained


def _values(space: Space, genome: Genome) -> dict[str, Value]:
    return {**space.constants, **genome}


def _explained(space: Space, good: Sequence[Mapping[str, Value]], group: Sequence[Sample]) -> tuple[Rule, ...]:
    """The rules that explain a cause: of those about settings that the error names, where there are such."""
    bad = [_values(space, sample.genome) for sample in group]
    for candidates in (_simple(space, bad), _of_products(space, bad)):
        rules = [
            rule
            for rule in candidates
            if all(rule.is_broken(values) for values in bad) and not any(rule.is_broken(values) for values in good)
        ]
        if rules:
            named = set(named_in(group[0].run.fault, space.parameters))
            return tuple(rule for rule in rules if named & {*rule.names}) or tuple(rules)
    return ()


def _simple(space: Space, bad: Sequence[Mapping[str, Value]]) -> Iterator[Rule]:
    """Rules of one setting or two, the bounds as wide as these failures allow."""
    numbers = [name for name, parameter in space.parameters.items() if parameter.ordered]
    others = [name for name, parameter in space.parameters.items() if not parameter.ordered]
    for name in space.parameters:
        yield Rule((name,), "!=", (bad[0][name],))
    for first, second in combinations(others, 2):
        yield Rule((first, second), "!=", (bad[0][first], bad[0][second]))
    for name in numbers:
        values = [float(values[name]) for values in bad]
        yield Rule((name,), "<", (min(values),))
        yield Rule((name,), ">", (max(values),))
    for name in (name for name in numbers if _is_whole(space, name)):
        for divisor, value in space.constants.items():
            if divisor != name and _is_whole(space, divisor) and (value != 1 or divisor in space.parameters):
                yield Rule((name, divisor), "%")
    # A fixed width that a number of heads has to divide.
    for name in space.constants:
        if name not in space.parameters and _is_whole(space, name):
            yield from (Rule((name, divisor), "%") for divisor in numbers if _is_whole(space, divisor))


def _of_products(space: Space, bad: Sequence[Mapping[str, Value]]) -> Iterator[Rule]:
    """A product of two settings that is too large, or that a third value has to divide: depth times ratio."""
    for first, second in combinations([name for name, parameter in space.parameters.items() if parameter.ordered], 2):
        yield Rule((first, second), "<", (min(float(values[first]) * float(values[second]) for values in bad),))
    whole = [name for name in space.parameters if _is_whole(space, name)][:_PRODUCTS]
    for first, second in combinations(whole, 2):
        for divisor, value in space.constants.items():
            if divisor not in (first, second) and _is_whole(space, divisor) and value != 1:
                yield Rule((first, second, divisor), "%")


def _is_whole(space: Space, name: str) -> bool:
    value = space.constants.get(name)
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _product(values: Sequence[Value]) -> float:
    product = 1.0
    for value in values:
        product *= float(value)
    return product
