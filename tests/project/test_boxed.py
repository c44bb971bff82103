"""Components of other participants: they run in the sandbox, learn there, and get at nothing outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError, Refused
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.components.trusting import ComponentOffer, Origin, foreign_components, mark_fetched
from autoresearch.project.model import Project, load_project
from autoresearch.project.runs.kept import kept_runs
from autoresearch.project.runs.process import Box
from autoresearch.project.runs.running import Choices, check_project, do_project_run
from autoresearch.run.sandbox.job import JobLimits, Level
from autoresearch.run.sandbox.probes import probe_sandbox
from tests.project.making import ENVIRONMENT, SHIPPED, bench, learner, now_ms, plain, train
from tests.walls import best_level

LEVEL = best_level()
SMALL = JobLimits(seconds=60, memory_bytes=1 << 30, disk_bytes=64 << 20, processes=32, checkpoint_bytes=8 << 20)
needs_sandbox = pytest.mark.skipif(LEVEL < Level.LANDLOCK, reason="this machine has no sandbox that holds")
HEAD = "import os, socket, subprocess, sys\nfrom pathlib import Path\nfrom autoresearch import Policy\n"


def box(level: Level = LEVEL, limits: JobLimits = SMALL, secrets: tuple[Path, ...] = ()) -> Box:
    return Box(level, limits, secrets=secrets)


def foreign(
    kind: str, name: str, class_name: str, code: str, *, origin: Origin = "foreign", release: str = "r1"
) -> ComponentOffer:
    file = f"{class_name.partition(':')[0]}.py"
    return ComponentOffer(
        type=kind,
        name=name,
        class_name=class_name,
        files={file: code.encode()},
        pins={"source": "log", "release": release, "version": "1.0.0"},
        origin=origin,
    )


def with_stranger(folder: Path, decide: str, *, more: str = "") -> Path:
    """A project whose policy is a stranger's; ``decide`` is what it does for an observation."""
    body = textwrap.indent(textwrap.dedent(decide).strip(), "        ")
    code = f"{HEAD}\nclass Strange(Policy):\n    def decide(self, observation):\n{body}\n        return 1\n"
    code += textwrap.indent(textwrap.dedent(more), "    ")
    install(make_project(folder), foreign("policy", "strange", "strange:Strange", code), default=True)
    return folder


@pytest.fixture
def shipped_as_strange(tmp_path: Path) -> Project:
    """A project whose policy and trainer are those that ship, as if another participant had published them."""
    project = make_project(tmp_path / "agent")
    for kind, name, class_name in (("policy", "q_table", "q_table:QTable"), ("trainer", "sarsa", "sarsa:Sarsa")):
        code = (SHIPPED / f"{name}.py").read_text()
        project = install(project, foreign(kind, name, class_name, code), default=True)
    return project


@pytest.mark.slow
@needs_sandbox
def test_a_strangers_components_learn_in_the_sandbox_what_they_learn_outside(
    shipped_as_strange: Project, tmp_path: Path
) -> None:
    folder = shipped_as_strange.folder
    assert foreign_components(shipped_as_strange) == ["policy.q_table", "trainer.sarsa"]
    figures: list[int] = []
    first = do_project_run(
        Choices(folder),
        "train",
        300,
        now_ms=now_ms,
        box=box,
        on_figures=lambda progress: figures.append(progress.episodes),
    )
    measured = do_project_run(Choices(folder), "bench", 4, now_ms=now_ms, box=box)
    second = do_project_run(Choices(folder), "train", 20, now_ms=now_ms, box=box)
    assert (first.data.sandbox, first.data.trusted, measured.data.sandbox) == (LEVEL, [], LEVEL)
    assert measured.data.metrics["mean_reward"] == -9
    assert (second.data.parent, second.data.totals.training_episodes) == (measured.id, 320)
    outside = learner(tmp_path / "outside")
    same = train(outside, 300)
    assert same.data.sandbox == 0
    assert (same.data.metrics, same.data.curve) == (first.data.metrics, first.data.curve)
    assert {key: same.data.files[key] for key in same.data.files if key.startswith("data/")} == {
        key: first.data.files[key] for key in first.data.files if key.startswith("data/")
    }
    assert [(each.key, each.missing, each.error) for each in check_project(folder, box=box)] == [
        (each.key, [], "") for each in shipped_as_strange.all()
    ]


@pytest.mark.slow
def test_without_a_sandbox_nothing_of_others_runs_but_by_choice(shipped_as_strange: Project) -> None:
    folder = shipped_as_strange.folder

    def none() -> Box:
        return box(Level.NONE)

    for attempt in (
        lambda: do_project_run(Choices(folder), "train", 5, now_ms=now_ms, box=none),
        lambda: check_project(folder, box=none),
    ):
        with pytest.raises(Refused, match=r"other participants wrote policy\.q_table, trainer\.sarsa") as raised:
            attempt()
        assert "--trust" in raised.value.hint
    assert kept_runs(shipped_as_strange) == []
    run = do_project_run(Choices(folder, trust=True), "train", 5, now_ms=now_ms, box=none)
    assert (run.data.sandbox, run.data.trusted) == (0, ["policy.q_table", "trainer.sarsa"])


def test_a_least_level_is_kept_to(shipped_as_strange: Project) -> None:
    with pytest.raises(Refused, match="no sandbox that holds"):
        do_project_run(
            Choices(shipped_as_strange.folder),
            "train",
            5,
            now_ms=now_ms,
            box=lambda: Box(Level.LANDLOCK, least=Level.BUBBLEWRAP),
        )


@pytest.mark.slow
def test_trust_is_in_one_release_and_told_in_the_run(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    code = (SHIPPED / "random_policy.py").read_text()

    def put(origin: Origin, release: str) -> list[str]:
        offer = foreign("policy", "other", "random_policy:RandomPolicy", code, origin=origin, release=release)
        return foreign_components(install(load_project(tmp_path), offer, default=True))

    assert put("foreign", "r1") == ["policy.other"]
    assert put("trusted", "r1") == []
    assert bench(tmp_path, 2).data.trusted == ["policy.other"]
    assert put("own", "r1") == []
    assert bench(tmp_path, 2).data.trusted == []
    ini = project.ini.read_text()
    project.ini.write_text(ini.replace("release = r1", "release = r2"))
    assert foreign_components(load_project(tmp_path)) == ["policy.other"]
    project.ini.write_text(ini)
    assert put("foreign", "r1") == ["policy.other"]


@pytest.mark.slow
@needs_sandbox
def test_all_of_a_project_that_was_fetched_is_its_authors(tmp_path: Path) -> None:
    project = load_project(learner(tmp_path / "agent"))
    mark_fetched(project, "run1")
    assert foreign_components(project) == [each.key for each in project.all()]
    run = do_project_run(Choices(project.folder), "train", 20, now_ms=now_ms, box=box)
    assert run.data.sandbox == LEVEL
    (tmp_path / "mine.py").write_text("class Mine:\n    def decide(self, observation):\n        return 1\n")
    install(project, find_offer("policy", str(tmp_path / "mine.py"), project.folder), default=True)
    with pytest.raises(Refused, match=r"policy\.mine lies outside of the project"):
        do_project_run(Choices(project.folder), "bench", 2, now_ms=now_ms, box=box)


@pytest.mark.slow
@needs_sandbox
def test_own_files_beside_a_strangers_component_are_there_and_hidden_ones_are_not(tmp_path: Path) -> None:
    folder, secret, linked = tmp_path / "agent", tmp_path / "agent/keys", tmp_path / "elsewhere"
    with_stranger(
        folder,
        """
        assert "VALUE" in Path("helper.py").read_text() and Path("levels.txt").read_text() == "three"
        seen = [name for _, _, names in os.walk("..") for name in names]
        assert not {"id_ed25519", ".env", "linked.txt"} & set(seen), seen
        """,
    )
    (folder / "helper.py").write_text("VALUE = 3\n")
    (folder / "levels.txt").write_text("three")
    (folder / ".env").write_text("PASSWORD=1")
    secret.mkdir()
    (secret / "id_ed25519").write_text("key")
    linked.write_text("not to be seen")
    (folder / "linked.txt").symlink_to(linked)
    run = do_project_run(Choices(folder), "bench", 1, now_ms=now_ms, box=lambda: box(secrets=(secret,)))
    assert run.data.sandbox == LEVEL


@needs_sandbox
def test_a_project_that_is_too_large_to_show_is_refused(tmp_path: Path) -> None:
    with_stranger(tmp_path, "pass")
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(Refused, match="more than 2000 files or 64 MiB"):
        do_project_run(Choices(tmp_path), "bench", 1, now_ms=now_ms, box=box)


@pytest.mark.slow
def test_a_script_of_ones_own_gets_no_component_that_needs_a_sandbox(shipped_as_strange: Project) -> None:
    script = "from autoresearch import acr\nprint(acr.environment.default.length)\nacr.policy.default"
    words = [sys.executable, "-c", script]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, cwd=shipped_as_strange.folder, env=paths, capture_output=True, text=True, check=False)
    assert done.stdout == "10\n"
    assert "another participant wrote policy.q_table, and a script of your own runs without a sandbox" in done.stderr


SECRET = "a secret that no component may see"
NO_FILE = "FileNotFoundError|PermissionError|OSError"
NO_SOCKET = "OSError|PermissionError|ConnectionRefusedError"
NO_SIGNAL = "PermissionError|ProcessLookupError|ended by signal|ended before"
CONTAINED = {
    "reads a private key": ("raise RuntimeError(Path({secret!r}).read_text())", NO_FILE),
    "opens a socket": ("socket.create_connection(('127.0.0.1', {port}), 2)", NO_SOCKET),
    "writes outside": ("Path({outside!r}).write_text('here')", NO_FILE),
    "changes the project": ("Path({folder!r}, 'agent.ini').write_text('')", NO_FILE),
    "forks without end": ("while True:\n    os.fork()", "it started more than 32 processes|BlockingIOError"),
    "never ends": ("while True:\n    pass", r"stopped after 5 s"),
    "fills the memory": ("kept = [bytearray(1 << 27) for _ in range(64)]", "memory|MemoryError"),
    "prints without end": ("while True:\n    print('x' * 9999)", r"stopped after 5 s"),
    "kills its parent": ("os.kill(os.getppid(), 9)", NO_SIGNAL),
    "ends the process": ("os._exit(0)", "it ended before the run was done"),
}


@pytest.fixture
def listener() -> Iterator[int]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("what", CONTAINED)
def test_what_a_component_tries_is_contained_and_told_in_a_sentence(what: str, tmp_path: Path, listener: int) -> None:
    contained(what, LEVEL, tmp_path, listener)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("what", ["reads a private key", "opens a socket", "changes the project", "ends the process"])
def test_it_is_contained_by_landlock_alone(what: str, tmp_path: Path, listener: int) -> None:
    if not all(each.blocked for each in probe_sandbox(Level.LANDLOCK)):
        pytest.skip("landlock alone does not hold on this machine")
    contained(what, Level.LANDLOCK, tmp_path, listener)


def contained(what: str, level: Level, tmp_path: Path, listener: int) -> None:
    home, outside, folder = tmp_path / "home", tmp_path / "outside", tmp_path / "agent"
    home.mkdir()
    (home / "id_ed25519").write_text(SECRET)
    attack, message = CONTAINED[what]
    attack = attack.format(secret=str(home / "id_ed25519"), port=listener, outside=str(outside), folder=str(folder))
    with_stranger(folder, attack)
    before = (folder / "agent.ini").read_text()
    limits = JobLimits(
        seconds=5 if "stopped" in message else 60, memory_bytes=1 << 29, disk_bytes=64 << 20, processes=32
    )
    with pytest.raises(AutoresearchError, match=message) as raised:
        do_project_run(Choices(folder), "bench", 1, now_ms=now_ms, box=lambda: box(level, limits))
    assert SECRET not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.hint
    assert not outside.exists()
    assert (folder / "agent.ini").read_text() == before
    assert kept_runs(load_project(folder)) == []


STATES = {
    "huge": ("{'all': np.zeros(5_000_000)}", "larger than 8 MiB"),
    "endless": ("{'all': 'x' * 200_000_000}", "larger than 8 MiB|MiB to disk|more to disk than it may"),
    "no state": ("{'a': object()}", r"the state of policy\.strange can't be kept: a object"),
}
LAZY_AGENT = """
from autoresearch import Agent
class SimpleAgent(Agent):
    def train(self):
        self.policy.decide(0)
"""


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("what", STATES)
def test_a_state_that_can_not_be_kept_is_a_sentence(what: str, tmp_path: Path) -> None:
    state, message = STATES[what]
    folder = with_stranger(
        tmp_path, "pass", more=f"def state_dict(self):\n    import numpy as np\n    return {state}\n"
    )
    (folder / "agent.py").write_text(LAZY_AGENT)
    with pytest.raises(AutoresearchError, match=message):
        do_project_run(Choices(folder), "train", 1, now_ms=now_ms, box=box)
    assert kept_runs(load_project(folder)) == []


LIES = r"""
import json
metrics = dict(episodes=-5, steps=7, mean_reward=1e9, max_reward=10**400, best=3)
lie = dict(type="done", metrics=metrics, curve=[1.0] * 99, seconds=-1.0, used=["policy.strange"])
print("\n\x1e" + json.dumps(lie), flush=True)
Path(%s, "learned.zip").write_bytes(b"PK\x05\x06" + bytes(18))
os._exit(0)
"""


@pytest.mark.slow
@needs_sandbox
def test_a_component_that_tells_a_run_of_its_own_says_nothing_that_can_not_be(tmp_path: Path) -> None:
    place = "next(p for p in Path.cwd().parents if (p / 'order.json').exists())"
    run = do_project_run(Choices(with_stranger(tmp_path, LIES % place)), "bench", 3, now_ms=now_ms, box=box)
    assert run.data.metrics == {"episodes": 0, "steps": 7, "mean_reward": 1e9}
    assert (len(run.data.curve), run.data.seconds >= 0, run.data.sandbox) == (64, True, LEVEL)


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("reward", ["1e999", "-1e999", "1e999 - 1e999"])
def test_a_reward_that_is_no_finite_number_is_named_in_the_sandbox_too(tmp_path: Path, reward: str) -> None:
    folder = plain(tmp_path)
    (folder / "light.py").write_text(ENVIRONMENT.replace("-self.price", reward))
    with pytest.raises(AutoresearchError, match="a reward of the environment is no finite number"):
        bench(folder, 1)
    mark_fetched(load_project(folder), "run1")
    with pytest.raises(AutoresearchError, match="a reward of the environment is no finite number"):
        do_project_run(Choices(folder), "bench", 1, now_ms=now_ms, box=box)


SCRIPT = """
import sys
from autoresearch.project.runs import process
process.GRACE_SECONDS = float(sys.argv[2])
from pathlib import Path
from autoresearch.project.runs.running import Choices, do_project_run
from autoresearch.project.runs.process import RunStopped
from tests.project.making import now_ms
try:
    choices = Choices(Path(sys.argv[1]))
    do_project_run(choices, "train", 10**8, now_ms=now_ms, on_figures=lambda told: print(told.episodes, flush=True))
except RunStopped as error:
    print(error, flush=True)
"""


STUBBORN_AGENT = """
from autoresearch import Agent
class SimpleAgent(Agent):
    def train(self):
        while True:
            try:
                self.environment.reset()
                while not self.environment.step(1)[1]:
                    pass
            except BaseException:
                pass
"""


@pytest.mark.slow
@needs_sandbox
def test_an_interrupt_ends_a_run_in_the_sandbox_and_keeps_what_was_learned(shipped_as_strange: Project) -> None:
    assert "stopped" not in interrupted(shipped_as_strange, grace=60)
    [run] = kept_runs(shipped_as_strange)
    assert (run.data.status, run.data.sandbox) == ("stopped", LEVEL)
    assert 0 < run.data.metrics["episodes"] < 10**8
    measured = do_project_run(Choices(shipped_as_strange.folder), "bench", 2, now_ms=now_ms, box=box)
    assert measured.data.metrics["mean_reward"] == -9


@pytest.mark.slow
@needs_sandbox
def test_a_component_that_does_not_end_when_asked_is_ended(tmp_path: Path) -> None:
    folder = with_stranger(tmp_path, "pass")
    (folder / "agent.py").write_text(STUBBORN_AGENT)
    project = load_project(folder)
    assert "it did not end within 0.5 s, so nothing is kept" in interrupted(project, grace=0.5)
    assert kept_runs(project) == []


def interrupted(project: Project, *, grace: float) -> str:
    """What a process says that trains for ever, is interrupted once it has told a figure, and ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(project.folder), str(grace)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert int(process.stdout.readline()) >= 0
    process.send_signal(signal.SIGINT)
    output = process.communicate(timeout=250)[0]
    assert process.returncode == 0
    return output
