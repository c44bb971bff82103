"""Whatever a program does, it becomes an outcome, and nothing of it stays alive."""

from __future__ import annotations

import secrets
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import JobLimits, Level
from tests.run.sandbox.support import MIB, SMALL, job, processes_with, run

BRIEF = JobLimits(seconds=0.5, memory_bytes=256 * MIB, disk_bytes=16 * MIB, processes=16, output_bytes=65536)


def test_a_good_run_reports_its_value_metrics_and_curve(level: Level) -> None:
    source = """
    report(event="progress", fraction=0.5, step=3, loss=2.0)
    report(event="result", status="ok", value=1.25, metrics={"steps": 3, "flops": 1e11}, curve=[3.0, 2.0])
    print("out"); print("err", file=sys.stderr)
    """
    outcome = run(source, level)
    assert (outcome.status, outcome.value) == ("ok", 1.25)
    assert outcome.metrics == {"steps": 3.0, "flops": 1e11}
    assert outcome.curve == [3.0, 2.0]
    assert outcome.log == b"out\nerr\n"
    assert outcome.sandbox == level
    assert outcome.cpu_ms > 0
    assert outcome.peak_memory_bytes > 0


def test_a_run_gets_its_environment_and_nothing_of_ours(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "canary")
    source = """
    assert "SECRET_TOKEN" not in os.environ
    names = ("SEED", "BUDGET", "STOP_AT", "THREADS", "DEVICE")
    assert [os.environ["AUTORESEARCH_" + n] for n in names] == ["7", "20000000000.0", "0.5", "2", "cpu"]
    assert os.environ["OMP_NUM_THREADS"] == "2" and "AUTORESEARCH_CHECKPOINT_FD" not in os.environ
    assert sys.argv[1:] == ["--fast", "x y"]
    import harness
    open("scratch.txt", "w").write("writable")
    succeed(harness.VALUE)
    """
    base = job(source, seed=7, budget=2e10, stop_at=0.5, threads=2, arguments=("--fast", "x y"))
    outcome = execute(replace(base, files={**base.files, "harness.py": b"VALUE = 2.5\n"}), level=level)
    assert (outcome.status, outcome.value) == ("ok", 2.5), outcome.log


def test_it_is_not_root_and_has_no_capability(level: Level) -> None:
    outcome = run("assert os.getuid() != 0 and os.geteuid() != 0; succeed()", level)
    assert outcome.status == "ok"
    assert run("os.setuid(0); succeed()", level).status == "crashed"


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("while True: pass", "timed_out"),
        (
            "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile 1: time.sleep(1)",
            "timed_out",
        ),
        ("for fd in range(64):\n  try: os.close(fd)\n  except OSError: pass\nwhile 1: time.sleep(1)", "timed_out"),
        ("succeed()\nwhile 1: time.sleep(1)", "timed_out"),
    ],
    ids=["loops", "ignores-signals", "closes-its-descriptors", "lingers-after-its-result"],
)
def test_what_never_ends_is_stopped(level: Level, source: str, status: str) -> None:
    outcome = run(source, level, limits=BRIEF)
    assert outcome.status == status
    assert outcome.value is None
    assert "0.5 s" in outcome.reason


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("sys.exit(0)", "crashed"),
        ("os._exit(3)", "crashed"),
        ("raise ValueError('no')", "crashed"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
        ("os.abort()", "crashed"),
        ("os.kill(0, signal.SIGKILL)", "crashed"),
        (
            "for p in (os.getppid(), 1):\n  try: os.kill(p, signal.SIGKILL)\n  except OSError: pass\nsys.exit(1)",
            "crashed",
        ),
        ("for fd in range(64):\n  try: os.close(fd)\n  except OSError: pass", "crashed"),
        ("print('[Errno 28] No space left on device'); x = bytearray(1 << 45)", "out_of_memory"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("succeed(); sys.exit(4)", "crashed"),
        ("report(event='result', status='diverged', reason='the loss became nan'); sys.exit(1)", "diverged"),
        ("report(event='result', status='invalid', reason='peeked'); sys.exit(1)", "invalid"),
        ("succeed(); succeed(2.0)", "invalid"),
    ],
)
def test_early_ends_have_a_status_and_a_reason(level: Level, source: str, status: str) -> None:
    outcome = run(source, level)
    assert outcome.status == status, outcome
    assert outcome.reason
    assert "\n" not in outcome.reason
    assert outcome.value is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"event": "result", "status": "ok", "value": NaN}',
        b'{"event": "result", "status": "ok", "value": 1e999}',
        b'{"event": "result", "status": "ok", "value": Infinity, "metrics": {}}',
        b'{"event": "result", "status": "ok"}',
        b'{"event": "result", "status": "perfect", "value": 1}',
        b'{"event": "result", "status": "ok", "value": "1"}',
        b"[" * 50000,
        b'{"event":' * 5000,
        b"\xff\xfe\x00garbage",
        b"null",
        b'{"event": "result", "status": "ok", "value": 1, "curve": [' + b"1," * 100 + b"1]}",
    ],
)
def test_garbage_on_the_result_channel_is_a_crash_with_a_reason(level: Level, line: bytes) -> None:
    outcome = run(f"os.write(int(os.environ['AUTORESEARCH_RESULT_FD']), {line!r} + b'\\n')", level)
    assert outcome.status == "crashed"
    assert outcome.reason
    assert outcome.value is None


def test_good_events_between_garbage_count(level: Level) -> None:
    source = """
    fd = int(os.environ["AUTORESEARCH_RESULT_FD"])
    os.write(fd, b"\\n\\x00\\n{}\\n[]\\n" + b"9" * 5000 + b"\\n")
    succeed(3.0)
    os.write(fd, b"no newline at the end")
    """
    assert run(source, level).value == 3.0


def test_a_flood_on_the_result_channel_is_stopped(level: Level) -> None:
    source = "fd = int(os.environ['AUTORESEARCH_RESULT_FD'])\nwhile True: os.write(fd, b'x' * 65536)"
    assert run(source, level).status == "output_limit"


def test_much_text_costs_no_number_and_head_and_tail_are_kept(level: Level) -> None:
    source = "print('first')\nfor n in range(1 << 13): print('%01023d' % n)\nprint('score: 0.5')"
    last = {"metric_source": "stdout", "metric_name": "score"}
    outcome = run(source, level, **last)
    assert (outcome.status, outcome.value) == ("ok", 0.5)
    assert outcome.log.startswith(b"first\n")
    assert b"left out" in outcome.log
    assert len(outcome.log) < SMALL.output_bytes + 100


@pytest.mark.slow
def test_a_gigabyte_of_text_costs_no_memory(level: Level) -> None:
    source = "line = 'x' * 1023\nfor n in range(1 << 20): print(line)\nsucceed(2.0)"
    outcome = run(source, level, limits=replace(SMALL, seconds=300))
    assert (outcome.status, outcome.value) == ("ok", 2.0)
    assert len(outcome.log) < SMALL.output_bytes + 100


@pytest.mark.slow
def test_text_without_end_ends_with_the_time(level: Level) -> None:
    outcome = run("while True: print('x' * 10000)", level, limits=BRIEF)
    assert (outcome.status, len(outcome.log) < BRIEF.output_bytes + 100) == ("timed_out", True)


OF_CARD = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB "
    "of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.57 GiB memory in use.": (
        "it used 22.57 GiB of its card, which has 23.68 GiB"
    ),
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.00 GiB total capacity; 8.50 GiB already "
    "allocated; 512.00 MiB free; 8.60 GiB reserved in total by PyTorch)": (
        "it used 8.50 GiB of its card, which has 10.00 GiB"
    ),
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.00 GiB total capacity; …)": "its card has 10.00 GiB",
    "RuntimeError: CUDA error: CUDA_ERROR_OUT_OF_MEMORY": "on its card",
}


@pytest.mark.parametrize("message", OF_CARD)
def test_memory_that_a_card_lacks_is_not_the_machines(level: Level, message: str) -> None:
    outcome = run(f"raise SystemExit({message!r})", level)
    assert (outcome.status, OF_CARD[message] in outcome.reason) == ("out_of_memory", True), outcome.reason
    assert "the limit is" not in outcome.reason


@pytest.mark.slow
def test_eaten_memory_is_stopped(level: Level) -> None:
    outcome = run("a = []\nwhile True: a.append(bytearray(1 << 20)); time.sleep(0.0005)", level)
    assert outcome.status == "out_of_memory"
    assert outcome.peak_memory_bytes > 128 * MIB


@pytest.mark.slow
def test_memory_spread_over_processes_counts_together(level: Level) -> None:
    source = """
    for _ in range(6):
        if os.fork() == 0:
            a = bytearray(64 << 20)
            time.sleep(60)
    time.sleep(60)
    """
    assert run(source, level).status == "out_of_memory"


@pytest.mark.slow
def test_memory_shared_by_forks_counts_once(level: Level) -> None:
    source = """
    a = bytearray(os.urandom(1 << 20) * 100)
    children = [os.fork()]
    if children[-1]: children.append(os.fork())
    if all(children):
        for c in children: os.waitpid(c, 0)
        succeed()
    else:
        time.sleep(0.7); os._exit(0)
    """
    assert run(source, level).status == "ok"


def test_a_fork_bomb_is_bounded_and_gone(level: Level) -> None:
    marker = secrets.token_hex(8)
    source = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try: os.fork()
        except OSError: time.sleep(0.01)
    """
    most = [0]
    over = threading.Event()

    def count() -> bool:
        most[0] = max(most[0], len(processes_with(marker)))
        return over.is_set()

    outcome = execute(job(source, arguments=(marker,)), level=level, cancelled=count)
    assert outcome.status == "process_limit"
    assert most[0] < 200
    assert processes_with(marker) == []


def test_a_thread_bomb_is_bounded(level: Level) -> None:
    source = """
    import threading
    for _ in range(5000): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    succeed()
    """
    assert run(source, level).status == "process_limit"


@pytest.mark.parametrize("folder", [".", "/dev/shm"])
def test_a_full_disk_is_an_outcome(level: Level, folder: str) -> None:
    if folder == "/dev/shm" and level is not Level.BUBBLEWRAP:
        pytest.skip("not writable at this level at all")
    source = f"""
    for n in range(64):
        with open(f"{folder}/{{n}}", "wb") as f: f.write(bytes(1 << 20)); f.flush()
        time.sleep(0.01)
    time.sleep(60)
    """
    assert run(source, level).status == "disk_limit"


@pytest.mark.slow
def test_millions_of_empty_files_are_stopped(level: Level) -> None:
    limits = replace(SMALL, files=2_000)
    assert run("for n in range(1 << 22): open(str(n), 'w').close()", level, limits=limits).status == "disk_limit"


def test_deleted_files_that_stay_open_count(level: Level) -> None:
    source = """
    held = []
    for n in range(64):
        held.append(open("x", "wb")); held[-1].write(bytes(1 << 20)); held[-1].flush(); os.unlink("x")
        time.sleep(0.01)
    time.sleep(60)
    """
    assert run(source, level).status == "disk_limit"


def test_daemons_die_with_the_run(level: Level) -> None:
    marker = secrets.token_hex(8)
    source = """
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(n, signal.SIG_IGN)
                while True: time.sleep(1)
            os._exit(0)
    time.sleep(0.3)
    succeed()
    """
    assert execute(job(source, arguments=(marker,)), level=level).status == "ok"
    assert processes_with(marker) == []


def test_a_checkpoint_arrives_and_an_oversized_one_does_not(level: Level, tmp_path: Path) -> None:
    write = (
        "fd = int(os.environ['AUTORESEARCH_CHECKPOINT_FD'])\nfor _ in range({}): os.write(fd, b'w' * 65536)\nsucceed()"
    )
    good = run(write.format(8), level, checkpoint_to=tmp_path)
    assert good.status == "ok"
    assert good.checkpoint is not None
    assert good.checkpoint.read_bytes() == b"w" * 8 * 65536
    large = run(write.format(100), level, checkpoint_to=tmp_path / "other")
    assert (large.status, large.checkpoint) == ("output_limit", None)
    assert list((tmp_path / "other").iterdir()) == []


def test_a_failed_run_leaves_no_checkpoint(level: Level, tmp_path: Path) -> None:
    source = "os.write(int(os.environ['AUTORESEARCH_CHECKPOINT_FD']), b'w'); sys.exit(1)"
    assert run(source, level, checkpoint_to=tmp_path).checkpoint is None
    assert list(tmp_path.iterdir()) == []


def test_cancelling_ends_everything(level: Level) -> None:
    marker = secrets.token_hex(8)
    seen: list[RunProgress] = []
    source = "report(event='progress', fraction=0.25, step=1)\nos.fork()\nwhile True: time.sleep(1)"
    outcome = execute(
        job(source, arguments=(marker,)), level=level, on_progress=seen.append, cancelled=lambda: bool(seen)
    )
    assert outcome.status == "cancelled"
    assert seen[0].fraction == 0.25
    assert processes_with(marker) == []


def test_a_failing_callback_leaves_no_process_behind(level: Level) -> None:
    marker = secrets.token_hex(8)

    def fail(progress: RunProgress) -> None:
        raise RuntimeError(str(progress))

    source = "report(event='progress', fraction=0.25)\nwhile True: time.sleep(1)"
    with pytest.raises(RuntimeError):
        execute(job(source, arguments=(marker,)), level=level, on_progress=fail)
    assert processes_with(marker) == []


@pytest.mark.slow
def test_descriptors_and_folders_do_not_pile_up(level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("succeed()", level)
    before = sorted(entry.name for entry in Path("/proc/self/fd").iterdir())
    for _ in range(5):
        run("succeed()", level)
    assert sorted(entry.name for entry in Path("/proc/self/fd").iterdir()) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_folders_that_resist_removal_are_removed(level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = """
    os.mkdir("closed"); open("closed/x", "w").close(); os.chmod("closed", 0)
    for _ in range(1500): os.mkdir("d"); os.chdir("d")
    succeed()
    """
    assert run(source, level).status == "ok"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_runs_side_by_side_do_not_disturb_each_other(level: Level) -> None:
    source = "children = []\nfor n in range(10):\n  p = os.fork()\n  if not p: time.sleep(0.3); os._exit(0)\nsucceed()"
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda _: run(source, level).status, range(4)))
    assert outcomes == ["ok"] * 4


@pytest.mark.slow
def test_what_a_program_prints_last_of_its_metric_is_its_value(level: Level) -> None:
    source = "print('step 1 loss 3.0\\nstep 2 loss 2.0\\n---\\nval_bpb: 1.5\\nsteps: 3')"
    outcome = run(source, level, metric_source="stdout", metric_name="val_bpb")
    assert (outcome.status, outcome.value, outcome.metrics["steps"]) == ("ok", 1.5, 3.0)
    assert outcome.curve == [3.0, 2.0], "of what it printed"
    for bad, status in (
        ("print('val_bpb: 2\\nval_bpb: nan')", "diverged"),
        ("print('val_bpb: 2\\nval_bpb:')", "diverged"),
        ("print('---\\nval_bpb: x')", "crashed"),
        ("print('---\\nother: 1')", "crashed"),
    ):
        outcome = run(bad, level, metric_source="stdout", metric_name="val_bpb")
        assert (outcome.status, outcome.value) == (status, None)
        assert "val_bpb" in outcome.reason


def test_data_and_mounts_are_readable_and_not_writable(
    level: Level, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    data, mount, cache = (tmp_path / name for name in ("data", "mount", "home/.cache/tokens"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in (data, mount, cache):
        folder.mkdir(parents=True)
        (folder / "x").write_text("content")
    source = f"""
    for folder in (os.environ["AUTORESEARCH_DATA"], {str(mount)!r}, os.path.expanduser("~/.cache/tokens")):
        assert open(folder + "/x").read() == "content"
        try: open(folder + "/y", "w")
        except OSError: pass
        else: raise SystemExit(1)
    succeed()
    """
    outcome = run(source, level, data=data, mounts=(mount, Path("~/.cache/tokens")))
    assert outcome.status == "ok", outcome.log


_SPIN = """
def spin(seconds):
    while time.process_time() < seconds: pass
    os._exit(0)
"""


@pytest.mark.slow
def test_the_processor_time_of_children_whose_end_is_ignored_is_counted(level: Level) -> None:
    source = """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in range(5):
        if (pid := os.fork()) == 0: spin(0.1)
        os.waitpid(pid, 0)
    succeed()
    """
    outcome = run(_SPIN + textwrap.dedent(source), level)
    assert outcome.status == "ok", outcome.log
    assert outcome.cpu_ms >= 500


@pytest.mark.slow
def test_the_processor_time_of_what_is_left_behind_is_counted(level: Level) -> None:
    source = """
    read, write = os.pipe()
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while time.process_time() < 0.1: pass
                os.write(write, b"x")
                time.sleep(60)
            os._exit(0)
        os.wait()
        os.read(read, 1)
    succeed()
    """
    outcome = run(source, level)
    assert outcome.status == "ok", outcome.log
    assert outcome.cpu_ms >= 400


def test_child_processes_work_as_usual(level: Level) -> None:
    source = """
    import multiprocessing, subprocess
    said = subprocess.run(["/bin/sh", "-c", "(exit 3); echo $? | cat"], capture_output=True, text=True)
    assert said.stdout == "3\\n", said
    assert subprocess.run(["/bin/false"]).returncode == 1
    context = multiprocessing.get_context("fork")
    child = context.Process(target=sys.exit, args=(4,))
    child.start(); child.join()
    assert child.exitcode == 4
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
    succeed()
    """
    outcome = run(source, level)
    assert outcome.status == "ok", outcome.log


def test_no_clock_or_counter_of_the_kernel_and_no_name_of_the_machine_is_read(level: Level) -> None:
    source = """
    for name in ("stat", "uptime", "loadavg", "vmstat", "cmdline", "version", "sys/kernel/random/boot_id"):
        try: text = open("/proc/" + name).read()
        except OSError: text = ""
        assert not text, (name, text)
    print(os.uname().nodename)
    succeed()
    """
    outcome = run(source, level)
    assert outcome.status == "ok", outcome.log
    if level is Level.BUBBLEWRAP:
        assert outcome.log == b"run\n"


def test_inputs_are_at_their_place_in_the_working_folder_and_not_writable(level: Level, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "my data/été").mkdir(parents=True)
    (tmp_path / "my data/été/x").write_text("content")
    (tmp_path / "large.bin").write_text("content")
    (tmp_path / "secret").write_text("content")
    (tmp_path / "my data/out").symlink_to(tmp_path)
    source = """
    for path in ("my data/été/x", "data/large.bin"):
        assert open(path).read() == "content"
        for mode in "wa":
            try: open(path, mode)
            except OSError: pass
            else: raise SystemExit(1)
    open("data/own.txt", "w")
    try: open("my data/out/secret")
    except OSError: pass
    else: raise SystemExit(2)
    succeed()
    """
    outcome = run(source, level, inputs={"my data": tmp_path / "my data", "data/large.bin": tmp_path / "large.bin"})
    assert outcome.status == "ok", outcome.log
    assert (tmp_path / "large.bin").read_text() == "content"
