"""Small trainings with drawn data, some milliseconds each on one core: scikit-learn's models and a network of torch.

A family draws its data and which of its settings are turned; it gives the settings as a program states them, and what
a genome is worth: the error or the loss on held-out rows, smaller is better.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.search_spaces import Evaluate

Data = tuple[Any, Any, Any, Any]


def classes(dice: np.random.Generator) -> Data:
    """Rows of classes: 300 to train on and as many to measure with."""
    from sklearn import datasets

    kind, seed = dice.choice(["digits", "cancer", "made", "moons"]), int(dice.integers(10**6))
    if kind == "digits":
        x, y = datasets.load_digits(return_X_y=True)
        x = x + dice.normal(0, 3, x.shape)
    elif kind == "cancer":
        x, y = datasets.load_breast_cancer(return_X_y=True)
        x = x * (1 + dice.normal(0, 0.3, x.shape))
    elif kind == "made":
        x, y = datasets.make_classification(
            600, 20, n_informative=8, n_classes=3, class_sep=0.8, flip_y=0.05, random_state=seed
        )
    else:
        x, y = datasets.make_moons(600, noise=0.25, random_state=seed)
        x = np.hstack([x, dice.normal(0, 1, (600, 4))])
    order = dice.permutation(len(x))[:600]
    half = len(order) // 2
    return x[order[:half]], y[order[:half]], x[order[half:]], y[order[half:]]


def numbers(dice: np.random.Generator) -> Data:
    """Rows of a number: 220 to train on and as many to measure with, in units of its spread."""
    from sklearn import datasets

    x, y = (
        datasets.load_diabetes(return_X_y=True)
        if dice.random() < 0.5
        else datasets.make_friedman1(442, 8, noise=1.0, random_state=int(dice.integers(10**6)))
    )
    order = dice.permutation(len(x))
    x, y = x[order], (y[order] - y.mean()) / y.std()
    return x[:221], y[:221], x[221:], y[221:]


def some(text: str, dice: np.random.Generator) -> str:
    """Most of the lines: each that is marked with ``?`` stays with a chance of 0.7, without its mark."""
    lines = [line for line in text.strip().splitlines() if not line.endswith("?") or dice.random() < 0.7]
    return "".join(line.removesuffix("?").rstrip() + "\n" for line in lines)


def _value(data: Data, make: Callable[[Mapping[str, Any]], Any], *, loss: bool) -> Evaluate:
    """The error on the held-out rows, 1 less the score; ``loss``: the cross entropy instead."""
    x, y, test_x, test_y = data

    @functools.cache
    def value(settings: tuple[tuple[str, Any], ...]) -> float:
        from sklearn.metrics import log_loss

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with np.errstate(all="ignore"):
                model = make(dict(settings)).fit(x, y)
                if loss:
                    result = float(log_loss(test_y, model.predict_proba(test_x), labels=np.unique(y)))
                else:
                    result = 1 - float(model.score(test_x, test_y))
        if not np.isfinite(result) or result > 1e6:
            raise ValueError("the value is no number")
        return result

    return lambda genome: value(tuple(sorted(genome.items())))


def pipeline(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """Scaling, selection, components, random features, a linear model."""
    text = some(
        """
scaler = "none"     # one of none standard minmax quantile
keep = 4            # int [2, 20]
parts = 4           # int [2, 20]
features = 30       # int [5, 120] ?
gamma = 0.01        # log [0.0001, 10.0] ?
C = 1.0             # log [0.0001, 1000.0]
weights = "none"    # one of none balanced ?
intercept = True    # one of True False ?
""",
        dice,
    )

    def make(at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a model of scikit-learn
        from sklearn import (
            decomposition,
            feature_selection,
            kernel_approximation,
            linear_model,
            pipeline,
            preprocessing,
        )

        scalers = {
            "none": "passthrough",
            "standard": preprocessing.StandardScaler(),
            "minmax": preprocessing.MinMaxScaler(),
            "quantile": preprocessing.QuantileTransformer(n_quantiles=50),
        }
        steps: list[Any] = [scalers[at["scaler"]], feature_selection.SelectKBest(k=min(at["keep"], data[0].shape[1]))]
        steps.append(decomposition.PCA(at["parts"], random_state=0))
        if "gamma" in at:
            features = at.get("features", 40)
            steps.append(kernel_approximation.Nystroem(gamma=at["gamma"], n_components=features, random_state=0))
        steps.append(
            linear_model.LogisticRegression(
                C=at["C"],
                class_weight="balanced" if at.get("weights") == "balanced" else None,
                fit_intercept=at.get("intercept", True),
                max_iter=60,
            )
        )
        return pipeline.make_pipeline(*steps)

    data = classes(dice)
    return text, _value(data, make, loss=bool(dice.random() < 0.5))


def support(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """A support vector machine; some settings count with some kernels."""
    text = some(
        """
kernel = "linear"     # one of linear rbf poly sigmoid
C = 1.0               # log [0.001, 10000.0]
gamma = 0.01          # log [1e-05, 10.0]
degree = 3            # int [2, 6] ?
coef0 = 0.0           # float [-2.0, 2.0] ?
scaler = "standard"   # one of none standard minmax ?
shrinking = True      # one of True False ?
""",
        dice,
    )

    def make(at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a model of scikit-learn
        from sklearn import pipeline, preprocessing, svm

        scalers = {
            "none": "passthrough",
            "standard": preprocessing.StandardScaler(),
            "minmax": preprocessing.MinMaxScaler(),
        }
        model = svm.SVC(**{key: value for key, value in at.items() if key != "scaler"}, max_iter=2000)
        return pipeline.make_pipeline(scalers[at.get("scaler", "standard")], model)

    return text, _value(classes(dice), make, loss=False)


def forest(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """A few trees; more leaves than a tree of this depth has fail."""
    text = some(
        """
kind = "forest"         # one of forest extra boosting
trees = 5               # int [2, 20]
depth = 3               # int [1, 10]
leaf = 5                # int [1, 30]
features = 0.5          # float [0.05, 1.0]
rate = 0.1              # log [0.003, 1.0]
criterion = "first"     # one of first second ?
rows = 0.8              # float [0.2, 0.99] ?
leaves = 20             # int [3, 60] ?
""",
        dice,
    )

    def make(at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a model of scikit-learn
        from sklearn import ensemble

        if at.get("leaves", 0) > 2 ** at["depth"]:
            raise ValueError("so many leaves need a deeper tree")
        alike = {
            "n_estimators": at["trees"], "max_depth": at["depth"], "min_samples_leaf": at["leaf"],
            "max_features": at["features"], "max_leaf_nodes": at.get("leaves"), "random_state": 0,
        }  # fmt: skip
        second = at.get("criterion") == "second"
        if at["kind"] == "boosting":
            criterion = "squared_error" if second else "friedman_mse"
            return ensemble.GradientBoostingRegressor(
                learning_rate=at["rate"], subsample=at.get("rows", 0.8), criterion=criterion, **alike
            )
        trees = ensemble.RandomForestRegressor if at["kind"] == "forest" else ensemble.ExtraTreesRegressor
        criterion = "absolute_error" if second and at["trees"] < 5 else "squared_error"
        return trees(bootstrap=True, max_samples=at.get("rows", 0.8), criterion=criterion, **alike)

    return text, _value(numbers(dice), make, loss=False)


def kernel(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """Ridge regression with a kernel."""
    text = some(
        """
kernel = "linear"     # one of linear rbf poly laplacian
alpha = 1.0           # log [1e-05, 100.0]
gamma = 0.01          # log [1e-05, 10.0]
degree = 2.0          # float [1.0, 5.0] ?
coef0 = 1.0           # float [0.0, 3.0] ?
scaler = "standard"   # one of none standard minmax
keep = 5              # int [1, 8]
""",
        dice,
    )

    def make(at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a model of scikit-learn
        from sklearn import feature_selection, kernel_ridge, pipeline, preprocessing

        scalers = {
            "none": "passthrough",
            "standard": preprocessing.StandardScaler(),
            "minmax": preprocessing.MinMaxScaler(),
        }
        select = feature_selection.SelectKBest(feature_selection.f_regression, k=at["keep"])
        model = kernel_ridge.KernelRidge(**{key: value for key, value in at.items() if key not in ("scaler", "keep")})
        return pipeline.make_pipeline(scalers[at["scaler"]], select, model)

    return text, _value(numbers(dice), make, loss=False)


def gradient(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """A linear model by stochastic gradient descent: which settings count depends on loss, penalty and schedule."""
    text = some(
        """
loss = "hinge"            # one of hinge log_loss modified_huber perceptron
penalty = "l2"            # one of l2 l1 elasticnet ?
alpha = 0.0001            # log [1e-06, 1.0]
mix = 0.15                # float [0.0, 1.0] ?
schedule = "optimal"      # one of optimal constant invscaling adaptive
rate = 0.01               # log [0.0001, 10.0]
power = 0.5               # float [0.1, 1.0] ?
average = False           # one of False True ?
rounds = 5                # int [1, 20]
scaler = "none"           # one of none standard minmax
bend = 2.0                # float [1.0, 3.0] ?
""",
        dice,
    )

    def make(at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a model of scikit-learn
        from sklearn import linear_model, pipeline, preprocessing

        scalers = {
            "none": "passthrough",
            "standard": preprocessing.StandardScaler(),
            "minmax": preprocessing.MinMaxScaler(),
        }
        bend = preprocessing.FunctionTransformer(lambda x: np.sign(x) * np.abs(x) ** (at.get("bend", 2.0) / 2))
        model = linear_model.SGDClassifier(
            loss=at["loss"], penalty=at.get("penalty", "l2"), alpha=at["alpha"], l1_ratio=at.get("mix", 0.15),
            learning_rate=at["schedule"], eta0=at["rate"], power_t=at.get("power", 0.5),
            average=at.get("average", False), max_iter=at["rounds"], tol=None, random_state=0,
        )  # fmt: skip
        return pipeline.make_pipeline(scalers[at["scaler"]], bend, model)

    return text, _value(classes(dice), make, loss=False)


def network(dice: np.random.Generator) -> tuple[str, Evaluate]:
    """A small network of torch; a wide deep one is over its budget and fails."""
    text = some(
        """
optimiser = "sgd"     # one of sgd adam rmsprop adagrad
rate = 0.01           # log [0.0001, 3.0]
momentum = 0.5        # float [0.0, 0.99] ?
decay = 0.001         # log [1e-06, 1.0] ?
activation = "relu"   # one of relu tanh sigmoid gelu
width = 16            # int [2, 64]
layers = 1            # int [1, 4]
batch = 32            # int [8, 128]
schedule = "none"     # one of none linear cosine ?
scale = 1.0           # log [0.1, 10.0] ?
norm = False          # one of False True ?
smooth = 0.0          # float [0.0, 0.5] ?
""",
        dice,
    )
    x, y, test_x, test_y = classes(dice)
    centre, spread = x.mean(0), x.std(0) + 1e-9
    steps, seed = 60, int(dice.integers(1000))

    @functools.cache
    def value(settings: tuple[tuple[str, Any], ...]) -> float:
        import torch

        at = dict(settings)
        if at["width"] * at["layers"] > 150:
            raise ValueError("over its budget")
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        rows, labels = torch.tensor((x - centre) / spread).float(), torch.tensor(y)
        bends = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "sigmoid": torch.nn.Sigmoid, "gelu": torch.nn.GELU}
        parts: list[torch.nn.Module] = []
        size = rows.shape[1]
        for _ in range(at["layers"]):
            parts += [torch.nn.Linear(size, at["width"]), bends[at["activation"]]()]
            parts += [torch.nn.LayerNorm(at["width"])] if at.get("norm") else []
            size = at["width"]
        model = torch.nn.Sequential(*parts, torch.nn.Linear(size, int(labels.max()) + 1))
        with torch.no_grad():
            for weights in model.parameters():
                weights.mul_(at.get("scale", 1.0))
        decay, momentum = at.get("decay", 0.0), at.get("momentum", 0.0)
        optimisers: dict[str, Callable[[], torch.optim.Optimizer]] = {
            "sgd": lambda: torch.optim.SGD(model.parameters(), at["rate"], momentum=momentum, weight_decay=decay),
            "adam": lambda: torch.optim.Adam(model.parameters(), at["rate"], (momentum, 0.99), weight_decay=decay),
            "rmsprop": lambda: torch.optim.RMSprop(model.parameters(), at["rate"], momentum=momentum / 2),
            "adagrad": lambda: torch.optim.Adagrad(model.parameters(), at["rate"], weight_decay=decay),
        }
        optimiser = optimisers[at["optimiser"]]()
        loss_of = torch.nn.CrossEntropyLoss(label_smoothing=at.get("smooth", 0.0))
        for step in range(steps):
            left = 1 - step / steps
            factors = {"none": 1.0, "linear": left, "cosine": 0.5 - 0.5 * np.cos(np.pi * left)}
            for group in optimiser.param_groups:
                group["lr"] = at["rate"] * float(factors[at.get("schedule", "none")])
            batch = torch.randint(len(rows), (at["batch"],))
            optimiser.zero_grad()
            loss_of(model(rows[batch]), labels[batch]).backward()
            optimiser.step()
        with torch.no_grad():
            out = model(torch.tensor((test_x - centre) / spread).float())
            result = float(torch.nn.functional.cross_entropy(out, torch.tensor(test_y)))
        if not np.isfinite(result) or result > 1e6:
            raise ValueError("the training diverged")
        return result

    return text, lambda genome: value(tuple(sorted(genome.items())))


FAMILIES: dict[str, Callable[[np.random.Generator], tuple[str, Evaluate]]] = {
    "pipeline": pipeline,
    "support": support,
    "forest": forest,
    "kernel": kernel,
    "gradient": gradient,
    "network": network,
}
"""The settings and the value of a training by the name of its family, drawn from a generator."""
