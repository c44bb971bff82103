"""The task that ships, with less text and a smaller program: what a test asks of it takes a fraction of the time."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task

SHIPPED = shipped_task().baseline.decode()
# A third as deep and half as wide.
TRAIN = SHIPPED.replace("DEPTH = 3 ", "DEPTH = 1 ").replace("WIDTH = 64 ", "WIDTH = 32 ")
DOCUMENTS = 2048


@functools.cache
def small_task(program: str = TRAIN) -> Task:
    """The task with this baseline. Its training text is the beginning of the other's."""
    shipped = shipped_task()
    digest = hashlib.sha256("".join(_written(shipped.harness["grammar.py"])).encode("ascii")).digest()
    prepare, pinned = shipped.harness["prepare.py"].decode(), f'24576, "{shipped.data["train.bin"].hex()}"'
    assert prepare.count(pinned) == 1
    return msgspec.structs.replace(
        shipped,
        name="small",
        baseline=program.encode(),
        harness=shipped.harness | {"prepare.py": prepare.replace(pinned, f'{DOCUMENTS}, "{digest.hex()}"').encode()},
        data=shipped.data | {"train.bin": digest},
    )


def _written(grammar: bytes) -> Iterator[str]:
    space: dict[str, Any] = {}
    exec(grammar, space)
    return (text for text, _ in space["write_documents"](space["Grammar"](), 1, DOCUMENTS))
