"""Artifacts of tasks as values: what is in them, and the same with other numbers, texts and lengths. Pure.

JSON, tables and labels as text, NumPy arrays, safetensors, pickles and files of torch are read; others are bytes.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autoresearch.run.attack.pickled import read_pickle, written_pickle
from autoresearch.run.attack.unpacking import scalar

_MOST_BYTES = 16 << 20
# A sequence of fewer scalars is no list of answers.
LEAST_ANSWERS = 5
_MOST_SLOTS = 6
# A line of text that comes again and is no longer is a label.
_LONGEST_LABEL = 60

Leaf = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class ArtifactForm:
    """An artifact as a value, and how such a value is written."""

    kind: str
    value: Any
    write: Callable[[Any], bytes]

    def with_leaves(self, change: Leaf) -> bytes | None:
        """The artifact with all its scalars changed; None where it can't be written, or nothing changed."""
        return self.written(map_leaves(self.value, change))

    def written(self, value: Any) -> bytes | None:  # noqa: ANN401 - any value that was in a file
        """Another value as an artifact of the same form; None where it can't be one."""
        try:
            content = self.write(value)
        except Exception:  # noqa: BLE001 - libraries of formats have errors of their own
            return None
        return content


def opened(content: bytes) -> ArtifactForm | None:
    """What is in an artifact; None where nobody can tell."""
    if not content or len(content) > _MOST_BYTES:
        return None
    if content.startswith((b"PK\x03\x04", b"\x80")) and (pickle := read_pickle(content)) is not None:
        return ArtifactForm("pickle", pickle, lambda value: written_pickle(content, value))
    if content.startswith((b"\x93NUMPY", b"PK\x03\x04")):
        return _numpy(content)
    if (tensors := _safetensors(content)) is not None:
        return tensors
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    try:
        return ArtifactForm("json", json.loads(text), lambda value: json.dumps(value).encode())
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        values = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return _table(text, lines)
    if all(isinstance(value, dict | list) for value in values):
        return ArtifactForm("jsonl", values, lambda value: "".join(json.dumps(each) + "\n" for each in value).encode())
    return _table(text, lines)


def _table(text: str, lines: list[str]) -> ArtifactForm | None:
    delimiter = next((sign for sign in ("\t", ",", ";", " ") if lines and sign in lines[0].strip()), ",")
    rows = [[scalar(cell) for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    end = "\n" if text.endswith("\n") else ""
    if not rows or len({len(row) for row in rows}) > 1 or not any(isinstance(cell, float | int) for cell in rows[-1]):
        is_labels = len(lines) >= max(LEAST_ANSWERS, 2 * len(set(lines))) and max(map(len, lines)) <= _LONGEST_LABEL
        return (
            ArtifactForm("lines", lines, lambda old: ("\n".join(map(str, old)) + end).encode()) if is_labels else None
        )
    header = rows[0] if len(rows) > 1 and all(isinstance(cell, str) for cell in rows[0]) else None
    body = rows[1:] if header else rows
    columns = {str(header[at]) if header else f"column {at}": [row[at] for row in body] for at in range(len(rows[0]))}

    def write(value: Any) -> bytes:  # noqa: ANN401 - as above
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        if header:
            writer.writerow(value)
        writer.writerows(zip(*value.values(), strict=True))
        return (out.getvalue().rstrip("\n") + end).encode()

    return ArtifactForm("table", columns, write)


def _numpy(content: bytes) -> ArtifactForm | None:
    import numpy as np  # the daemon imports this room too, and goes without

    try:
        loaded = np.load(io.BytesIO(content), allow_pickle=False)
        if not hasattr(loaded, "files"):
            return ArtifactForm("npy", loaded.tolist(), lambda changed: _npy(np.asarray(changed)))
        lists = {name: loaded[name].tolist() for name in loaded.files}
    except Exception:  # noqa: BLE001 - a zip of something else, or a broken file
        return None

    def write(changed: Any) -> bytes:  # noqa: ANN401 - as above
        out = io.BytesIO()
        np.savez(out, **{name: _plain(np.asarray(array)) for name, array in changed.items()})
        return out.getvalue()

    return ArtifactForm("npz", lists, write)


def _plain(array: Any) -> Any:  # noqa: ANN401 - an array
    if array.dtype == object:
        raise TypeError("ragged")
    return array


def _npy(array: Any) -> bytes:  # noqa: ANN401 - an array
    import numpy as np

    out = io.BytesIO()
    np.save(out, _plain(array), allow_pickle=False)
    return out.getvalue()


def _safetensors(content: bytes) -> ArtifactForm | None:
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= len(content) - 8 or content[8:9] != b"{":
        return None
    from safetensors.numpy import load, save

    try:
        arrays = load(content)
    except Exception:  # noqa: BLE001 - no safetensors, or a type that NumPy lacks
        return None
    import numpy as np

    kinds = {name: array.dtype for name, array in arrays.items()}

    def write(changed: Any) -> bytes:  # noqa: ANN401 - as above
        return save({name: np.ascontiguousarray(np.asarray(value, kinds.get(name))) for name, value in changed.items()})

    return ArtifactForm("safetensors", {name: array.tolist() for name, array in arrays.items()}, write)


def map_leaves(value: Any, change: Leaf) -> Any:  # noqa: ANN401 - any value that was in a file
    """A value with each of its scalars changed."""
    if isinstance(value, dict):
        return {name: map_leaves(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [map_leaves(each, change) for each in value]
    return change(value)


def on_numbers(number: object) -> Leaf:
    """A change that puts the same into the place of each number."""
    return lambda leaf: number if isinstance(leaf, int | float) and not isinstance(leaf, bool) else leaf


def size_of(value: Any) -> int:  # noqa: ANN401 - any value that was in a file
    """How many scalars a value has."""
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    return sum(map(size_of, value)) if isinstance(value, list) else 1


@dataclass(frozen=True, slots=True)
class Slot:
    """A sequence of answers in an artifact: ``items`` by their place in it, ``keys`` where they have names."""

    path: tuple[str | int, ...]
    items: Sequence[object]
    keys: Sequence[str] = ()


def slots(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[Slot]:  # noqa: ANN401 - any value that was in a file
    """The sequences of scalars, or of short rows, in a value, the outer before the inner."""
    if isinstance(value, list) and len(value) >= LEAST_ANSWERS:
        if all(not isinstance(each, dict | list) for each in value):
            yield Slot(path, value)
            return
        if all(isinstance(each, list) and 1 <= len(each) <= 64 and _is_flat(each) for each in value):
            yield Slot(path, value)
            return
        if all(isinstance(each, dict) for each in value):
            for name in value[0]:
                column = [each.get(name) for each in value]
                if all(not isinstance(each, dict | list) for each in column):
                    yield Slot((*path, name), column)
            return
    if isinstance(value, dict):
        if len(value) >= LEAST_ANSWERS and all(not isinstance(each, dict | list) for each in value.values()):
            yield Slot(path, list(value.values()), list(value))
            return
        for name, each in list(value.items())[:64]:
            yield from slots(each, (*path, name))


def _is_flat(items: Sequence[object]) -> bool:
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in items)


def is_order(items: Sequence[object]) -> bool:
    """Whether items are an order of whole numbers without a gap, such as a tour: each has to be there once."""
    whole = [each for each in items if type(each) is int]
    return len(whole) == len(items) == len(set(whole)) == max(whole) - min(whole) + 1


def answer_slots(value: Any) -> list[Slot]:  # noqa: ANN401 - any value that was in a file
    """The longest sequences of an artifact: those that are most likely its answers."""
    return sorted(slots(value), key=lambda slot: -len(slot.items))[:_MOST_SLOTS]


def ids_of(value: Any, slot: Slot) -> Slot | None:  # noqa: ANN401 - any value that was in a file
    """The names of the questions of a slot: itself by its keys, or a column beside it in which all values differ."""
    if slot.keys:
        return slot
    for other in slots(value) if slot.path else ():
        is_beside = (
            other.path[:-1] == slot.path[:-1] and other.path != slot.path and len(other.items) == len(slot.items)
        )
        if is_beside and not isinstance(other.items[0], list) and len(set(map(str, other.items))) == len(other.items):
            return other
    return None


def with_slot(value: Any, slot: Slot, items: Sequence[object]) -> Any:  # noqa: ANN401 - any value that was in a file
    """A value with other items in a slot, more or fewer where that is possible."""
    if not slot.path:
        return dict(zip(slot.keys, items, strict=False)) if slot.keys else list(items)
    head, rest = slot.path[0], slot.path[1:]
    if isinstance(value, list) and isinstance(head, str):  # a column of rows
        return [{**value[at % len(value)], head: item} for at, item in enumerate(items)]
    inner = Slot(rest, slot.items, slot.keys)
    if isinstance(value, dict):
        return {name: with_slot(each, inner, items) if name == head else each for name, each in value.items()}
    return [with_slot(each, inner, items) if at == head else each for at, each in enumerate(value)]


def resized(value: Any, change: Callable[[list[Any]], list[Any]], length: int) -> Any:  # noqa: ANN401 - as above
    """A value in which each sequence of that length is cut or made longer in the same way."""
    if isinstance(value, dict):
        if len(value) == length and length >= LEAST_ANSWERS:
            return dict(change(list(value.items())))
        return {name: resized(each, change, length) for name, each in value.items()}
    if isinstance(value, list):
        return change(value) if len(value) == length else [resized(each, change, length) for each in value]
    return value


def is_finite(value: object) -> bool:
    """Whether something is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
