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
# torch loads its compiler, which nothing here uses, for determinism and for any optimizer: that takes a second of
# processor time, as much as torch itself. The other call sets the same, and optimizers want two functions of it alone.
DETERMINISM = "    torch.use_deterministic_algorithms(True)\n"
WITHOUT_COMPILER = """\
    torch.set_deterministic_debug_mode("error")
    torch._dynamo = sys.modules["torch._dynamo"] = type(sys)("torch._dynamo")
    torch._dynamo.disable, torch._dynamo.graph_break = (lambda function, *_, **__: function), (lambda: None)
"""


@functools.cache
def small_task(program: str = TRAIN, *, compiler: bool = False) -> Task:
    """The task with this baseline. Its training text is the beginning of the other's.

    With ``compiler`` its harness has torch load all that the shipped one does.
    """
    shipped = shipped_task()
    digest = hashlib.sha256("".join(_written(shipped.harness["grammar.py"])).encode("ascii")).digest()
    prepare, pinned = shipped.harness["prepare.py"].decode(), f'24576, "{shipped.data["train.bin"].hex()}"'
    assert (prepare.count(pinned), prepare.count(DETERMINISM)) == (1, 1)
    prepare = prepare.replace(pinned, f'{DOCUMENTS}, "{digest.hex()}"')
    if not compiler:
        prepare = prepare.replace(DETERMINISM, WITHOUT_COMPILER)
    return msgspec.structs.replace(
        shipped,
        name="small",
        baseline=program.encode(),
        harness=shipped.harness | {"prepare.py": prepare.encode()},
        data=shipped.data | {"train.bin": digest},
    )


def _written(grammar: bytes) -> Iterator[str]:
    space: dict[str, Any] = {}
    exec(grammar, space)
    return (text for text, _ in space["write_documents"](space["Grammar"](), 1, DOCUMENTS))
