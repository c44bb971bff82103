"""Searches that only the benchmark ``unseen`` compares with: SMAC3 and BoTorch, where they are installed."""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Parameter, Space
from autoresearch.propose.search.moves import anywhere


class Smac:
    """SMAC3's search of hyperparameters: random forests, failures told as crashed."""

    def __init__(self, space: Space, seed: int, budget: int) -> None:
        import ConfigSpace
        import smac

        logging.getLogger("smac").setLevel(logging.ERROR)
        logging.getLogger("dask").setLevel(logging.ERROR)
        self._smac, self._space = smac, space
        settings = ConfigSpace.ConfigurationSpace(seed=seed)
        for name, parameter in space.parameters.items():
            kind, low, high = parameter.range.kind, parameter.range.low, parameter.range.high
            if kind == "one of":
                settings.add(ConfigSpace.CategoricalHyperparameter(name, list(parameter.range.choices)))
            elif kind == "int":
                settings.add(ConfigSpace.UniformIntegerHyperparameter(name, int(low), int(high)))
            else:
                settings.add(ConfigSpace.UniformFloatHyperparameter(name, low, high, log=kind == "log"))
        self._first: Any = ConfigSpace.Configuration(settings, values=space.default())
        folder = Path(tempfile.mkdtemp())
        scenario = smac.Scenario(settings, deterministic=True, n_trials=budget + 1, seed=seed, output_directory=folder)
        facade = smac.HyperparameterOptimizationFacade
        self._search: Any = facade(scenario, _unused, overwrite=True, logging_level=False)
        self._asked: list[tuple[Genome, Any]] = []
        self._worst = -math.inf

    def ask(self) -> Genome:
        """The first point, then what SMAC asks for."""
        if self._first is not None:
            info, self._first = self._smac.runhistory.TrialInfo(self._first, seed=0), None
        else:
            info = self._search.ask()
        genome = {name: info.config[name] for name in self._space.parameters}
        genome = {name: value.item() if isinstance(value, np.generic) else value for name, value in genome.items()}
        self._asked.append((genome, info))
        return genome

    def tell(self, genome: Genome, value: float | None) -> None:
        """The cost of its trial; a crash has the worst cost so far."""
        place = next(number for number, (other, _) in enumerate(self._asked) if other == genome)
        self._worst = max(self._worst, -math.inf if value is None else value)
        of = self._smac.runhistory
        status = of.StatusType.CRASHED if value is None else of.StatusType.SUCCESS
        cost = self._worst if value is None else value
        self._search.tell(self._asked.pop(place)[1], of.TrialValue(cost=cost, status=status))


class Botorch:
    """BoTorch's Gaussian process with the logarithm of expected improvement; words are one number for each choice.

    It begins with the first point and ten from anywhere. A failure is told as the worst value so far.
    """

    RANDOM = 10

    def __init__(self, space: Space, seed: int) -> None:
        self._parameters = list(space.parameters.values())
        self._space, self._seed, self._draws = space, seed, Draws(b"botorch", str(seed).encode())
        self._told: list[tuple[Genome, float | None]] = []
        self._waiting: list[Genome] = []
        self._asked = 0

    def ask(self) -> Genome:
        """The next genome; those that wait are pending points."""
        self._asked += 1
        if self._asked == 1:
            genome = self._space.default()
        elif self._asked <= 1 + self.RANDOM:
            genome = anywhere(self._parameters, self._draws)
        else:
            genome = self._best()
        self._waiting.append(genome)
        return genome

    def tell(self, genome: Genome, value: float | None) -> None:
        """What a genome is worth."""
        self._waiting.remove(genome)
        self._told.append((genome, value))

    def _best(self) -> Genome:
        import torch
        from botorch.acquisition.logei import qLogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Standardize
        from botorch.optim.optimize import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        torch.manual_seed(1000 * self._seed + self._asked)
        worst = max(value for _, value in self._told if value is not None)
        x = torch.tensor([self._row(genome) for genome, _ in self._told], dtype=torch.double)
        y = torch.tensor([[-(worst if value is None else value)] for _, value in self._told], dtype=torch.double)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SingleTaskGP(x, y, outcome_transform=Standardize(m=1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            pending = torch.tensor([self._row(genome) for genome in self._waiting], dtype=torch.double)
            worth = qLogExpectedImprovement(model, y.max(), X_pending=pending if len(pending) else None)
            bounds = torch.tensor([[0.0] * x.shape[1], [1.0] * x.shape[1]], dtype=torch.double)
            place, _ = optimize_acqf(worth, bounds, q=1, num_restarts=4, raw_samples=128)
        return self._genome(place[0].tolist())

    def _row(self, genome: Genome) -> list[float]:
        row: list[float] = []
        for parameter in self._parameters:
            value = genome[parameter.name]
            row += [parameter.place(value)] if parameter.ordered else _switches(parameter, value)
        return row

    def _genome(self, row: list[float]) -> Genome:
        made: Genome = {}
        for parameter in self._parameters:
            if parameter.ordered:
                made[parameter.name] = parameter.at(row.pop(0))
            else:
                choices = parameter.range.choices
                part, row = row[: len(choices)], row[len(choices) :]
                made[parameter.name] = choices[part.index(max(part))]
        return made


def _switches(parameter: Parameter, value: object) -> list[float]:
    return [float(value == choice) for choice in parameter.range.choices]


def _unused(_: object, seed: int = 0) -> float:
    """SMAC wants a function, though values are told."""
    raise NotImplementedError(seed)
