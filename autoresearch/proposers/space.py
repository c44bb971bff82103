"""The search space around one base source: its constants with their ranges, and the patches that apply to it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from autoresearch.proposers import catalogue
from autoresearch.proposers.constraints import assertions, divides, holds
from autoresearch.proposers.edits import EditError, constants, set_constants
from autoresearch.proposers.known_names import divisions
from autoresearch.proposers.parameters import Parameter, constant_parameter, patch_parameter
from autoresearch.proposers.ranges import Value
from autoresearch.tasks import source_digest

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
    admitted: dict[tuple[str, type, object], Value | None] = field(default_factory=dict, repr=False, compare=False)
    """What values from elsewhere are here, by gene, type and value: thousands of runs have few different ones."""

    def default(self) -> Genome:
        """The genome of the base source itself."""
        return {name: parameter.default for name, parameter in self.parameters.items()}

    def read(self, genome: Mapping[str, object]) -> Genome:
        """A genome from elsewhere, as far as it makes sense here; the base's own values for the rest."""
        known = self.default()
        for name, parameter in self.parameters.items():
            if name in genome and (value := self._admit(parameter, genome[name])) is not None:
                known[name] = value
        return known

    def _admit(self, parameter: Parameter, value: object) -> Value | None:
        if not isinstance(value, bool | int | float | str):
            return parameter.admit(value)
        asked = (parameter.name, type(value), value)
        if asked not in self.admitted:
            if len(self.admitted) >= ADMITTED_MAX:
                self.admitted.clear()
            self.admitted[asked] = parameter.admit(value)
        return self.admitted[asked]

    def allows(self, genome: Mapping[str, Value]) -> bool:
        """Whether the program's own assertions hold for this genome."""
        return holds(self.conditions, {**self.constants, **genome})

    def genome_of(self, program: str, like: Mapping[str, Value]) -> Genome | None:
        """The genome of a program that changes constants of the base alone; None when it changes anything else.

        Its patches are those of the genome ``like``: that of the program that was edited.
        """
        genome, found = self.read(like), constants(program)
        for name, parameter in self.parameters.items():
            if not name.startswith("+"):
                value = parameter.admit(found[name].value) if name in found else None
                if value is None:
                    return None
                genome[name] = value
        built = self.build(genome)
        return genome if built is not None and source_digest(built) == source_digest(program) else None

    def build(self, genome: Mapping[str, Value]) -> str | None:
        """The program of a genome, or None when its patches do not fit together."""
        patches = [name[1:] for name, value in genome.items() if name.startswith("+") and value]
        changed = {
            name: genome[name]
            for name, parameter in self.parameters.items()
            if not name.startswith("+") and genome[name] != parameter.default
        }
        try:
            return set_constants(catalogue.apply(self.source, patches), changed)
        except EditError:
            return None


def space_of(source: str) -> Space:
    """Read the search space of a source: empty when it has no number that can be turned and no patch applies."""
    known = constants(source)
    patches = [patch_parameter(name) for name in catalogue.offered(source)]
    turned = [(constant, parameter) for constant in known.values() if (parameter := constant_parameter(constant))]
    room = GENES_MAX - len(patches)
    kept = {id(parameter) for _, parameter in sorted(turned, key=lambda one: not one[0].by_comment)[:room]}
    parameters = [parameter for _, parameter in turned if id(parameter) in kept] + patches
    values = {name: constant.value for name, constant in known.items()}
    conditions = assertions(source)
    conditions += [test for pair in divisions(known) if holds([test := divides(*pair)], values)]
    return Space(source, {parameter.name: parameter for parameter in parameters}, values, tuple(conditions))
