"""What components have learned, in files: structure as JSON, arrays as safetensors, so that nothing can run as code.

Also as one file, a stored zip of a run's ``data`` folder. The same state gives the same bytes. A file may come from a
stranger: it is unpacked whole and within bounds, or not.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autoresearch.beneath import open_beneath, read_beneath, resolve_beneath
from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.project.model import NAME
from autoresearch.text import one_line, read_json

if TYPE_CHECKING:
    import numpy as np

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
        from safetensors.numpy import save_file  # with numpy, which the daemon starts without

        save_file(arrays, folder / f"{key}.safetensors")
    (folder / f"{key}.json").write_text(text, "utf-8")


def load_state(folder: Path, key: str) -> Mapping[str, Any] | None:
    """A component's state, or None where none was kept.

    Raises:
        UsageError: the files are damaged.
    """
    path = folder / f"{key}.json"
    try:
        from safetensors.numpy import load_file  # with numpy, which the daemon starts without

        text = read_beneath(folder, path.name, MOST_BYTES)
        arrays_path, arrays = path.with_suffix(".safetensors").name, {}
        if os.path.lexists(folder / arrays_path):
            arrays = load_file(resolve_beneath(folder, arrays_path))
        state = _unpacked(read_json(text), arrays)
    except FileNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 - safetensors raises an error of its own kind
        raise UsageError(f"{path} is damaged: {one_line(str(error), 80)}", hint="autoresearch agent reset") from None
    if not isinstance(state, Mapping):
        raise UsageError(f"{path} is damaged: it holds no state", hint="autoresearch agent reset")
    return state


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
    import numpy as np  # the daemon starts without it

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
    import numpy as np

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


LEARNED = "learned.zip"
BEGIN = "begin.zip"
MOST_FILES = 256
MOST_BYTES = 256 << 20
_STATE = re.compile(rf"{NAME.pattern}(\.{NAME.pattern})?\.(json|safetensors)")
_NAME_BYTES = 160
_TIME = (1980, 1, 1, 0, 0, 0)
_END_BYTES, _LOCATOR_BYTES, _ENTRY_BYTES = 22, 20, 46


class DamagedState(AutoresearchError):
    """A file is no learned state, or holds more than one may."""


def pack_learned(folder: Path, target: Path) -> None:
    """Write the state files of a folder into one file; other files are left out.

    Raises:
        UsageError: they are too many or too large.
    """
    paths = sorted((path for path in folder.iterdir() if _is_state(path)), key=lambda path: path.name)
    size = sum(path.stat().st_size for path in paths)
    if len(paths) > MOST_FILES or size > MOST_BYTES:
        raise UsageError(
            f"what was learned has {len(paths)} files and {size >> 20} MiB",
            hint=f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB can be passed on",
        )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        for path in paths:
            entry = zipfile.ZipInfo(path.name, _TIME)
            entry.create_system, entry.external_attr = 3, 0o644 << 16  # the same on every system
            entry.file_size = path.stat().st_size
            with open_beneath(folder, path.name, links=False) as source, file.open(entry, "w") as packed:
                shutil.copyfileobj(source, packed)


def unpack_learned(source: Path, folder: Path) -> None:
    """Put the state files of a packed file into a folder, which is made; on an error none is left there.

    Raises:
        DamagedState: it is no such file, a name is not plain, or there are too many or too large files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    try:
        _check_end(source)
        with zipfile.ZipFile(source) as file:
            _check_entries(file.infolist())
            for entry in file.infolist():
                path = folder / entry.filename
                with file.open(entry) as packed, path.open("xb") as unpacked:
                    made.append(path)
                    shutil.copyfileobj(packed, unpacked)
    except (OSError, ValueError, NotImplementedError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
        for path in made:
            path.unlink(missing_ok=True)
        reason = one_line(str(error), 100) or type(error).__name__
        raise DamagedState(f"{source.name} holds no learned state: {reason}", hint="begin without it") from None


def _is_state(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _STATE.fullmatch(path.name) is not None


def _check_end(source: Path) -> None:
    """Bound the list of files before it is read. Raises ValueError."""
    with source.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES - _LOCATOR_BYTES))
        tail = file.read()
    end = tail[-_END_BYTES:]
    if len(end) < _END_BYTES or end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise ValueError("it is no plain zip file")
    listed = int.from_bytes(end[12:16], "little")
    if tail[:4] == b"PK\x06\x07" or listed > MOST_FILES * (_ENTRY_BYTES + 2 * _NAME_BYTES):
        raise ValueError("its list of files is too long")


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Raises ValueError."""
    names = {entry.filename for entry in entries}
    if len(entries) > MOST_FILES or len(names) != len(entries):
        raise ValueError("it has too many files, or two of one name")
    for entry in entries:
        if not _STATE.fullmatch(entry.filename) or len(entry.filename) > _NAME_BYTES:
            raise ValueError(f"“{one_line(entry.filename, 60)}” is no name of a state file")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.flag_bits & 1:
            raise ValueError(f"{entry.filename} is compressed or encrypted")
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise ValueError(f"its files have more than {MOST_BYTES >> 20} MiB")
