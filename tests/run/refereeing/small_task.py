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
# What torch.optim.AdamW computes, by the same kernel. That one loads a compiler: longer than such a training takes.
ADAM = """
class AdamW:
    def __init__(self, groups, betas, fused):
        self.param_groups, self.betas = groups, betas
        for g in groups:
            g["moments"] = [[torch.zeros_like(p) for p in g["params"]] for _ in range(2)]
            g["steps"] = [torch.zeros(()) for _ in g["params"]]

    @torch.no_grad()
    def step(self):
        beta1, beta2 = self.betas
        for g in self.param_groups:
            torch._foreach_add_(g["steps"], 1)
            torch._fused_adamw_(g["params"], [p.grad for p in g["params"]], *g["moments"], [], g["steps"], lr=g["lr"],
                                beta1=beta1, beta2=beta2, weight_decay=g["weight_decay"], eps=1e-8, amsgrad=False,
                                maximize=False)


def optimizers(model):
"""
SHIPPED = SHIPPED.replace("torch.optim.AdamW(", "AdamW(").replace("\ndef optimizers(model):\n", ADAM)
# A third as deep and half as wide.
TRAIN = SHIPPED.replace("DEPTH = 3 ", "DEPTH = 1 ").replace("WIDTH = 64 ", "WIDTH = 32 ")
# What in the harness loads that compiler too, and the same without it.
WITHOUT_COMPILER = {
    "torch.use_deterministic_algorithms(True)": 'torch.set_deterministic_debug_mode("error")',
    "    flops = extra = 0\n": "    flops = extra = 0\n    _should_skip_dynamo = classmethod(lambda cls: False)\n",
}
DOCUMENTS = 2048


@functools.cache
def small_task(program: str = TRAIN) -> Task:
    """The task with this baseline. Its training text is the beginning of the other's."""
    shipped = shipped_task()
    digest = hashlib.sha256("".join(_written(shipped.harness["grammar.py"])).encode("ascii")).digest()
    prepare, pinned = shipped.harness["prepare.py"].decode(), f'24576, "{shipped.data["train.bin"].hex()}"'
    for old, new in {pinned: f'{DOCUMENTS}, "{digest.hex()}"', **WITHOUT_COMPILER}.items():
        assert prepare.count(old) == 1, old
        prepare = prepare.replace(old, new)
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
