"""Whether a graphics card computes inside the sandbox: where it does not, that is no program's fault."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from autoresearch.errors import CannotRunHere
from autoresearch.run.sandbox.cards import PROCESSOR, card_of
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import MIB, Job, JobLimits, JobOutcome, Level
from autoresearch.run.sandbox.probes import ProbeResult, probe_sandbox
from autoresearch.words import RunStatus

_KERNEL = Path(__file__).with_name("sandbox") / "kernel.py"
_SECONDS = 60
# Other programs may hold a little more of the card's memory after a run than before it.
_SLACK = 0.05
_AWAY = "autoresearch node config set work.device cpu"
# What the driver says, and what helps.
_HINTS = {
    "(2)": "another program holds its memory, and nvidia-smi shows which",
    "(304)": f"restart the machine if the driver was updated, or: {_AWAY}",
    "(999)": "after a suspend: sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm",
    "can't be loaded": f"install the driver's CUDA library (Debian: apt install libcuda1), or: {_AWAY}",
}


class _PrintedProof(msgspec.Struct):
    """What the program in the sandbox prints."""

    uuid: str = ""
    free: int = 0
    total: int = 0
    error: str = ""


class Memory(NamedTuple):
    """Bytes of a card's memory: those that are free while nothing is run here, and all."""

    free: int
    total: int


@functools.cache
def prove(device: str, level: Level) -> Memory:
    """Run one kernel on a card inside the sandbox; once for as long as this process lives or until a run fails.

    Raises:
        CannotRunHere: it does not compute; the sentence has the driver's own word, the hint what helps. Or what is open
            for it lets a program out of the sandbox.
    """
    card = card_of(device)
    assert card is not None, "asked of cards only"
    if level > Level.NONE and (leaks := _leaks(device, level)):
        sentence = f"the sandbox does not hold with {card.model}: {leaks[0].name}: {leaks[0].detail}"
        raise CannotRunHere(sentence, hint=_AWAY)
    job = Job(
        {_KERNEL.name: _KERNEL.read_bytes()},
        foreign=False,
        entry=_KERNEL.name,
        limits=JobLimits(seconds=_SECONDS),
        device=device,
        metric_source="stdout",
    )
    outcome = execute(job, level=level)
    answer = _PrintedProof(error=outcome.reason)
    if outcome.status is RunStatus.OK:
        answer = msgspec.json.decode(outcome.log.splitlines()[-1], type=_PrintedProof)
    if not answer.error and answer.uuid.lower() == card.uuid.lower():
        return Memory(answer.free, answer.total)
    reason = answer.error or f"it shows another card, {answer.uuid}"
    hint = next((hint for sign, hint in _HINTS.items() if sign in reason), f"nvidia-smi shows its state, or: {_AWAY}")
    raise CannotRunHere(f"{card.model} ({card.uuid}) does not compute in the sandbox: {reason}", hint=hint)


@functools.cache
def _leaks(device: str, level: Level) -> tuple[ProbeResult, ...]:
    return tuple(probe for probe in probe_sandbox(level, device=device) if not probe.blocked)


def fault_of_card(device: str, level: Level, status: RunStatus = RunStatus.CRASHED) -> str:
    """Why a failure on a device says nothing about its program; empty on a card that computes as before."""
    if device == PROCESSOR:
        return ""
    try:
        before = prove(device, level)
        prove.cache_clear()
        after = prove(device, level)
    except CannotRunHere as error:
        return str(error)
    taken = before.free - after.free
    if status is RunStatus.OUT_OF_MEMORY and taken > _SLACK * after.total:
        return f"another program took {taken // MIB} MiB of the card's memory meanwhile"
    return ""


def left_card(device: str, files: Iterable[bytes], outcome: JobOutcome) -> str:
    """Why a run is none on the card that it was given: it asks for one, and never had it open; empty otherwise."""
    card = card_of(device)
    if card is None or outcome.has_used_card or not asks_for_card(files):
        return ""
    return f"it was given {card.model} and computed on the processor"


def asks_for_card(files: Iterable[bytes]) -> bool:
    """Whether a program or its harness speaks of a card: such a run must not compute on the processor unsaid."""
    return any(b"AUTORESEARCH_DEVICE" in text or b"cuda" in text.lower() for text in files)
