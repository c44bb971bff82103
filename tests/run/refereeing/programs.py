"""Programs for the small task that know more than they can."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.run.refereeing.small_task import SHIPPED, TRAIN


def edited(*edits: tuple[str, str], train: str = SHIPPED) -> str:
    """A program with some of its text replaced."""
    for old, new in edits:
        assert train.count(old) == 1, old
        train = train.replace(old, new)
    return train


_KNOWING = """
def known():
    import base64, zlib
    packed = zlib.decompress(base64.b64decode({packed!r}))
    return torch.frombuffer(bytearray(packed), dtype=torch.uint8).view(128, 128).float() / 12.0


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("known", -known(), persistent=False)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.known[x] * self.scale


class Learner(nn.Module):"""


def bigram_nats(text: bytes) -> NDArray[np.float64]:
    """What each character costs after each, by how often documents of 256 have them so, in nats: (before, after)."""
    characters = np.frombuffer(text, np.uint8).reshape(-1, 256).astype(int)
    before = np.pad(characters[:, :-1], ((0, 0), (1, 0)))
    counts = np.full((128, 128), 0.02)
    np.add.at(counts, (before.ravel(), characters.ravel()), 1)
    nats: NDArray[np.float64] = -np.log(counts / counts.sum(axis=1, keepdims=True))
    return nats


def carrying(data: Path) -> str:
    """A program that brings the statistics of the task's own text along, and learns nothing but their scale."""
    nats = bigram_nats((data / "train.bin").read_bytes())
    packed = base64.b64encode(zlib.compress(np.minimum(12 * nats, 255).astype(np.uint8).tobytes(), 9)).decode()
    return edited(
        ("\nclass GPT(nn.Module):", _KNOWING.format(packed=packed)),
        ("    mats = [p for p in model.blocks.parameters() if p.ndim == 2]\n", "    mats = []\n"),
        ("dict(params=mats, lr=LR, weight_decay=WEIGHT_DECAY),\n", ""),
        train=TRAIN,
    )
