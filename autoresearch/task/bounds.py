"""The value that a metric can't pass, by the words of its name: 0 for losses, 1 or 100 for accuracies. Pure.

>>> bound_of("val_bpb", "minimize", [1.01])
Bound(value=0.0, counted=False)
>>> bound_of("test accuracy", "maximize", [93.4])
Bound(value=100.0, counted=True)
>>> bound_of("elbo_loss", "minimize", [-12.5])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from autoresearch.task.metric_names import words_of
from autoresearch.text import MAXIMIZE, MINIMIZE


class Bound(NamedTuple):
    """``counted``: a small test set can reach it honestly, since the value is a share of a count."""

    value: float
    counted: bool


# By direction and bound, the words of names. Of a name the last word that is here decides.
_WORDS: dict[tuple[str, float, bool], str] = {
    (MINIMIZE, 0.0, False): """
        loss losses mse mae rmse rmsle msle mape smape mpe medae rmsd msd squared deviation bpb bpc bpp bits brier
        crossentropy entropy xent xe ce bce logloss hinge huber regret fid kid lpips chamfer hausdorff distance ece nats
    """,
    (MINIMIZE, 0.0, True): "error errors err wer cer ter mer eer errorrate misclassification",
    (MINIMIZE, 1.0, False): "perplexity ppl",
    (MAXIMIZE, 1.0, True): """
        accuracy acc f1 fscore auc auroc auprc roc rocauc prauc precision recall iou miou jaccard dice map ap ndcg
        mrr kappa mcc
        specificity sensitivity top1 top5 em exactmatch success hit purity nmi ari
    """,
    (MAXIMIZE, 1.0, False): "r2 ssim pearson spearman correlation nse",
}
_BOUNDS = {
    (direction, word): Bound(value, counted)
    for (direction, value, counted), words in _WORDS.items()
    for word in words.split()
}
# With one of these words a value may have any sign or size.
_UNBOUNDED = set("nll elbo likelihood loglikelihood density negative neg log reward return energy flow flows".split())  # noqa: SIM905
# Such an error is no share of a count.
_AVERAGED = set("mean squared absolute abs square sq root median relative prediction percentage".split())  # noqa: SIM905


def bound_of(metric: str, direction: str, values: Sequence[float]) -> Bound | None:
    """The bound of a metric; None where its name says nothing, or where values that it had contradict it.

    ``values`` are some of it. Without one nobody knows whether a share is a percentage, or a loss can be negative.
    """
    words = words_of(metric)
    if not _UNBOUNDED.isdisjoint(words):
        return None
    bound = next((_BOUNDS[direction, word] for word in reversed(words) if (direction, word) in _BOUNDS), None)
    if bound is None:
        return None
    if bound.counted and direction == MINIMIZE and not _AVERAGED.isdisjoint(words):
        bound = bound._replace(counted=False)
    if direction == MAXIMIZE:
        if not values:
            return None
        bound = bound._replace(value=100.0) if max(values) > 1 else bound
        return bound if max(values) <= bound.value else None
    if not values and not _UNSIGNED.isdisjoint(words):
        return bound
    return bound if values and min(values) >= bound.value else None


# These are never negative, whatever the program.
_UNSIGNED = set("mse mae rmse rmsle bpb bpc bits perplexity ppl wer cer err error brier".split())  # noqa: SIM905
