"""What a model is asked about: the task's own text, and new text of the same kind that nobody has seen before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from autoresearch.errors import AutoresearchError
from autoresearch.research.bench import Bench, job_limits, task_data
from autoresearch.running import write_fresh
from autoresearch.tasks import Task

if TYPE_CHECKING:
    from autoresearch.refereeing import Floats, Tokens

_AUTHORS = "the task's author has to mend that"
_FRESH, _FRESH_BITS, _TEXT_BITS = "fresh.bin", "fresh.bits", "text.bits"


class NewText(NamedTuple):
    """Documents that nobody has seen before, shape (documents, length).

    ``best`` is what each costs at least, in bits, ``own_best`` the same of the task's own text; both None where that is
    not known.
    """

    documents: Tokens
    best: Floats | None
    own_best: Floats | None

    def cost(self, bits: Floats) -> float:
        """What a document costs on the average, as if this text were as hard as the task's own where that is known."""
        if self.best is None or self.own_best is None:
            return float(bits.mean())
        return float((bits - self.best).mean() + self.own_best.mean())


def own_text(task: Task, bench: Bench) -> Tokens:
    """The text of a task with a referee, shape (documents, length).

    Raises:
        AutoresearchError: the task's data can't be made here, or hold something else than the task says.
    """
    data = task_data(task, bench)
    assert task.evaluation is not None, "asked only of tasks that have a referee"
    assert data is not None, "the text is among the task's data"
    return _documents(task, task.evaluation.text, (data / task.evaluation.text).read_bytes())


def new_text(task: Task, seed: int, bench: Bench, *, own: int) -> NewText:
    """What the task's ``prepare.py fresh`` writes from a seed, beside its own text of ``own`` documents.

    Raises:
        AutoresearchError: it fails, or writes something else than the task says.
    """
    # The daemon imports this room too, and goes without numpy.
    import numpy as np

    from autoresearch.refereeing import MOST_BITS

    names = (_FRESH, _FRESH_BITS, _TEXT_BITS)
    made = write_fresh(task.harness, names, seed, bench.scratch, level=bench.level, limits=job_limits(task))
    if _FRESH not in made:
        raise AutoresearchError("the task's prepare.py wrote no fresh.bin", hint=_AUTHORS)
    documents = _documents(task, _FRESH, made[_FRESH])
    if _FRESH_BITS not in made or _TEXT_BITS not in made:
        return NewText(documents, None, None)
    if [len(made[_TEXT_BITS]), len(made[_FRESH_BITS])] == [8 * own, 8 * len(documents)]:
        best, own_best = np.frombuffer(made[_FRESH_BITS]), np.frombuffer(made[_TEXT_BITS])
        most = MOST_BITS * documents.shape[1]
        if all(((costs >= 0) & (costs <= most)).all() for costs in (best, own_best)):
            return NewText(documents, best, own_best)
    raise AutoresearchError(
        f"the task's prepare.py wrote {_TEXT_BITS} and {_FRESH_BITS} for other texts", hint=_AUTHORS
    )


def _documents(task: Task, name: str, content: bytes) -> Tokens:
    from autoresearch.refereeing import as_documents

    assert task.evaluation is not None
    try:
        return as_documents(content, task.evaluation.length, task.evaluation.vocabulary)
    except ValueError as error:
        raise AutoresearchError(f"the task's {name} can't be asked about: {error}", hint=_AUTHORS) from error
