"""The bound of a metric, by the words of its name."""

import pytest

from autoresearch.task.bounds import Bound, bound_of


@pytest.mark.parametrize(
    ("metric", "direction", "values", "bound"),
    [
        ("val_bpb", "minimize", [], 0.0),
        ("valLoss", "minimize", [0.7], 0.0),
        ("eval/mean_squared_error", "minimize", [12.0], 0.0),
        ("word-error-rate.WER", "minimize", [0.2], 0.0),
        ("Perplexity", "minimize", [40.0], 1.0),
        ("log_loss", "minimize", [0.4], 0.0),
        ("accuracy (test)", "maximize", [0.93], 1.0),
        ("testAccuracy", "maximize", [93.4], 100.0),
        ("macro avg F1", "maximize", [0.5], 1.0),
        ("ROC-AUC", "maximize", [0.5], 1.0),
        ("R2_score", "maximize", [-2.0], 1.0),
        ("top1", "maximize", [71.2], 100.0),
    ],
)
def test_names_of_the_field_have_their_bound(metric, direction, values, bound):
    assert bound_of(metric, direction, values).value == bound


@pytest.mark.parametrize(
    ("metric", "direction", "values"),
    [
        ("loss", "minimize", [-3.2]),  # of a density
        ("loss", "minimize", []),
        ("elbo_loss", "minimize", [12.0]),
        ("nll", "minimize", [1.0]),
        ("neg_mean_squared_error", "maximize", [-1.0]),
        ("accuracy", "maximize", []),  # a percentage or not
        ("accuracy", "maximize", [1234.0]),
        ("glossary", "minimize", [1.0]),  # words, never parts of them
        ("terror_index", "minimize", [1.0]),
        ("macrophages", "maximize", [0.1]),
        ("score", "maximize", [0.5]),
        ("episode_reward", "maximize", [20.0]),
        ("seconds", "minimize", [20.0]),
        ("accuracy", "minimize", [0.5]),
        ("", "minimize", [0.5]),
    ],
)
def test_other_names_and_values_that_contradict_have_none(metric, direction, values):
    assert bound_of(metric, direction, values) is None


def test_only_shares_of_a_count_are_reached_by_small_test_sets():
    assert bound_of("error", "minimize", [0.1]) == Bound(0.0, counted=True)
    assert bound_of("mean_absolute_error", "minimize", [0.1]) == Bound(0.0, counted=False)
