"""The search space around one base source: its declared constants, and the patches that apply to it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from autoresearch.proposers import catalogue
from autoresearch.proposers.constraints import assertions, holds
from autoresearch.proposers.edits import Constant, EditError, Value, constants, set_constants
from autoresearch.proposers.genes import Gene, constant_gene, patch_gene

Genome = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Space:
    """A base source with its genes, in the order of the file, patches last."""

    source: str
    genes: dict[str, Gene]
    constants: dict[str, Value]
    conditions: tuple[ast.expr, ...]

    def default(self) -> Genome:
        """The genome of the base source itself."""
        return {name: gene.default for name, gene in self.genes.items()}

    def read(self, genome: Mapping[str, object]) -> Genome:
        """A genome from elsewhere, as far as it makes sense here; the base's own values for the rest."""
        known = self.default()
        for name, gene in self.genes.items():
            if name in genome and (value := gene.admit(genome[name])) is not None:
                known[name] = value
        return known

    def allows(self, genome: Mapping[str, Value]) -> bool:
        """Whether the program's own assertions hold for this genome."""
        return holds(self.conditions, {**self.constants, **genome})

    def build(self, genome: Mapping[str, Value]) -> str | None:
        """The program of a genome, or None when its patches do not fit together."""
        patches = [name[1:] for name, value in genome.items() if name.startswith("+") and value]
        changed = {
            name: genome[name]
            for name, gene in self.genes.items()
            if not name.startswith("+") and genome[name] != gene.default
        }
        try:
            return set_constants(catalogue.apply(self.source, patches), changed)
        except EditError:
            return None


def space_of(source: str) -> Space:
    """Read the search space of a source: empty when it declares no ranges and no patch applies."""
    known = constants(source)
    genes = [gene for constant in known.values() if (gene := constant_gene(constant)) is not None]
    genes += [patch_gene(name) for name in catalogue.offered(source)]
    conditions = tuple(assertions(source) + assertions(_known_conditions(known)))
    values = {name: constant.value for name, constant in known.items()}
    return Space(source, {gene.name: gene for gene in genes}, values, conditions)


def _known_conditions(known: Mapping[str, Constant]) -> str:
    """The conditions of the catalogue, after the constants they speak about (left out where one is missing)."""
    lines = [f"{name} = {constant.value!r}\n" for name, constant in known.items()]
    return "".join(lines) + catalogue.KNOWN_CONDITIONS
