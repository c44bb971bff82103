"""What components have learned, in files: structure as JSON, arrays as safetensors. Nothing in them can run as code."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from autoresearch.errors import UsageError
from autoresearch.sanitise import one_line

_MARK = "$"
_DEEPEST = 64


def save_state(folder: Path, key: str, state: Mapping[str, object]) -> None:
    """Write a component's state as ``KEY.json``, with its arrays in ``KEY.safetensors``; an empty one leaves no file.

    Raises:
        UsageError: it holds something else than arrays, tensors, numbers, text, lists and mappings of them.
    """
    if not state:
        return
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    try:
        text = json.dumps(_packed(state, arrays, 0), separators=(",", ":"))
    except TypeError as error:
        hint = "state_dict() may hold arrays, tensors, numbers, text, lists and mappings of them"
        raise UsageError(f"the state of {key} can't be kept: {one_line(str(error), 100)}", hint=hint) from None
    folder.mkdir(parents=True, exist_ok=True)
    if arrays:
        save_file(arrays, folder / f"{key}.safetensors")
    (folder / f"{key}.json").write_text(text, "utf-8")


def load_state(folder: Path, key: str) -> Mapping[str, Any] | None:
    """A component's state, or None where none was kept.

    Raises:
        UsageError: the files are damaged.
    """
    path = folder / f"{key}.json"
    if not path.exists():
        return None
    arrays_path = folder / f"{key}.safetensors"
    try:
        arrays = load_file(arrays_path) if arrays_path.exists() else {}
        found = _unpacked(json.loads(path.read_text("utf-8")), arrays)
    except Exception as error:  # noqa: BLE001 - safetensors raises an error of its own kind
        raise UsageError(f"{path} is damaged: {one_line(str(error), 80)}", hint="autoresearch reset") from None
    if not isinstance(found, Mapping):
        raise UsageError(f"{path} is damaged: it holds no state", hint="autoresearch reset")
    return found


def packed_text(state: Mapping[str, object]) -> bytes:
    """A state as bytes that are equal where the states are."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    try:
        text = json.dumps(_packed(state, arrays, 0))
    except TypeError:
        return b"?"
    return text.encode() + b"".join(each.tobytes() for each in arrays.values())


def _packed(value: object, arrays: dict[str, np.ndarray[Any, Any]], depth: int) -> object:
    if depth > _DEEPEST:
        raise TypeError("it is nested too deep")
    if isinstance(value, float) and not math.isfinite(value):
        return {f"{_MARK}float": str(float(value))}  # JSON has none of these
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _packed(value.item(), arrays, depth)
    if isinstance(value, np.ndarray):
        return _array("array", value, arrays)
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a torch tensor, without importing torch
        return _array("tensor", value.detach().cpu().numpy(), arrays)
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and not key.startswith(_MARK) for key in value):
            return {key: _packed(each, arrays, depth + 1) for key, each in value.items()}
        pairs = [[_packed(key, arrays, depth + 1), _packed(each, arrays, depth + 1)] for key, each in value.items()]
        return {f"{_MARK}pairs": pairs}
    if isinstance(value, tuple):
        return {f"{_MARK}tuple": [_packed(each, arrays, depth + 1) for each in value]}
    if isinstance(value, list):
        return [_packed(each, arrays, depth + 1) for each in value]
    raise TypeError(f"a {type(value).__name__}")


def _array(kind: str, value: np.ndarray[Any, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> object:
    if value.dtype.kind not in "biuf":
        raise TypeError(f"an array of {value.dtype}")
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(value)
    return {f"{_MARK}{kind}": name, "shape": list(value.shape)}


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_unpacked(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if f"{_MARK}array" in value:
        return arrays[value[f"{_MARK}array"]].reshape(value["shape"])
    if f"{_MARK}tensor" in value:
        torch = importlib.import_module("torch")  # only where a component kept a tensor
        return torch.from_numpy(arrays[value[f"{_MARK}tensor"]].reshape(value["shape"]).copy())
    if f"{_MARK}float" in value:
        return float(value[f"{_MARK}float"])
    if f"{_MARK}pairs" in value:
        return {_key(_unpacked(key, arrays)): _unpacked(each, arrays) for key, each in value[f"{_MARK}pairs"]}
    if f"{_MARK}tuple" in value:
        return tuple(_unpacked(each, arrays) for each in value[f"{_MARK}tuple"])
    return {key: _unpacked(each, arrays) for key, each in value.items()}


def _key(value: Any) -> Any:  # noqa: ANN401
    return tuple(map(_key, value)) if isinstance(value, list | tuple) else value
