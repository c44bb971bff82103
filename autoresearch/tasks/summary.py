"""What a program printed about itself, for tasks whose metric is read from the output. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from autoresearch.direction import MAXIMIZE, MINIMIZE

MAX_KEYS = 64  # as many as a run record holds
MAX_KEY_CHARACTERS = 64
# What a program's result is called, the likelier names first; of some of them more is better.
_RESULTS = (
    *("val_bpb", "val_", "test_", "accuracy", "acc", "f1", "auc", "score", "reward", "r2", "loss", "perplexity", "ppl"),
    *("rmse", "mse", "mae", "error", "latency", "throughput", "time"),
)
_MORE = ("accuracy", "acc", "f1", "auc", "score", "reward", "return", "r2", "throughput", "precision", "recall")
_LESS = ("loss", "error", "bpb", "latency", "time")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}")

_KEY = r"(?P<key>[A-Za-z_][A-Za-z0-9_./ -]{0,63}?)"
_NUMBER = r"(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*|(?=\.\d))(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_UNIT = r"(?:[A-Za-z%][A-Za-z0-9%/^*.-]*)?"
_LINE = re.compile(rf"\s*{_KEY}\s*[:=]\s*{_NUMBER}\s*{_UNIT}\s*")


def parse_summary(text: str, metric_name: str) -> dict[str, float]:
    """The numbers that a program printed: lines ``key: number``, or JSON objects of numbers, one a line.

    Those after the last line that is exactly ``---``, as in karpathy/autoresearch; without such a line all of them.
    Spaces, a unit after the number and commas between thousands are tolerated; lines of another form are passed over.
    Of a key given twice, the later number holds. Empty when there is no finite ``metric_name`` among them.
    """
    numbers: dict[str, float] = {}
    for key, value in _printed(text):
        if len(numbers) < MAX_KEYS or key in {metric_name, *numbers}:
            numbers[key] = value
    return numbers if metric_name in numbers else {}


def guess_metric(text: str) -> tuple[str, float] | None:
    """The number that a program most likely wants to be judged by: one with a well-known name, else the last one."""
    found = {key: value for key, value in _printed(text) if _NAME.fullmatch(key)}
    for known in _RESULTS:
        for key in reversed(found):
            if known in key.lower():
                return key, found[key]
    return next(reversed(found.items()), None)


def guess_direction(metric_name: str) -> str:
    """Whether less or more of a metric is better, by its name."""
    name = metric_name.lower()
    is_more = any(known in name for known in _MORE) and not any(known in name for known in _LESS)
    return MAXIMIZE if is_more else MINIMIZE


def _printed(text: str) -> Iterator[tuple[str, float]]:
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.rstrip() == "---"]
    for line in lines[starts[-1] + 1 :] if starts else lines:
        if line.lstrip().startswith("{"):
            yield from _in_json(line)
        elif match := _LINE.fullmatch(line):
            value = float(match["number"].replace(",", "").replace("_", ""))
            if math.isfinite(value):
                yield match["key"], value


def _in_json(line: str) -> Iterator[tuple[str, float]]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return
    for key, value in found.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
            yield str(key)[:MAX_KEY_CHARACTERS], float(value)
