"""Looking at a stranger's checkpoint before anything loads it: safetensors only, and not more than the task allows."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

_MOST_TENSORS = 10_000
# Names, shapes and notes tell the model something too: a tensor's entry may take so much, and the rest.
_ENTRY_BYTES = 256
_NOTES_BYTES = 1024
_LENGTH_BYTES = 8


def fault_of_weights(path: Path, most_values: int) -> str | None:
    """What is wrong with a checkpoint, as a sentence, or None.

    Only its header is read: the library refuses lengths and offsets that don't fit the file, holes, overlaps and
    unknown types. Whether the numbers are finite shows in what the model answers.
    """
    try:
        header = _header_bytes(path)
        with safe_open(path, framework="numpy") as weights:
            names = list(weights.keys())
            if len(names) > _MOST_TENSORS:
                return f"the checkpoint has {len(names)} tensors; {_MOST_TENSORS} are allowed"
            values = sum(math.prod(weights.get_slice(name).get_shape()) for name in names)
            if header > _NOTES_BYTES + _ENTRY_BYTES * len(names):
                return f"the checkpoint's header has {header} bytes, far more than its tensors need"
    except (SafetensorError, OSError, ValueError) as error:
        return f"the checkpoint is not safetensors: {' '.join(str(error).split())[:200]}"
    if values > most_values:
        return f"the checkpoint holds {values} numbers; the task allows {most_values}"
    return None


def shuffled_weights(content: bytes, seed: int) -> bytes:
    """A checkpoint with the numbers of each tensor in another order: what the model learned is gone.

    ``content`` is a checkpoint without a fault, see :func:`fault_of_weights`.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    entries, numbers = json.loads(content[_LENGTH_BYTES:start]), bytearray(content)
    drawn = np.random.Generator(np.random.PCG64(seed))
    for name in sorted(entries.keys() - {"__metadata__"}):
        first, end = (start + offset for offset in entries[name]["data_offsets"])
        count = math.prod(entries[name]["shape"])
        if count > 1 and (end - first) % count == 0:
            values = np.frombuffer(numbers, np.uint8)[first:end].reshape(count, -1)
            numbers[first:end] = values[drawn.permutation(count)].tobytes()
    return bytes(numbers)


def _header_bytes(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_LENGTH_BYTES), "little")
