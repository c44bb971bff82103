"""What a program printed about itself, for tasks whose metric is read from the output. Pure."""

from __future__ import annotations

import math
import re

MAX_KEYS = 64  # as many as a run record holds

_KEY = r"(?P<key>[A-Za-z_][A-Za-z0-9_./ -]{0,63}?)"
_NUMBER = r"(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*|(?=\.\d))(?:\.\d*)?(?:[eE][-+]?\d+)?)"
_UNIT = r"(?:[A-Za-z%][A-Za-z0-9%/^*.-]*)?"
_LINE = re.compile(rf"\s*{_KEY}\s*[:=]\s*{_NUMBER}\s*{_UNIT}\s*")


def parse_summary(text: str, metric_name: str) -> dict[str, float]:
    """The numbers in the summary that ends ``text``: lines ``key: number`` after the last line that is exactly ``---``.

    Spaces, a unit after the number and commas between thousands are tolerated; lines of another form are passed over.
    Of a key given twice, the later number holds. Empty when there is no summary or it has no finite ``metric_name``.
    The form is that of karpathy/autoresearch.
    """
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.rstrip() == "---"]
    numbers: dict[str, float] = {}
    for line in lines[starts[-1] + 1 :] if starts else ():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        value = float(match["number"].replace(",", "").replace("_", ""))
        if math.isfinite(value) and (len(numbers) < MAX_KEYS or match["key"] in {metric_name, *numbers}):
            numbers[match["key"]] = value
    return numbers if metric_name in numbers else {}
