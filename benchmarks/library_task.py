"""A task on text that people wrote, divided into shards: the source code of Python's own library.

Unlike the text of the task that ships it holds much that can only be known by heart. Its new text is drawn from the
documents that are neither trained nor measured on. Every interpreter has another library, so it is no task to publish.
"""

from __future__ import annotations

import hashlib

import msgspec

from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task

_CONSTANTS = """
VOCAB, DOC, FRESH = 128, 256, {fresh}
COUNTS = {{"val.bin": {documents}, "train.bin": {train}}}
"""
_SHARDS = '''
def shards():
    """The files of the task, and the documents that are in neither, in an order from which nothing follows."""
    import random, sysconfig
    beyond, found, shards = bytes(range(VOCAB, 256)), [], {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" not in path.parts:
            text = path.read_bytes().translate(None, beyond)
            found += [text[i:i + DOC] for i in range(0, len(text) - DOC + 1, DOC)]
    random.Random(0).shuffle(found)
    for name, count in COUNTS.items():
        shards[name], found = b"".join(found[:count]), found[count:]
    return shards, found

def make_data(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in shards()[0].items():
        (folder / name).write_bytes(content)

def make_fresh(folder):
    import random
    (folder / "fresh.bin").write_bytes(b"".join(random.Random(SEED).sample(shards()[1], FRESH)))

'''


def library_task(*, documents: int, budget: float, train: int = 20_000, fresh: int = 2048) -> Task:
    """The task with so many documents of 256 bytes to measure, to train and to draw as new text.

    ``budget`` is in work units. The model is a third as deep as that of the task that ships.
    """
    shipped = shipped_task()
    constants = _CONSTANTS.format(documents=documents, train=train, fresh=fresh)
    space: dict[str, object] = {}
    exec(f"from pathlib import Path\n{constants}{_SHARDS}\nfiles, _ = shards()", space)
    files: dict[str, bytes] = space["files"]  # type: ignore[assignment]
    data = {name: hashlib.sha256(content).digest() for name, content in files.items()}
    pinned = f"FILES = { ({name: ('', 0, digest.hex()) for name, digest in data.items()}) }\n"
    before, _, after = shipped.harness["prepare.py"].decode().partition("def make_data(folder):")
    after = after[after.index("def load(name):") :]
    assert shipped.evaluation is not None
    baseline = shipped.baseline.decode().replace("DEPTH = 3 ", "DEPTH = 1 ").replace("LR = 0.001 ", "LR = 0.008 ")
    return msgspec.structs.replace(
        shipped,
        name=f"library-{documents}",
        metric=msgspec.structs.replace(shipped.metric, floor=None),
        budget=msgspec.structs.replace(shipped.budget, amount=budget),
        harness={"prepare.py": (before + constants + pinned + _SHARDS + after).encode()},
        data=data,
        evaluation=msgspec.structs.replace(shipped.evaluation, withheld=[]),
        baseline=baseline.encode(),
    )
