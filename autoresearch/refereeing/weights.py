"""Looking at a stranger's checkpoint before anything loads it: safetensors only, and not more than the task allows."""

from __future__ import annotations

import math
from pathlib import Path

from safetensors import SafetensorError, safe_open

_MOST_TENSORS = 10_000


def fault_of_weights(path: Path, most_values: int) -> str | None:
    """What is wrong with a checkpoint, as a sentence, or None.

    Only its header is read: the library refuses lengths and offsets that don't fit the file, holes, overlaps and
    unknown types. Whether the numbers are finite shows in what the model answers.
    """
    try:
        with safe_open(path, framework="numpy") as weights:
            names = list(weights.keys())
            if len(names) > _MOST_TENSORS:
                return f"the checkpoint has {len(names)} tensors; {_MOST_TENSORS} are allowed"
            values = sum(math.prod(weights.get_slice(name).get_shape()) for name in names)
    except (SafetensorError, OSError, ValueError) as error:
        return f"the checkpoint is not safetensors: {' '.join(str(error).split())[:200]}"
    if values > most_values:
        return f"the checkpoint holds {values} numbers; the task allows {most_values}"
    return None
