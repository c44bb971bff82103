"""How two sources differ, bounded in time whatever strangers wrote into them. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

# difflib is cubic in the worst case: text made for it takes 7 s at 4,000 lines and under a second at 2,000.
MATCHED_LINES = 2_000


def unified_diff(old: str, new: str, *, old_name: str, new_name: str) -> str:
    """The unified diff of two texts, empty when they are equal; sources too long to match are replaced as a whole."""
    # Not splitlines(): a form feed or a Unicode line separator inside a line is no end of line to Python or to patch.
    a, b = (text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else [] for text in (old, new))
    if a == b:
        return ""
    if max(len(a), len(b)) > MATCHED_LINES:
        head = [f"--- {old_name}", f"+++ {new_name}", f"@@ -{_span(a)} +{_span(b)} @@"]
        return "\n".join([*head, *("-" + line for line in a), *("+" + line for line in b)]) + "\n"
    return "\n".join(difflib.unified_diff(a, b, old_name, new_name, lineterm="")) + "\n"


def genome_changes(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, list[object]]:
    """The constants that differ, each as ``[old, new]``; one that is missing on a side is None there."""
    names = [*old, *(name for name in new if name not in old)]
    pairs = {name: [old.get(name), new.get(name)] for name in names}
    # True equals 1 in Python, and is another constant in a source.
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1] or type(pair[0]) is not type(pair[1])}


def _span(lines: list[str]) -> str:
    return f"{1 if lines else 0},{len(lines)}"
