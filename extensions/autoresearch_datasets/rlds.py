"""Episodes as a data set of TensorFlow Datasets, in the layout of RLDS, written without TensorFlow.

A folder 1.0.0 holds features.json, dataset_info.json and a TFRecord file: each episode is a ``tf.train.Example``
that has every column of its steps, one step behind the other.
https://www.tensorflow.org/datasets/external_tfrecord, https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.errors import CannotRunHere, UsageError, install_command
from autoresearch.services.data.rows import Array, Key, flat, key_name, nested
from autoresearch.services.data.tfds import Episode

try:
    import google_crc32c
except ModuleNotFoundError as error:
    raise CannotRunHere("data sets of RLDS need google-crc32c", hint=install_command("rlds")) from error

_VERSION, _SPLIT = "1.0.0", "train"
_FILE = f"{{}}-{_SPLIT}.tfrecord-00000-of-00001"
_FEATURES = "tensorflow_datasets.core.features"
# Protocol buffers: https://protobuf.dev/programming-guides/encoding. An Example has Features as its field 1, these a
# map as theirs; a Feature has a FloatList as its field 2, an Int64List as its field 3.
_FLOATS, _INTEGERS = 2, 3

Specification = dict[Key, tuple[str, tuple[int, ...]]]


def write_rlds(episodes: Iterable[Episode], place: Path, name: str) -> Path:
    """Write episodes into the new folder ``place``; returns that of the version, for ``builder_from_directory``.

    The episodes are the split ``train``. Real numbers are kept with 32 bits, as TensorFlow Datasets does.

    Raises:
        UsageError: there are no episodes, or two differ in shapes.
    """
    folder = place / _VERSION
    folder.mkdir(parents=True)
    specification: Specification | None = None
    count = size = 0
    with (folder / _FILE.format(name)).open("wb") as out:
        for episode in episodes:
            columns = flat(episode.steps)
            layout = {key: (column.dtype.name, column.shape[1:]) for key, column in columns.items()}
            specification = specification or layout
            if layout != specification:
                key = next(key for key in {**layout, **specification} if layout.get(key) != specification.get(key))
                raise UsageError(f"{key_name(key)} of episode {count} is not as in the one before")
            example = _example(columns, episode)
            out.write(_record(example))
            count, size = count + 1, size + len(example)
    if specification is None:
        raise UsageError("there are no episodes to write")
    (folder / "features.json").write_text(json.dumps(_features(specification), indent=1))
    split = {"name": _SPLIT, "shardLengths": [str(count)], "numBytes": str(size)}
    split["filepathTemplate"] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    about = {"name": name, "version": _VERSION, "fileFormat": "tfrecord", "splits": [split]}
    (folder / "dataset_info.json").write_text(json.dumps(about, indent=1))
    return folder


def _features(specification: Specification) -> dict[str, object]:
    steps = nested({key: _tensor(*column) for key, column in specification.items()})
    metadata = {"total": _tensor("float32", ()), "terminal": _tensor("bool", ())}
    return _dictionary(
        {
            "steps": {
                "pythonClassName": f"{_FEATURES}.dataset_feature.Dataset",
                "sequence": {"feature": _of_tree(steps), "length": "-1"},
            },
            "episode_metadata": _dictionary(metadata),
        }
    )


def _of_tree(tree: Mapping[Any, Any]) -> Mapping[str, Any]:
    """The feature of nested dicts, whose leaves are tensors."""
    if "pythonClassName" in tree:
        return tree
    return _dictionary({str(name): _of_tree(part) for name, part in tree.items()})


def _dictionary(features: Mapping[str, object]) -> dict[str, object]:
    name = f"{_FEATURES}.features_dict.FeaturesDict"
    return {"pythonClassName": name, "featuresDict": {"features": features}}


def _tensor(dtype: str, shape: tuple[int, ...]) -> dict[str, object]:
    kind = "tensor_feature.Tensor" if shape else "scalar.Scalar"
    sizes = {"dimensions": [str(each) for each in shape]} if shape else {}
    return {"pythonClassName": f"{_FEATURES}.{kind}", "tensor": {"dtype": dtype, "encoding": "none", "shape": sizes}}


def _example(columns: Mapping[Key, Array], episode: Episode) -> bytes:
    features = {"/".join(("steps", *map(str, key))): column for key, column in columns.items()}
    features["episode_metadata/total"] = np.array([episode.total], np.float32)
    features["episode_metadata/terminal"] = np.array([episode.terminal])
    entries = (_field(1, name.encode()) + _field(2, _feature(value)) for name, value in features.items())
    return _field(1, b"".join(_field(1, entry) for entry in entries))


def _feature(values: Array) -> bytes:
    if values.dtype.kind == "f":
        return _field(_FLOATS, _field(1, values.astype("<f4").tobytes()))
    return _field(_INTEGERS, _field(1, _varints(values.ravel())))


def _field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that has a length."""
    return bytes((number << 3 | 2,)) + _varints(np.array([len(content)])) + content


def _varints(values: Array) -> bytes:
    """Integers, seven bits a byte, the least significant first; negative ones as 64 bits."""
    left = values.astype(np.uint64) if values.dtype.kind in "bu" else values.astype(np.int64).view(np.uint64)
    parts = (left[:, None] >> np.arange(0, 64, 7, dtype=np.uint64)).astype(np.uint8) & 0x7F
    lengths = np.maximum(10 - (parts[:, ::-1] != 0).argmax(1), 1)
    lengths[left == 0] = 1
    places = np.arange(10)
    parts |= ((places < lengths[:, None] - 1) * 0x80).astype(np.uint8)
    return bytes(parts[places < lengths[:, None]].tobytes())


def _record(data: bytes) -> bytes:
    """A record of a TFRecord file: its length, the data, each with a masked CRC-32C behind it."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
