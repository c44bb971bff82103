"""Which parameters a question speaks of."""

import pytest

from autoresearch.propose.program.known_names import named_in

NAMES = [
    "LR",
    "BATCH_SIZE",
    "WEIGHT_DECAY",
    "EMA_DECAY",
    "Config.dropout",
    "+bigram",
    "warmupFraction",
    "X",
    "--max-depth",
]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("which batch sizes were tried?", ["BATCH_SIZE"]),
        ("what learning rate is best", ["LR"]),
        ("is WEIGHT_DECAY of 0.1 good?", ["WEIGHT_DECAY"]),
        ("which weight decays failed", ["WEIGHT_DECAY"]),
        ("did bigrams help", ["+bigram"]),
        ("does dropout help, or more max depth?", ["--max-depth", "Config.dropout"]),
        ("what of x", ["X"]),
        ("what helped most?", []),
        ("", []),
        ("🙂 ((", []),
    ],
)
def test_parameters_are_found_by_their_words_and_by_common_ones(question, named):
    assert named_in(question, NAMES) == named
