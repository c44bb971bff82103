"""The referee: measures a trained model whose code nobody trusts, and never takes that code's word for it.

A checkpoint is looked at before anything loads it: safetensors only, and not more than the task allows. First the model
sees whole documents and commits itself to one loss for each token. Then positions are drawn that it could not know, and
a fresh sandbox with nothing of the first gets only what stands before them: it must answer with the full distribution,
which must add up to one and give the true token what was committed. So a loss that is made up, read off the target or
taken from a later token shows (a chance of 1 − (1 − φ)ⁿ when a share φ of n tokens is false).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from autoresearch.judging.statistics import is_honest
from autoresearch.run.bench import ANSWERING, Bench, Purse
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobLimits
from autoresearch.words import RunStatus

_MOST_TENSORS = 10_000
# Names, shapes and notes tell the model something too: a tensor's entry may take so much, and the rest.
_ENTRY_BYTES = 256
_NOTES_BYTES = 1024
_LENGTH_BYTES = 8


def fault_of_weights(path: Path, most_values: int) -> str | None:
    """What is wrong with a checkpoint, as a sentence, or None.

    Only its header is read: the library refuses lengths and offsets that don't fit the file, holes, overlaps and
    unknown types. Whether the numbers are finite shows in what the model answers.
    """
    try:
        with path.open("rb") as file:
            header = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        with safe_open(path, framework="numpy") as weights:
            names = list(weights.keys())
            if len(names) > _MOST_TENSORS:
                return f"the checkpoint has {len(names)} tensors; {_MOST_TENSORS} are allowed"
            values = sum(math.prod(weights.get_slice(name).get_shape()) for name in names)
            if header > _NOTES_BYTES + _ENTRY_BYTES * len(names):
                return f"the checkpoint's header has {header} bytes, far more than its tensors need"
    except (SafetensorError, OSError, ValueError) as error:
        return f"the checkpoint is not safetensors: {' '.join(str(error).split())[:200]}"
    if values > most_values:
        return f"the checkpoint holds {values} numbers; the task allows {most_values}"
    return None


def shuffled_weights(content: bytes, seed: int) -> bytes:
    """A checkpoint with the numbers of each tensor in another order: what the model learned is gone.

    ``content`` is a checkpoint without a fault, see :func:`fault_of_weights`.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    entries, numbers = json.loads(content[_LENGTH_BYTES:start]), bytearray(content)
    drawn = np.random.Generator(np.random.PCG64(seed))
    for name in sorted(entries.keys() - {"__metadata__"}):
        first, end = (start + offset for offset in entries[name]["data_offsets"])
        count = math.prod(entries[name]["shape"])
        if count > 1 and (end - first) % count == 0:
            values = np.frombuffer(numbers, np.uint8)[first:end].reshape(count, -1)
            numbers[first:end] = values[drawn.permutation(count)].tobytes()
    return bytes(numbers)


# Losses of one token that lie further apart, in nats, are not the same: a hundred times what other instruction sets,
# batch sizes and number formats were seen to make of one checkpoint.
MISMATCH_NATS = 0.01
# Probabilities add up to one when the logarithm of their sum is within this of zero.
NORMAL_NATS = 0.001
# A loss above this many bits has diverged.
MOST_BITS = 40.0
_PROGRAM = Path(__file__).with_name("examinee.py")
_ENTRY = "examinee.py"
_LN2 = float(np.log(2))
_ANSWER_BYTES = 1 << 28

Floats = NDArray[np.float64]
Tokens = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Examinee:
    """A trained model: the files that build it (with train.py among them), its checkpoint, and where it is asked.

    ``values`` is how many numbers the checkpoint may hold. With ``shuffled``, a seed, it is asked with the numbers of
    each tensor in another order. ``purse`` is what the questions may cost: a model that trains while it is asked pays
    for it like for any training.
    """

    files: Mapping[str, bytes]
    checkpoint: Path
    values: int
    bench: Bench
    limits: JobLimits
    shuffled: int | None = None
    purse: Purse = field(default_factory=Purse)


@dataclass(frozen=True, slots=True)
class RefereeEvaluation:
    """What the referee found. With status ok, ``bits`` is the cost of each document, shape (documents,).

    Otherwise ``reason`` says what is wrong: invalid (it deceives, or what it says is no probability), diverged,
    crashed (it can't be asked), or what stopped the sandbox. ``mismatches`` of ``challenges`` answers differ from what
    was committed, all of them by ``mean_difference`` nats on the average (committed less answered).
    """

    status: RunStatus
    reason: str
    bits: Floats
    challenges: int = 0
    mismatches: int = 0
    mean_difference: float = 0.0
    cpu_ms: int = 0


def as_documents(text: bytes, length: int, vocabulary: int) -> Tokens:
    """The documents in a file of tokens, shape (documents, length). Raises ValueError where it holds something else."""
    tokens: Tokens = np.frombuffer(text, np.uint8) if vocabulary <= 256 else np.frombuffer(text, "<u2")
    if not len(tokens) or len(tokens) % length or int(tokens.max()) >= vocabulary:
        raise ValueError(f"the text is not documents of {length} tokens below {vocabulary}")
    return tokens.reshape(-1, length)


def referee(
    examinee: Examinee,
    documents: Tokens,
    vocabulary: int,
    *,
    draw: bytes,
    challenges: int,
    own: int | None = None,
) -> RefereeEvaluation:
    """Measure a model on documents; one position in each of ``challenges`` of them is asked again.

    ``draw`` is what the positions are drawn with, together with what was committed: bytes that the model's author
    could not know. Two positions of one document are never asked, since the longer beginning would tell the shorter
    one's answer; so there are at most as many challenges as documents. Without challenges what the model said is taken
    as it is. The first ``own`` documents are those that the number is taken from: their answers are judged by
    themselves too, or a model that knows them would lie about them alone, diluted by the others.
    """
    if (fault := fault_of_weights(examinee.checkpoint, examinee.values)) is not None:
        return _failed(RunStatus.INVALID, fault)
    count, length = documents.shape
    question = {"documents": count, "length": length, "vocabulary": vocabulary}
    answer, first = _ask(examinee, question, documents, length)
    if isinstance(answer, RefereeEvaluation):
        return answer
    losses = answer.reshape(count, length).astype(np.float64)
    if (bad := _fault_of_losses(losses)) is not None:
        return replace(bad, cpu_ms=first)
    if not challenges:
        return RefereeEvaluation(RunStatus.OK, "not challenged", losses.sum(axis=1) / _LN2, cpu_ms=first)
    committed = hashlib.sha256(draw + answer.tobytes()).digest()
    rows, cuts = _positions(committed, count, length, min(challenges, count, _ANSWER_BYTES // (4 * vocabulary)))
    beginnings = _beginnings(documents, rows, cuts)
    question = {"documents": len(rows), "length": length, "vocabulary": vocabulary, "lengths": (cuts + 1).tolist()}
    answer, second = _ask(examinee, question, beginnings, vocabulary)
    if isinstance(answer, RefereeEvaluation):
        return replace(answer, cpu_ms=first + second)
    counted = rows < (count if own is None else own)
    evaluation = _compare(losses[rows, cuts], answer.reshape(len(rows), vocabulary), documents[rows, cuts], counted)
    # What may differ is no allowance: by how much less it said than it answers, the model is charged.
    shaved = max(0.0, -evaluation.mean_difference)
    return replace(evaluation, bits=(losses + shaved).sum(axis=1) / _LN2, cpu_ms=first + second)


def _ask(
    examinee: Examinee, question: dict[str, object], rows: Tokens, width: int
) -> tuple[NDArray[np.float32] | RefereeEvaluation, int]:
    """Put one question to the model in a sandbox of its own: its numbers, or why there are none; milliseconds.

    ``width`` is how many numbers it answers for each of the ``rows``.
    """
    weights = examinee.checkpoint.read_bytes()
    files = {
        **examinee.files,
        _ENTRY: _PROGRAM.read_bytes(),
        "question.json": json.dumps(question).encode(),
        "weights.safetensors": weights if examinee.shuffled is None else shuffled_weights(weights, examinee.shuffled),
    }
    bench, folder, answers = examinee.bench, examinee.bench.scratch / "answers", len(rows) * width
    limits = examinee.purse.question_limits(examinee.limits, workload=len(rows), weight=ANSWERING)
    job = Job(
        files,
        text=rows.tobytes(),
        foreign=bench.foreign,
        entry=_ENTRY,
        copied=tuple(examinee.files),
        limits=replace(limits, checkpoint_bytes=4 * answers),
        threads=bench.threads,
        device=bench.device,
        metric_source="stdout",
        checkpoint_to=folder,
        python=bench.python,
    )
    outcome = execute(job, level=bench.level, cancelled=bench.cancelled)
    examinee.purse.pay_question(outcome, workload=len(rows), weight=ANSWERING)
    if outcome.status is not RunStatus.OK:
        return _failed(outcome.status, outcome.reason, outcome.cpu_ms), outcome.cpu_ms
    content = outcome.checkpoint.read_bytes() if outcome.checkpoint else b""
    if outcome.checkpoint:
        outcome.checkpoint.unlink()
    if len(content) != 4 * answers:
        return _failed(RunStatus.INVALID, f"it gave {len(content) // 4} numbers where {answers} were asked for"), 0
    return np.frombuffer(content, np.float32), outcome.cpu_ms


def _fault_of_losses(losses: Floats) -> RefereeEvaluation | None:
    if not np.isfinite(losses).all():
        return _failed(RunStatus.INVALID, "a loss is infinite or not a number")
    if losses.min() < -NORMAL_NATS:
        return _failed(RunStatus.INVALID, "a loss is below zero: that is no probability")
    if losses.mean() / _LN2 > MOST_BITS:
        return _failed(RunStatus.DIVERGED, f"{losses.mean() / _LN2:.1f} bits for each token")
    return None


def _positions(seed: bytes, count: int, length: int, challenges: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which documents are asked about, each once, and which position of each; the shorter beginnings first."""
    drawn = np.random.Generator(np.random.PCG64(int.from_bytes(seed, "big")))
    rows = drawn.permutation(count)[:challenges]
    cuts = drawn.integers(0, length, size=challenges)
    order = np.argsort(cuts, kind="stable")
    return rows[order], cuts[order]


def _beginnings(documents: Tokens, rows: NDArray[np.int64], cuts: NDArray[np.int64]) -> Tokens:
    """What the model may see of each: a zero, then the tokens before the position; zeros from there on."""
    length = documents.shape[1]
    visible: Tokens = np.zeros((len(rows), length), documents.dtype)
    visible[:, 1:] = documents[rows, :-1]
    visible[np.arange(length)[None, :] > cuts[:, None]] = 0
    return visible


def _compare(
    committed: Floats, answers: NDArray[np.float32], truth: Tokens, counted: NDArray[np.bool_]
) -> RefereeEvaluation:
    """Hold what was committed against what is answered from the beginning alone.

    ``counted`` says which of them the number is taken from.
    """
    logs = answers.astype(np.float64)
    if np.isnan(logs).any() or np.isposinf(logs).any():
        return _failed(RunStatus.INVALID, "a probability is infinite or not a number")
    highest = logs.max(axis=1)
    with np.errstate(invalid="ignore"):
        totals = highest + np.log(np.exp(logs - highest[:, None]).sum(axis=1))
    if not (np.abs(totals) < NORMAL_NATS).all():
        return _failed(RunStatus.INVALID, "its probabilities do not add up to one")
    challenges = len(truth)
    differences = committed + logs[np.arange(challenges), truth] - totals
    evaluation = RefereeEvaluation(RunStatus.OK, "measured by the referee", np.zeros(0), *_differing(differences))
    for number, mismatches, mean in (_differing(differences), _differing(differences[counted])):
        if not is_honest(number, mismatches, mean):
            reason = (
                f"{mismatches} of {number} losses are not what it says when it sees only what stands before the token "
                f"(by {mean:+.4f} nats on the average)"
            )
            return replace(evaluation, status=RunStatus.INVALID, reason=reason)
    return evaluation


def _differing(differences: Floats) -> tuple[int, int, float]:
    """How many there are, how many of them are too large, and their mean."""
    large = int((~(np.abs(differences) <= MISMATCH_NATS)).sum())
    return len(differences), large, float(np.clip(differences, -1e6, 1e6).mean()) if len(differences) else 0.0


def _failed(status: RunStatus, reason: str, cpu_ms: int = 0) -> RefereeEvaluation:
    return RefereeEvaluation(status, reason, np.zeros(0), cpu_ms=cpu_ms)
