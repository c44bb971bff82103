"""What a model is asked about: the task's own text, new text of the same kind, and the text of another world."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from autoresearch.errors import AutoresearchError
from autoresearch.run.bench import Bench, preparer, task_data
from autoresearch.run.data import MOST_TEXT_BYTES, write_fresh, write_world
from autoresearch.task.model import Task

if TYPE_CHECKING:
    from autoresearch.run.referee import Floats, Tokens

_AUTHORS = "the task's author has to mend that"
_FRESH, _FRESH_BITS, _TEXT_BITS, _WORLD_BITS = "fresh.bin", "fresh.bits", "text.bits", "world.bits"


class NewText(NamedTuple):
    """Documents that nobody has seen before, shape (documents, length).

    ``best`` is what each costs at least, in bits, and ``level`` what those of the task's own text cost at least on the
    average; ``own_best`` is that document by document. None where it is not known.
    """

    documents: Tokens
    best: Floats | None = None
    level: float | None = None
    own_best: Floats | None = None

    def cost(self, bits: Floats) -> float:
        """What a document costs on the average, as if this text were as hard as the task's own where that is known."""
        if self.best is None or self.level is None:
            return float(bits.mean())
        return float((bits - self.best).mean() + self.level)


class World(NamedTuple):
    """What one pair of parent and child is trained and measured on. Without ``data`` they train on the task's own.

    The ``text`` is the referee's. An evaluator draws what it draws from ``seed``.
    """

    text: NewText | None
    data: Path | None = None
    seed: int = 0


def own_text(task: Task, bench: Bench) -> Tokens:
    """The text of a task with a referee, shape (documents, length).

    Raises:
        AutoresearchError: the task's data can't be made here, or hold something else than the task says.
    """
    data = task_data(task, bench)
    assert task.evaluation is not None, "asked only of tasks that have a referee"
    assert data is not None, "the text is among the task's data"
    return _documents(task, task.evaluation.text, _whole(data / task.evaluation.text))


def new_text(task: Task, seed: int, bench: Bench, *, own: int) -> NewText:
    """What the task's ``prepare.py fresh`` writes from a seed, beside its own text of ``own`` documents.

    Raises:
        AutoresearchError: it fails, or writes something else than the task says.
    """
    names = (_FRESH, _FRESH_BITS, _TEXT_BITS)
    made = write_fresh(preparer(task, bench), names, seed, bench.scratch)
    if _FRESH not in made:
        raise AutoresearchError("the task's prepare.py wrote no fresh.bin", hint=_AUTHORS)
    documents = _documents(task, _FRESH, made[_FRESH])
    if _FRESH_BITS not in made or _TEXT_BITS not in made:
        return NewText(documents)
    best = _least_costs(_FRESH_BITS, made[_FRESH_BITS], documents)
    own_best = _least_costs(_TEXT_BITS, made[_TEXT_BITS], documents, count=own)
    return NewText(documents, best, float(own_best.mean()), own_best)


def drawn_world(task: Task, seed: int, bench: Bench) -> World | None:
    """What a pair is compared on, drawn anew from ``seed``: everything that the task can draw; None where it can't.

    The folder lies in the bench's scratch folder and takes the place of the one before it.

    Raises:
        AutoresearchError: the task's ``prepare.py`` fails, or writes something else than the task says.
    """
    evaluation = task.evaluation
    if task.evaluator is not None:
        return World(None, seed=seed)
    if evaluation is None:
        return None
    if not evaluation.world:
        return World(new_text(task, seed, bench, own=len(own_text(task, bench)))) if evaluation.fresh else None
    folder = bench.scratch / "world"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o755)
    data = folder / "data"
    write_world(preparer(task, bench), task.data, _WORLD_BITS, seed, data)
    documents = _documents(task, evaluation.text, _whole(data / evaluation.text))
    bits, floor = data / _WORLD_BITS, task.metric.floor
    if not bits.exists():
        return World(NewText(documents), data)
    best = _least_costs(_WORLD_BITS, _whole(bits), documents)
    bits.unlink()
    level = None if floor is None else floor * evaluation.length
    return World(NewText(documents, best, level), data)


def _whole(file: Path) -> bytes:
    """The content of a file of the task's, unless it is larger than any text that is asked about."""
    if (size := file.stat().st_size) > MOST_TEXT_BYTES:
        raise AutoresearchError(
            f"the task's {file.name} has {size} bytes, {MOST_TEXT_BYTES} are the most", hint=_AUTHORS
        )
    return file.read_bytes()


def _least_costs(name: str, content: bytes, documents: Tokens, count: int | None = None) -> Floats:
    """What each document costs at least, in bits, from a file of the task's: of ``count`` as long as ``documents``."""
    # The daemon imports this room too, and goes without numpy.
    import numpy as np

    from autoresearch.run.referee import MOST_BITS

    count = len(documents) if count is None else count
    if len(content) == 8 * count:
        costs = np.frombuffer(content)
        if ((costs >= 0) & (costs <= MOST_BITS * documents.shape[1])).all():
            return costs
    raise AutoresearchError(f"the task's prepare.py wrote {name} for another text", hint=_AUTHORS)


def _documents(task: Task, name: str, content: bytes) -> Tokens:
    from autoresearch.run.referee import as_documents

    assert task.evaluation is not None
    try:
        return as_documents(content, task.evaluation.length, task.evaluation.vocabulary)
    except ValueError as error:
        raise AutoresearchError(f"the task's {name} can't be asked about: {error}", hint=_AUTHORS) from error
