"""Executors of other packages: the example of the page carries out a run; a broken one is named in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.extensions import EXECUTORS
from autoresearch.run.executors import executor_name, executor_of
from autoresearch.run.folder import read_outcome
from autoresearch.settings import ExecutorSection
from tests.daemon.daemons import wait_for
from tests.daemon.toy import SLOW_TRAIN
from tests.extension_packages import install, install_example
from tests.run.test_folder import written

BROKEN = """
from autoresearch.run.executors import Executor
class Broken(Executor):
    kind = "broken"
    def listed(self): return {}
    def start(self, folder): pass
    def cancel(self, folder): pass
    def printed_machine(self): return "{}"
"""
SECTION = ExecutorSection(name="background", at_most=2)


@pytest.mark.slow  # a run in the sandbox, and one that is stopped
def test_the_executor_of_the_page_carries_out_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path / "packages", monkeypatch, EXECUTORS)
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    executor = executor_of(SECTION, executor_name(SECTION))
    assert executor.machine().executable
    whole, stopped = written(tmp_path / "whole")[0], written(tmp_path / "stopped", SLOW_TRAIN)[0]
    executor.start(whole)
    executor.start(stopped)
    assert executor.capacity() == 0
    wait_for(lambda: executor.look([stopped])[stopped].progress is not None, 60)
    assert executor.look([stopped])[stopped].state == "running"
    executor.cancel(stopped)
    wait_for(lambda: {look.state for look in executor.look([whole, stopped]).values()} == {"ended"}, 60)
    outcomes = [reply.outcome for reply in map(read_outcome, (whole, stopped)) if reply]
    assert [outcome and str(outcome.status) for outcome in outcomes] == ["ok", "cancelled"]


def test_the_executor_of_the_page_is_named_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="registers background in") as error:
        executor_name(SECTION)
    assert "slurm" in error.value.hint
    install_example(tmp_path / "packages", monkeypatch, EXECUTORS)
    executor = executor_of(SECTION, executor_name(SECTION))
    assert (executor.name, executor.noun, executor.capacity()) == ("background", "background process", 2)
    with pytest.raises(AutoresearchError, match="background has no host"):
        executor_name(SECTION, "background", "lab")


@pytest.mark.parametrize(
    "module",
    [
        "import no_such_module",
        "raise SystemExit(0)",
        "syntax error",
        "",
        "Broken = 3",
        "class Broken: ...",
        "from autoresearch.run.executors import Executor as Broken",
        "from autoresearch.run.executors import Executor\nclass Broken(Executor):\n    kind = 'broken'",
        f"{BROKEN}\n    def __init__(self): ...",
        f"{BROKEN}\n    def __init__(self, *_): ...",
        f"{BROKEN}\n    def __init__(self, *_): raise ValueError('\x1b[31mno')",
        f"{BROKEN}\n    kind = 'other'",
        f"{BROKEN}\n    del kind",
        f"{BROKEN}\n    def listed(self): return 3",
        f"{BROKEN}\n    def listed(self): return {{'search-1': 7}}",
        f"{BROKEN}\n    def listed(self): raise KeyError('x')",
        f"{BROKEN}\n    def start(self, folder): open('/no/such/file')",
        f"{BROKEN}\n    def start(self, *_): raise ValueError('\x1b[31mno')",
        f"{BROKEN}\n    def cancel(self): ...",
        f"{BROKEN}\n    def collect(self, folder): folder.nothing",
        f"{BROKEN}\n    def printed_machine(self): return None",
        BROKEN,
    ],
)
def test_a_broken_executor_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    install(tmp_path / "packages", monkeypatch, module, f"[{EXECUTORS}]\nbroken = my_package:Broken\n")

    def use() -> None:
        executor = executor_of(SECTION, executor_name(SECTION, "broken"))
        executor.capacity()
        executor.start(tmp_path)
        executor.look([tmp_path])
        executor.forget(tmp_path)
        executor.machine()

    with pytest.raises(AutoresearchError, match=r"my_package|the extension broken|the runner there") as error:
        use()
    assert "\x1b" not in str(error.value)
