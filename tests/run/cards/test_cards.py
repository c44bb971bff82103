"""Programs on a card: what its walls open, and whose fault a failure is. The driver is a stand-in, the sandbox real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from autoresearch_cli.acts.checks import check_cards

from autoresearch.errors import CannotRunHere
from autoresearch.run.bench import Bench, Ceiling, device_name
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.folder import Conditions
from autoresearch.run.preflight import preflight
from autoresearch.run.proving import fault_of_card, prove
from autoresearch.run.runner import RunSite, make_bench
from autoresearch.run.sandbox.cards import card_of, read_card, wait_for_memory
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.run.sandbox.probes import probe_sandbox
from autoresearch.settings import Work
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.words import Result, RunStatus
from tests.daemon.toy import write_toy_task
from tests.run.cards.conftest import UUID, Machine
from tests.run.sandbox.support import run

# A program that holds the card for as long as a look takes, as one does that trains on it.
ON_CARD = """
import ctypes
import os
import time

import prepare

X = 0.9  # float [0.0, 1.0]

assert os.environ["AUTORESEARCH_DEVICE"] == "cuda:0"
if code := ctypes.CDLL("libcuda.so.1").cuInit(0):
    raise RuntimeError(f"CUDA error {code}")
prepare.progress(X)
time.sleep(1)
{then}
prepare.report(X, steps=1)
"""
TORCH_SAYS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB "
    "of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.57 GiB memory in use."
)
OUT_OF_MEMORY = f"import sys\nsys.exit({TORCH_SAYS!r})"
SetState = Callable[[str], None]


@pytest.fixture
def bench(tmp_path: Path, set_state: SetState) -> Bench:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    return Bench(Level.BUBBLEWRAP, 1, UUID, tmp_path / "cache", tmp_path / "scratch")


def measured(bench: Bench, then: str = "", program: str = ON_CARD) -> JobOutcome:
    folder = bench.scratch / "task"
    task = load_task(write_toy_task(folder, ON_CARD.replace("{then}", "")))
    pin_baseline(folder)
    return Experiment(task, plan_as_it_stands(task, program.replace("{then}", then)), bench).measure(own=True)


@pytest.mark.slow
def test_a_kernel_proves_a_card(set_state: SetState) -> None:
    set_state("used 1024")
    memory = prove(UUID, Level.BUBBLEWRAP)
    assert memory.total - memory.free == 1 << 30


@pytest.mark.slow
def test_every_probe_is_blocked_for_a_program_with_a_card(machine: Machine, set_state: SetState) -> None:
    machine.add(1, "0000:02:00.0", UUID.replace("d4", "aa"))
    results = probe_sandbox(Level.BUBBLEWRAP, device=UUID)
    assert [(result.name, result.detail) for result in results if not result.blocked] == []
    details = {result.name: result.detail for result in results}
    assert "File too large" in details["uncounted memory files"]
    assert details["other graphics cards"] == "none of them"


def test_a_program_sees_its_card_and_its_folders_alone(machine: Machine, set_state: SetState) -> None:
    machine.add(1, "0000:02:00.0", UUID.replace("d4", "aa"))
    source = f"""
    from pathlib import Path
    bus = Path({str(machine.folder / "bus")!r})
    nodes = sorted(path.name for path in Path("/dev").glob("nvidia*"))
    print(nodes, os.listdir(bus), (bus / "0000:01:00.0" / "vendor").read_text().strip(), os.listdir("/sys"))
    succeed()
    """
    outcome = run(source, Level.BUBBLEWRAP, device="cuda:0")
    seen = outcome.log.decode()
    assert "['nvidia-uvm', 'nvidia0', 'nvidiactl'] ['0000:01:00.0'] 0x10de" in seen, seen
    outside = run("open('/sys/bus/pci/devices')", Level.BUBBLEWRAP)
    assert "No such file" in outside.log.decode()


def test_landlock_gives_no_card_and_says_so(one_card: Machine, tmp_path: Path) -> None:
    with pytest.raises(CannotRunHere, match="level S1"):
        run("succeed()", Level.LANDLOCK, device=UUID)
    conditions = Conditions(ceiling=Ceiling.of(Work()), device="cuda")
    place = RunSite(Level.LANDLOCK, tmp_path / "cache", tmp_path / "environments")
    plain = make_bench(load_task(write_toy_task(tmp_path / "task")), conditions, place, tmp_path)
    assert plain.device == "cpu", "a task that asks for no card is run all the same"
    with pytest.raises(CannotRunHere, match="level S1"):
        make_bench(load_task(write_toy_task(tmp_path / "asks", ON_CARD)), conditions, place, tmp_path)


@pytest.mark.parametrize(
    ("state", "message", "hint"),
    [
        ("304", r"cuInit says CUDA_ERROR_OPERATING_SYSTEM \(304\)", "restart"),
        ("suspended", r"cuInit says CUDA_ERROR_UNKNOWN \(999\)", "nvidia_uvm"),
        ("full", r"cuCtxCreate_v2 says CUDA_ERROR_OUT_OF_MEMORY \(2\)", "another program"),
        ("lost", r"cuCtxSynchronize says CUDA_ERROR_LAUNCH_FAILED \(719\)", "nvidia-smi"),
        ("wrong", "its result of a first kernel is wrong", "nvidia-smi"),
    ],
)
def test_a_card_that_does_not_compute_is_said_before_anything_is_run(
    set_state: SetState, tmp_path: Path, state: str, message: str, hint: str
) -> None:
    set_state(state)
    conditions = Conditions(ceiling=Ceiling.of(Work()), device="cuda")
    task = load_task(write_toy_task(tmp_path / "task"))
    place = RunSite(Level.BUBBLEWRAP, tmp_path / "cache", tmp_path / "environments")
    with pytest.raises(CannotRunHere, match=message) as refused:
        make_bench(task, conditions, place, tmp_path)
    assert hint in refused.value.hint
    set_state("ok")
    assert make_bench(task, conditions, place, tmp_path).device == UUID


def test_the_doctor_says_what_a_card_can_not_do(
    set_state: SetState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path))
    set_state("used 4096")
    (check,) = check_cards(Level.BUBBLEWRAP)
    assert (check.name, check.result) == ("cuda:0", Result.OK)
    assert "NVIDIA Stand-in 24G computes in the sandbox, 20480 of 24576 MiB are free" in check.detail
    set_state("suspended")
    prove.cache_clear()
    (check,) = check_cards(Level.BUBBLEWRAP)
    assert (check.result, "nvidia_uvm" in check.fix) == (Result.FAILED, True)
    monkeypatch.setenv("AUTORESEARCH_WORK_DEVICE", "gpu")
    assert not list(check_cards(Level.BUBBLEWRAP))


def test_without_the_drivers_library_that_is_said(set_state: SetState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with pytest.raises(CannotRunHere, match="driver library can't be loaded") as refused:
        prove(UUID, Level.BUBBLEWRAP)
    assert "libcuda1" in refused.value.hint


def test_a_run_on_a_card_is_recorded_with_it(bench: Bench) -> None:
    outcome = measured(bench)
    assert (outcome.status, outcome.device) == (RunStatus.OK, "NVIDIA Stand-in 24G"), outcome.reason
    assert outcome.environment.items() >= {"card": UUID, "driver": "570.86.15"}.items()


@pytest.mark.slow
def test_power_limit_and_what_slowed_a_card_are_in_the_record(
    bench: Bench, smi: Callable[[str], None], tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    counters = "$((n * 7000000)), 0, 250000, $((n * 1500000))"
    smi(f"echo $* >> {calls}; n=$(wc -l < {calls}); echo 600, 24576, 285.00, {counters}")
    outcome = measured(bench)
    assert outcome.environment.items() >= {"power_limit": "285 W", "slowed_by": "the power limit 7 s, heat 2 s"}.items()
    assert UUID in calls.read_text()
    smi('case "$*" in *counters*) echo not a valid field; exit 2;; esac; echo 600, 24576, [N/A]')
    assert not {"power_limit", "slowed_by"} & set(measured(bench).environment), "an old driver, and a card without"


def test_a_run_ends_when_its_card_has_its_memory_back(
    one_card: Machine, smi: Callable[[str], None], tmp_path: Path
) -> None:
    (calls := tmp_path / "calls").touch()
    smi(f"echo >> {calls}; n=$(wc -l < {calls}); [ $n -gt 2 ] && [ $n -lt 7 ] && u=9000; echo ${{u:-500}}, 24576, 285")
    card = card_of(UUID)
    assert card is not None
    before = read_card(card)
    after = wait_for_memory(card, before, 60)
    assert (after and after.used_mib, len(calls.read_text().splitlines())) == (500, 8), "two questions each time"
    calls.write_text("\n" * 2)
    after = wait_for_memory(card, before, 0)
    assert after, "what is not free at last belongs to somebody else"
    assert after.used_mib == 9000


@pytest.mark.slow
def test_a_run_that_asks_for_a_card_and_computes_on_the_processor_is_none(bench: Bench) -> None:
    program = "import prepare\n\nX = 0.9  # float [0.0, 1.0]\n{then}\nprepare.report(X, steps=1)\n"
    outcome = measured(bench, program=f"# device = 'cuda' if there is one\n{program}")
    assert outcome.status is RunStatus.COULD_NOT_RUN
    assert outcome.reason == "it was given NVIDIA Stand-in 24G and computed on the processor"
    assert outcome.value is None
    plain = measured(bench, program=program)
    assert (plain.status, plain.device) == (RunStatus.OK, device_name("cpu"))
    assert "card" not in plain.environment


def test_a_baseline_that_leaves_its_card_is_found_before_a_claim(bench: Bench, tmp_path: Path) -> None:
    train = "import time\nimport prepare\n# cuda\nprepare.progress(1)\ntime.sleep(30)\n"
    with pytest.raises(CannotRunHere, match="computed on the processor"):
        preflight(load_task(write_toy_task(tmp_path / "task", train)), bench)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("state", "then", "status", "reason"),
    [
        ("ok", "raise ValueError('a bad idea')", RunStatus.CRASHED, "a bad idea"),
        ("lost", "raise ValueError('unspecified launch failure')", RunStatus.COULD_NOT_RUN, "does not compute"),
        ("ok", OUT_OF_MEMORY, RunStatus.OUT_OF_MEMORY, "it used 22.57 GiB of its card, which has 23.68 GiB"),
        ("used 20000", OUT_OF_MEMORY, RunStatus.COULD_NOT_RUN, "another program took 20000 MiB"),
        ("lost", OUT_OF_MEMORY, RunStatus.COULD_NOT_RUN, "CUDA_ERROR_LAUNCH_FAILED"),
    ],
    ids=["the idea's", "a lost card", "out of memory", "a card that another fills", "lost when memory ran out"],
)
def test_whose_fault_a_failure_is(
    bench: Bench, set_state: SetState, state: str, then: str, status: RunStatus, reason: str
) -> None:
    prove(UUID, Level.BUBBLEWRAP)
    # What happens to the card while the program runs; the stand-in notices at its next start.
    outcome = measured(bench, f"open('/dev/nvidia0', 'w').write({state!r})\n{then}")
    assert (outcome.status, reason in outcome.reason) == (status, True), outcome.reason
    assert outcome.value is None
    assert outcome.device == "NVIDIA Stand-in 24G"


@pytest.mark.slow
def test_a_card_that_failed_is_tried_again_before_the_next_run(set_state: SetState) -> None:
    prove(UUID, Level.BUBBLEWRAP)
    assert fault_of_card(UUID, Level.BUBBLEWRAP) == ""
    set_state("lost")
    assert "CUDA_ERROR_LAUNCH_FAILED" in fault_of_card(UUID, Level.BUBBLEWRAP)
    with pytest.raises(CannotRunHere):
        prove(UUID, Level.BUBBLEWRAP)


def test_memory_of_the_machine_that_is_used_up_is_said_with_its_limit() -> None:
    outcome = run("raise MemoryError", Level.NONE, foreign=False)
    assert outcome.status is RunStatus.OUT_OF_MEMORY
    assert outcome.reason.startswith("the program stopped: MemoryError: it used ")
    assert outcome.reason.endswith(" MiB of memory, the limit is 256 MiB")
