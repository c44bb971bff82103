"""The spaces on which searches are compared: functions of BBOB, and models of scikit-learn on its bundled data.

A space is a program's constants with their ranges, as the built-in search reads them.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autoresearch.propose.program.ranges import Value
from autoresearch.propose.program.space import Space, space_of

Evaluate = Callable[[Mapping[str, Any]], float]
"""A genome's value, smaller is better. Raises ValueError where the trial fails."""


@dataclass(frozen=True, slots=True)
class Question:
    """A space with what its points are worth; ``optimum`` where it is known."""

    name: str
    group: str
    space: Space
    evaluate: Evaluate
    optimum: float | None = None


CHOICES = (-4.0, -1.5, 0.0, 1.5, 4.0)
# Every fifth coordinate is logarithmic, whole, or one of some values; in the function's own terms all go from -5 to 5.
_KINDS: dict[int, tuple[str, Callable[[Any], float]]] = {
    1: ("1.0  # log [0.001, 1000.0]", lambda value: 5 / 3 * math.log10(value)),
    2: ("0  # int [-50, 50]", lambda value: value / 10),
    3: (f"0.0  # one of {' '.join(map(str, CHOICES))}", float),
}
_FLOAT: tuple[str, Callable[[Any], float]] = ("0.5  # float [-5.0, 5.0]", float)


def bbob(number: int, dimensions: int, *, holes: bool) -> Question:
    """One of the 24 functions (Hansen et al. 2021, https://doi.org/10.1080/10556788.2020.1808977), mixed coordinates.

    With ``holes`` every trial fails in a part of the space.
    """
    import ioh

    function: Any = ioh.get_problem(number, instance=1, dimension=dimensions)
    kinds = {f"X{at}": _KINDS.get(at % 5, _FLOAT) for at in range(dimensions)}

    def evaluate(genome: Mapping[str, Any]) -> float:
        point = [read(genome[name]) for name, (_, read) in kinds.items()]
        if holes and point[0] + point[1] > 1.0:
            raise ValueError("a trial that fails")
        return float(function(point))

    group = "holes" if holes else "bbob"
    space = space_of("\n".join(f"{name} = {text}" for name, (text, _) in kinds.items()))
    return Question(f"{group}-{number}-{dimensions}", group, space, evaluate, function.optimum.y)


SVM = """
C = 1.0         # log [0.001, 1000.0]
gamma = 0.01    # log [1e-05, 10.0]
kernel = "rbf"  # one of rbf poly sigmoid linear
degree = 3      # int [2, 5]
"""
FOREST = """
n_estimators = 20     # int [2, 40]
max_depth = 4         # int [1, 12]
min_samples_leaf = 1  # int [1, 20]
max_features = 0.5    # float [0.05, 1.0]
bootstrap = True      # one of True False
"""
BOOSTING = """
n_estimators = 20    # int [5, 60]
learning_rate = 0.1  # log [0.001, 1.0]
max_depth = 3        # int [1, 6]
subsample = 1.0      # float [0.2, 1.0]
"""
NEIGHBOURS = """
n_neighbors = 5      # int [1, 60]
weights = "uniform"  # one of uniform distance
p = 2.0              # float [1.0, 5.0]
"""
ELASTIC = """
alpha = 1.0     # log [1e-05, 100.0]
l1_ratio = 0.5  # float [0.0, 1.0]
"""
NETWORK = """
hidden_layer_sizes = 16     # int [1, 64]
alpha = 0.0001              # log [1e-06, 10.0]
learning_rate_init = 0.001  # log [0.0001, 1.0]
solver = "adam"             # one of adam sgd
momentum = 0.9              # float [0.0, 0.99]
max_iter = 30               # int [5, 60]
"""


def models() -> list[Question]:
    """Six models of scikit-learn by the error of three folds, 1 less accuracy or R²; some settings count for some."""
    from sklearn import datasets, ensemble, linear_model, neighbors, neural_network, svm

    warnings.filterwarnings("ignore", module="sklearn")
    digits, cancer, wine, diabetes = (
        load(return_X_y=True)
        for load in (datasets.load_digits, datasets.load_breast_cancer, datasets.load_wine, datasets.load_diabetes)
    )
    few = digits[0][:600], digits[1][:600]
    fixed = functools.partial
    return [
        _model("svm", SVM, few, svm.SVC),
        _model("forest", FOREST, cancer, fixed(ensemble.RandomForestClassifier, random_state=0)),
        _model("boosting", BOOSTING, diabetes, fixed(ensemble.GradientBoostingRegressor, random_state=0)),
        _model("neighbours", NEIGHBOURS, wine, neighbors.KNeighborsClassifier),
        _model("elastic", ELASTIC, diabetes, fixed(linear_model.ElasticNet, max_iter=500)),
        _model("network", NETWORK, wine, fixed(neural_network.MLPClassifier, random_state=0)),
    ]


def _model(name: str, text: str, data: Any, make: Callable[..., Any]) -> Question:  # noqa: ANN401 - numpy arrays
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    @functools.cache
    def value(settings: tuple[tuple[str, Value], ...]) -> float:
        model = make_pipeline(StandardScaler(), make(**dict(settings)))
        try:
            scores = cross_val_score(model, *data, cv=3, error_score="raise")
        except (FloatingPointError, OverflowError) as error:
            raise ValueError(str(error)) from error
        return float(1 - scores.mean())

    return Question(name, "models", space_of(text), lambda genome: value(tuple(sorted(genome.items()))))
