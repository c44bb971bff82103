"""Episodes as a data set of TensorFlow Datasets: its layout field by field, and opened by that library itself."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import numpy as np
import pytest

from autoresearch.errors import Refused, UsageError
from autoresearch.services import Episode, write_dataset

# Names a Python that has tensorflow-datasets, where this one has not.
PYTHON = os.environ.get("TFDS_PYTHON", sys.executable)
HAS_TFDS = (
    subprocess.run([PYTHON, "-c", "import tensorflow_datasets"], capture_output=True, check=False).returncode == 0
)
NUMBERS = np.array([0, 1, -1, 127, 128, 2**31 - 1, -(2**63), 2**63 - 1])


def episode(length: int, *, terminal: bool = True) -> Episode:
    steps = np.arange(length)
    return Episode(
        {
            "observation": {
                "image": np.broadcast_to(steps[:, None, None], (length, 2, 3)).astype(np.uint8) * 40,
                "a/b": steps.astype(np.float64) / 3,
                "numbers": np.broadcast_to(NUMBERS, (length, len(NUMBERS))),
            },
            "action": steps.astype(np.int32)[:, None] - 2,
            "reward": steps.astype(np.float32),
            "is_first": steps == 0,
        },
        float(steps.sum()),
        terminal,
    )


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields with a length of a protocol buffer, with their numbers."""
    while data:
        number, (length, data) = data[0] >> 3, varint(data[1:])
        yield number, data[:length]
        data = data[length:]


def varint(data: bytes) -> tuple[int, bytes]:
    value = place = 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << 7 * place
        place += 1
    return value | data[place] << 7 * place, data[place + 1 :]


def records(data: bytes) -> Iterator[bytes]:
    """The records of a TFRecord file, whose checksums are right."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        for content, crc in (data[:8], data[8:12]), (data[12 : 12 + length], data[12 + length : 16 + length]):
            plain = google_crc32c.value(content)
            assert struct.unpack("<I", crc) == (((plain >> 15 | plain << 17) + 0xA282EAD8) % 2**32,)
        yield data[12 : 12 + length]
        data = data[16 + length :]


def test_the_layout_is_the_documented_one(tmp_path: Path) -> None:
    made = write_dataset("rlds", [episode(3), episode(5, terminal=False)], tmp_path, "seen")
    assert made == tmp_path / "seen/1.0.0"
    assert sorted(each.name for each in made.iterdir()) == [
        "dataset_info.json",
        "features.json",
        "seen-train.tfrecord-00000-of-00001",
    ]
    about = json.loads((made / "dataset_info.json").read_text())
    examples = list(records((made / "seen-train.tfrecord-00000-of-00001").read_bytes()))
    (split,) = about.pop("splits")
    assert about == {"name": "seen", "version": "1.0.0", "fileFormat": "tfrecord"}
    assert (split["shardLengths"], split["numBytes"]) == (["2"], str(sum(map(len, examples))))
    features = json.loads((made / "features.json").read_text())["featuresDict"]["features"]
    steps = features["steps"]["sequence"]["feature"]["featuresDict"]["features"]
    assert steps["observation"]["featuresDict"]["features"]["image"]["tensor"] == {
        "dtype": "uint8",
        "encoding": "none",
        "shape": {"dimensions": ["2", "3"]},
    }
    for length, example in zip((3, 5), examples, strict=True):
        ((field_number, inner),) = fields(example)
        assert field_number == 1
        example_features = {}
        for number, entry in fields(inner):
            (_, name), (_, feature) = fields(entry)
            ((kind, values),) = fields(feature)
            ((_, content),) = fields(values)
            assert number == 1
            example_features[name.decode()] = (kind, content)
        integers, left = [], example_features["steps/observation/numbers"][1]
        while left:
            value, left = varint(left)
            integers.append(value - (value >> 63 << 64))
        assert integers == NUMBERS.tolist() * length
        assert example_features["steps/reward"] == (2, np.arange(length, dtype="<f4").tobytes())
        assert example_features["episode_metadata/terminal"] == (3, bytes([length == 3]))
        assert "steps/observation/a/b" in example_features


def test_what_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    other = episode(3)
    other.steps["reward"] = np.zeros((3, 2), np.float32)
    with pytest.raises(UsageError, match="reward of episode 1 is not as in the one before"):
        write_dataset("rlds", [episode(3), other], tmp_path)
    with pytest.raises(UsageError, match="no episodes"):
        write_dataset("rlds", [], tmp_path)
    with pytest.raises(UsageError, match="name of a data set"):
        write_dataset("rlds", [episode(3)], tmp_path, "../x")
    assert list(tmp_path.iterdir()) == []
    write_dataset("rlds", [episode(3)], tmp_path)
    with pytest.raises(Refused, match="exists already"):
        write_dataset("rlds", [episode(3)], tmp_path)


READ = """
import json, sys
import tensorflow_datasets as tfds
builder = tfds.builder_from_directory(sys.argv[1])
print(json.dumps([
    {
        "total": float(episode["episode_metadata"]["total"]),
        "steps": [
            {
                "numbers": step["observation"]["numbers"].tolist(),
                "image": step["observation"]["image"].tolist(),
                "third": round(float(step["observation"]["a/b"]), 5),
                "action": step["action"].tolist(),
                "reward": float(step["reward"]),
                "is_first": bool(step["is_first"]),
            }
            for step in tfds.as_numpy(episode["steps"])
        ],
    }
    for episode in builder.as_dataset("train", shuffle_files=False)
]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TFDS, reason="there is no tensorflow-datasets")
def test_tensorflow_datasets_reads_what_was_written(tmp_path: Path) -> None:
    written = [episode(3), episode(5, terminal=False)]
    made = write_dataset("rlds", written, tmp_path)
    done = subprocess.run([PYTHON, "-c", READ, str(made)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    episodes = json.loads(done.stdout.splitlines()[-1])
    assert [each["total"] for each in episodes] == [each.total for each in written]
    for read, each in zip(episodes, written, strict=True):
        assert read["steps"] == [
            {
                "numbers": NUMBERS.tolist(),
                "image": each.steps["observation"]["image"][place].tolist(),
                "third": round(place / 3, 5),
                "action": [place - 2],
                "reward": float(place),
                "is_first": place == 0,
            }
            for place in range(len(each.steps["reward"]))
        ]
