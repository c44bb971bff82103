"""What a graphics card needs of the sandbox, what runs on it cost, and whether changes of known worth show there.

First each thing that is open for a program with a card is closed alone: which of them does CUDA need here? Then runs of
the shipped task and of gpt-small in the sandbox, as nodes do them. Without a card there is nothing to measure.
"""

from __future__ import annotations

import math
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from unittest.mock import patch

import msgspec

from autoresearch.errors import CannotRunHere
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.space import space_of
from autoresearch.run.bench import Bench, Ceiling, task_data
from autoresearch.run.evaluating import ChallengeDraw, Model, examine
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.proving import prove
from autoresearch.run.sandbox import cards, filters, layout
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.settings import Work
from autoresearch.task.loading import shipped_tasks
from autoresearch.task.model import Task
from autoresearch.words import RunStatus

COMPARED = "the same runs on the processor, and the baseline with the same seeds; a gain above zero is better"
# Changes that are known to help a small GPT, and such as are known not to.
HELPFUL, USELESS = ("muon", "relu2", "softcap"), ("adam-eps", "parallel", "tied")
# So many runs are on the card at a time where nobody looks at the clock.
_BESIDE = 4
_CHALLENGES = 32


def measure(*, quick: bool) -> dict[str, float]:
    """``needed_``: 1 where CUDA does not start without that opening. Values in bits a byte, times in seconds.

    ``quick``: the sandbox, and the shipped task at a tenth of its budget.

    Raises:
        CannotRunHere: the card does not compute in the sandbox, or the sandbox does not hold with it.
    """
    found = cards.cards()
    figures = {"cards": float(len(found))}
    if not found:
        return figures
    device, level = found[0].uuid, detect_level()[0]
    cards.make_nodes()
    figures |= needs(device, level)
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        lab, tasks = Lab(device, level, Path(place)), {task.name: task for task in shipped_tasks()}
        figures |= beside_processor(lab, tasks["grammar"], share=0.1 if quick else 1.0)
        if not quick:
            figures |= repeated(lab, tasks["gpt-small"], runs=5)
            figures |= changes(lab, tasks["gpt-small"], (*HELPFUL, *USELESS), pairs=4)
            figures |= repeated(lab, tasks["gpt-small-m"], runs=3)
    return figures


def needs(device: str, level: Level) -> dict[str, float]:
    """The time of the first proof, with the attack, and of another one; which openings CUDA does not do without."""
    first = _seconds(lambda: prove(device, level))
    prove.cache_clear()
    again = _seconds(lambda: prove(device, level))
    figures = {"proof_with_attack_s": first, "proof_s": again}
    for name, closed in openings().items():
        prove.cache_clear()
        with closed:
            figures[f"needed_{name}"] = float(not _computes(device, level))
    prove.cache_clear()
    return figures


def openings() -> dict[str, AbstractContextManager[object]]:
    """What is open for a program with a card, by name: what closes it."""
    made: dict[str, AbstractContextManager[object]] = {
        "memory_files": patch.object(filters, "deny_filter", _without_memory_files),
        "place_on_bus": patch.object(cards.Card, "place", Path("/nonexistent")),
    }
    for node in cards.SHARED_NODES:
        left = tuple(each for each in cards.SHARED_NODES if each != node)
        made[f"node_{node}"] = patch.object(cards, "SHARED_NODES", left)
    for folder in layout.CARD_FOLDERS:
        kept = tuple(each for each in layout.CARD_FOLDERS if each != folder)
        made[f"sys_{folder.name}"] = patch.object(layout, "CARD_FOLDERS", kept)
    for name in sorted(layout.PROC_OF_CARDS):
        made[f"proc_{name}"] = patch.object(layout, "PROC_OF_CARDS", layout.PROC_OF_CARDS - {name})
    return made


_deny_filter = filters.deny_filter


def _without_memory_files(machine: str, *, sockets: bool, memory_files: bool) -> bytes:  # noqa: ARG001
    return _deny_filter(machine, sockets=sockets)


def _computes(device: str, level: Level) -> bool:
    try:
        prove(device, level)
    except CannotRunHere:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Lab:
    """Where runs are done: a device behind a sandbox, a folder for what they leave."""

    device: str
    level: Level
    folder: Path

    def bench(self, name: str, device: str = "") -> Bench:
        """A bench with a scratch folder of its own."""
        scratch = self.folder / "scratch" / name
        scratch.mkdir(parents=True, exist_ok=True)
        ceiling = Ceiling.of(Work(max_seconds=14_400))
        return Bench(self.level, 1, device or self.device, self.folder / "data", scratch, ceiling, foreign=False)

    def run(
        self, task: Task, program: str, number: int, name: str, *, device: str = "", share: float = 1.0
    ) -> JobOutcome:
        """A program with the seed of a number, at a share of the task's budget. Raises RuntimeError where it fails."""
        plan = plan_as_it_stands(task, program, replicate=number)
        plan = msgspec.structs.replace(plan, seed=number, budget=plan.budget * share)
        outcome = Experiment(task, plan, self.bench(name, device)).measure(own=True)
        if outcome.status is not RunStatus.OK:
            raise RuntimeError(
                f"{task.name}, {name}: {outcome.status}: {outcome.reason}\n{outcome.log.decode()[-2000:]}"
            )
        print(f"    {task.name}, {name}: {outcome.value:.6f} in {outcome.duration_ms / 1000:.1f} s", flush=True)
        return outcome


def beside_processor(lab: Lab, task: Task, *, share: float) -> dict[str, float]:
    """One program and seed twice on the card and once on the processor: by how much the values differ.

    Also the model of the card, measured by the referee on either.
    """
    program = task.baseline.decode()
    first = lab.run(task, program, 0, "first", share=share)
    again = lab.run(task, program, 0, "again", share=share)
    other = lab.run(task, program, 0, "processor", device=cards.PROCESSOR, share=share)
    assert first.checkpoint is not None, "a run that is measured by the referee leaves its model"
    model, found = Model(program, first.checkpoint), []
    for device in (lab.device, cards.PROCESSOR):
        bench = lab.bench(f"referee-{device}", device)
        examined = examine(task, model, bench, challenge=ChallengeDraw(secrets.token_bytes(32), _CHALLENGES))
        found.append(_number(examined.value))
        print(
            f"    {task.name}, model of the card asked on {device}: {found[-1]:.8f}, {examined.mismatches} mismatches"
        )
    return {
        f"{task.name}_again_apart": abs(_number(first.value) - _number(again.value)),
        f"{task.name}_processor_apart": abs(_number(first.value) - _number(other.value)),
        f"{task.name}_referee_apart": abs(found[0] - found[1]),
        f"{task.name}_over_processor": first.duration_ms / other.duration_ms,
    }


def repeated(lab: Lab, task: Task, *, runs: int, share: float = 1.0) -> dict[str, float]:
    """The baseline with several seeds, one after the other."""
    task_data(task, lab.bench("data"))
    outcomes = [lab.run(task, task.baseline.decode(), number, f"seed-{number}", share=share) for number in range(runs)]
    training = fmean(each.answered_ms for each in outcomes) / 1000
    values = [_number(each.value) for each in outcomes]
    return {
        f"{task.name}_mean": fmean(values),
        f"{task.name}_noise": stdev(values),
        f"{task.name}_s": fmean(each.duration_ms for each in outcomes) / 1000,
        f"{task.name}_training_s": training,
        f"{task.name}_tokens_a_second": fmean(each.metrics["tokens"] for each in outcomes) / training,
        f"{task.name}_tflops_a_second": fmean(each.metrics["flops"] for each in outcomes) / training / 1e12,
        f"{task.name}_card_memory_mib": max(each.metrics.get("card_memory_mib", 0.0) for each in outcomes),
        f"{task.name}_memory_mib": max(each.peak_memory_bytes for each in outcomes) / 2**20,
    }


def changes(lab: Lab, task: Task, names: Sequence[str], *, pairs: int, share: float = 1.0) -> dict[str, float]:
    """By how much each of a task's changes is better than its baseline, from pairs with the same seeds."""
    space = space_of(task.baseline.decode(), patches_of(task))
    programs = {"baseline": task.baseline.decode()}
    for name in names:
        built = space.build(space.default() | {f"+{name}": True})
        assert built is not None, f"the task has the change {name}"
        programs[name] = built

    def value(job: tuple[str, int]) -> float:
        name, number = job
        return _number(lab.run(task, programs[name], number, f"{name}-{number}", share=share).value)

    jobs = [(name, number) for number in range(pairs) for name in programs]
    with ThreadPoolExecutor(_BESIDE) as pool:
        values = dict(zip(jobs, pool.map(value, jobs), strict=True))
    figures: dict[str, float] = {}
    for name in names:
        gains = [values["baseline", number] - values[name, number] for number in range(pairs)]
        figures[f"gain_{name}"] = fmean(gains)
        figures[f"gain_{name}_error"] = stdev(gains) / math.sqrt(pairs)
    return figures


def _number(value: float | None) -> float:
    assert value is not None, "a run that is ok has a value"
    return value


def _seconds(what: Callable[[], object]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began
