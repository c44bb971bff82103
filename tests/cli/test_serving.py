"""Components of a project as services: clients of all kinds, keys, the list of services, what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from autoresearch_cli.agent.models import ActedAnswer, ProjectAnswer, ProjectRunAnswer, ServiceAnswer, ServiceKeyAnswer

from autoresearch.ask.node import ServicesAnswer
from autoresearch.errors import ServiceRefused
from autoresearch.paths import Paths
from autoresearch.services import (
    ActionClient,
    ActionConfig,
    InferenceClient,
    Service,
    client_keys,
    find_service,
    running_services,
)
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.links.sockets import ClientKeys, KeyPair
from autoresearch.services.trainer import TrainerClient, TrainerConfig
from tests.cli.conftest import Cli
from tests.services.serving import waited


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """The commands run in a project."""
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli("init").exit_code == 0
    return folder


class Served:
    """A service that runs, and how it ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        self.view: Service = msgspec.json.decode(line, type=ServiceAnswer).service
        self.ended: ServiceAnswer | None = None
        self.output = ""

    @property
    def place(self) -> tuple[str, int]:
        return "localhost", self.view.port

    def end(self, number: int = signal.SIGINT) -> None:
        if self.ended is None:
            self.process.send_signal(number)
            out, self.output = self.process.communicate(timeout=250)
            assert self.process.returncode == 0, self.output
            self.ended = msgspec.json.decode(out.splitlines()[-1], type=ServiceAnswer)


@contextmanager
def serve(*words: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, "-m", "autoresearch_cli", "agent", "serve", *words, "--json"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        served = Served(process)
        yield served
        served.end()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_an_environment_of_a_project_is_a_gymnasium_environment_elsewhere(cli: Cli, paths: Paths) -> None:
    pytest.importorskip("gymnasium")
    from autoresearch.services import GymEnvClient

    assert "no service runs here" in cli("agent", "services").stderr
    with serve("env") as served:
        view = served.view
        assert (view.name, view.kind, view.component) == ("corridor", "env", "environment.corridor")
        with GymEnvClient(*find_service("corridor", paths.services).place) as client:
            observation, _ = client.reset()
            steps, done = 0, False
            while not done:
                observation, reward, done, _, _ = client.step(1)
                steps += 1
            assert (observation, reward, steps) == (9, -1.0, 9)
        assert waited(lambda: running_services(paths.services)[0].requests >= 11)
        for words in (("agent", "services", "--json"), ("agent", "serve", "--status", "--json")):
            (listed,) = msgspec.json.decode(cli(*words).stdout, type=ServicesAnswer).services
            assert (listed.name, listed.port, listed.since_ms) == (view.name, view.port, view.since_ms)
        assert cli("agent", "services").stdout.split("\t")[:3] == ["corridor", "env", "environment.corridor"]
        again = cli("agent", "serve", "env")
        assert (again.exit_code, "a service corridor runs already" in again.stderr) == (6, True)
        with serve("env", "environment", "corridor", "--name", "second"):
            assert [each.name for each in running_services(paths.services)] == ["corridor", "second"]
    assert served.ended
    assert served.ended.service.requests >= 11
    assert "corridor ended after" in served.output
    assert running_services(paths.services) == []


@pytest.mark.slow
def test_a_project_trains_in_the_environment_of_another(
    cli: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    with serve("env", "--name", "hall") as served:
        other = tmp_path / "other"
        other.mkdir()
        monkeypatch.chdir(other)
        for words in ("init", "install policy q_table --default", "install trainer sarsa"):
            assert cli(*words.split()).exit_code == 0
        assert cli("install", "environment", "remote", "--default").exit_code == 0
        unnamed = cli("run", "-n", "1")
        assert (unnamed.exit_code, "no service is named" in unnamed.stderr) == (2, True)
        for words in ("train 150", "run -n 3"):
            trained = cli(*words.split(), "--set", "environment.service=hall", "--json")
            assert trained.exit_code == 0, trained.stderr
        run = msgspec.json.decode(trained.stdout.splitlines()[-1], type=ProjectRunAnswer).run
        assert run.metrics["mean_reward"] == -9
        monkeypatch.chdir(project)
    assert served.ended
    assert served.ended.service.requests > 150 * 10


@pytest.mark.slow
def test_a_service_that_was_killed_is_not_listed(paths: Paths) -> None:
    with serve("env") as served:
        served.process.kill()
        served.process.wait()
        assert waited(lambda: running_services(paths.services) == [])
        served.ended = ServiceAnswer(service=served.view)
    with serve("env") as served:  # its name is free
        assert served.view.name == "corridor"


@pytest.mark.slow
def test_a_policy_decides_elsewhere_by_what_it_learned(cli: Cli) -> None:
    for words in ("install policy q_table --default", "install trainer sarsa", "train 200"):
        assert cli(*words.split()).exit_code == 0
    with serve("inference") as served:
        client = InferenceClient(*served.place, timeout_ms=5000)
        assert client.interfaces() == {"decide"}
        assert [client.call("decide", place) for place in range(9)] == [1] * 9
        client.stop()
        served.end(signal.SIGTERM)


@pytest.mark.slow
def test_an_environment_as_an_action_server() -> None:
    with serve("action") as served:
        address, port = served.place
        config = ActionConfig(port, ["reset", "step"], ["observation", "reward", "terminated", "truncated"])
        client = ActionClient(address, config, errors="raise")
        with pytest.raises(ServiceRefused, match="no observation yet"):
            client.obs()
        seen: list[Any] = []
        client.register_obs_callback(seen.append)
        assert client.act("reset")["observation"] == 0
        assert [client.act("step", 1)["observation"] for _ in range(3)] == [1, 2, 3]
        assert client.obs({"observation"}) == {"observation": 3}
        assert waited(lambda: seen and seen[-1]["observation"] == 3)
        client.stop()


LEARNER = """
import numpy as np
from autoresearch import Dataset, Trainer
from autoresearch.services import ReplayBuffer


class Memory(Dataset):
    def __init__(self, capacity: int = 10_000) -> None:
        self.buffer = ReplayBuffer(capacity)

    def add(self, observation, action, reward, following, *, done):
        row = {"seen": observation, "action": action, "reward": reward, "following": following, "done": done}
        self.buffer.insert(row)

    def sample(self, count):
        return self.buffer.sample(count)


class QLearning(Trainer):
    def train(self, policy):
        batch = self.dataset.sample(500)
        columns = [batch[name].tolist() for name in ("seen", "action", "reward", "following", "done")]
        for seen, action, reward, following, done in zip(*columns):
            value = reward + (0 if done else 0.99 * max(policy.values(following)))
            policy.values(seen)[action] += 0.2 * (value - policy.values(seen)[action])
"""


@pytest.mark.slow
def test_a_trainer_learns_from_the_transitions_of_actors(cli: Cli, project: Path) -> None:
    (project / "learner.py").write_text(LEARNER)
    assert cli("install", "policy", "q_table", "--default").exit_code == 0
    assert cli("agent", "serve", "trainer").exit_code == 4  # there is none
    for words in ("trainer ./learner.py --class QLearning", "dataset ./learner.py --class Memory"):
        assert cli("install", *words.split()).exit_code == 0
    with serve("trainer") as served:
        address, port = served.place
        rows, weights = ReplayBuffer(1000), []
        client = TrainerClient(
            "actor", address, TrainerConfig(port, 0), data_stores={"transitions": rows}, timeout_ms=5000
        )
        client.recv_network_callback(weights.append)
        assert waited(lambda: weights)  # the policy as it is, before anything was learned
        choices = np.random.default_rng(0)
        place = 0
        for _ in range(600):
            action = int(choices.integers(2))
            following = min(max(place + (1 if action else -1), 0), 9)
            done = following == 9
            row = {"observations": place, "actions": action, "rewards": -1.0, "next_observations": following}
            rows.insert(row | {"masks": float(not done)})
            place = 0 if done else following
            if rows.latest_data_id() % 10 == 9:
                assert client.update()

        def learned() -> bool:
            values = dict(zip(weights[-1]["observations"], np.asarray(weights[-1]["values"]).tolist(), strict=True))
            return len(values) >= 9 and all(values[each][1] > values[each][0] for each in range(9))

        assert waited(learned)
        rows_of_another = ReplayBuffer(10)
        wrong = TrainerClient("b", address, TrainerConfig(port, 0), data_stores={"transitions": rows_of_another})
        rows_of_another.insert({"observations": 1})
        assert not wrong.update()
        assert "a transition lacks actions" in str(wrong.last_error)
        wrong.stop()
        client.stop()
    assert served.ended
    assert served.ended.run
    decoded = msgspec.json.decode(cli("list", "--runs", "--json").stdout, type=ProjectAnswer)
    assert decoded.head == served.ended.run
    (run,) = decoded.runs
    assert run.metrics["steps"] == 600
    assert {"dataset.memory", "policy.q_table", "trainer.q_learning"} <= set(run.components)
    assert 'mean_reward": -9' in cli("run", "--json").stdout.replace('":-9', '": -9')


@pytest.mark.slow
def test_actors_join_a_served_trainer(cli: Cli, paths: Paths) -> None:
    for words in ("policy q_table", "trainer q_learning", "dataset replay"):
        assert cli("install", *words.split(), "--default").exit_code == 0
    pair = cli("agent", "services", "--key", "--json")
    public = msgspec.json.decode(pair.stdout, type=ServiceKeyAnswer).public_key
    with serve("trainer", "--name", "school", "--allow", public) as served:
        for words in ("train 100 --join school", f"train 50 --join localhost:{served.view.port} --server-key {public}"):
            result = cli(*words.split(), "--json")
            assert result.exit_code == 0, result.stderr
        acted = msgspec.json.decode(result.stdout.splitlines()[-1], type=ActedAnswer)
        assert acted.metrics["episodes"] == 50
        assert acted.metrics["mean_reward"] > -25
        for words, code, message in (
            ("train --join nobody", 4, "no service nobody"),
            ("train --join school --actors 2", 2, "can't be combined"),
            ("train --join localhost:1 --server-key ab", 2, "public key"),
        ):
            refused = cli(*words.split())
            assert (refused.exit_code, message in refused.stderr) == (code, True), refused.stderr
    assert served.ended
    run = msgspec.json.decode(cli("list", "--runs", "--json").stdout, type=ProjectAnswer).runs[-1]
    assert (run.id, run.metrics["episodes"]) == (served.ended.run, 150)


@pytest.mark.slow
def test_other_machines_need_a_key(cli: Cli, tmp_path: Path, paths: Paths) -> None:
    pytest.importorskip("gymnasium")
    from autoresearch.services import GymEnvClient

    refused = cli("agent", "serve", "env", "--address", "0.0.0.0")
    assert (refused.exit_code, "needs keys" in refused.stderr) == (6, True)
    own = msgspec.json.decode(cli("agent", "services", "--key", "--json").stdout, type=ServiceKeyAnswer)
    assert Path(own.file) == paths.service_key
    assert paths.service_key.stat().st_mode & 0o077 == 0
    assert paths.service_key in paths.secrets()
    pair = KeyPair.from_file(tmp_path / "client.key")
    with serve("env", "--address", "0.0.0.0", "--allow", pair.public.hex()) as served:
        assert served.view.public_key == own.public_key
        keys = ClientKeys.of(pair, served.view.public_key)
        with GymEnvClient("127.0.0.1", served.view.port, keys=keys) as client:
            assert client.reset()[0] == 0
        service = find_service("corridor", paths.services)  # a client of this node
        with GymEnvClient(*service.place, keys=client_keys(service.public_key)) as client:
            assert client.reset()[0] == 0
        stranger = ClientKeys.of(KeyPair.from_secret(b"x" * 32), served.view.public_key)
        with pytest.raises(ServiceRefused):
            GymEnvClient("127.0.0.1", served.view.port, keys=stranger)
    with serve("env", "--key", str(tmp_path / "server.key")) as served:
        assert served.view.public_key == KeyPair.from_file(tmp_path / "server.key").public.hex()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("agent serve", 2, "name the kind of service"),
        ("agent serve robot", 2, "there is no kind of service"),
        ("agent serve env environment nothing", 4, "no environment nothing"),
        ("agent serve inference environment corridor", 2, "lacks decide"),
        ("agent serve trainer", 4, "this project has no trainer"),
        ("agent serve env --name ../x", 2, "can't be a service's name"),
        ("agent serve env --port 70000", 2, "65535"),
        ("agent serve env --allow abc", 2, "public key"),
        ("agent serve env --set environment.length=x", 2, "length"),
        ("agent serve env -f elsewhere/agent.ini", 4, "there is no"),
    ],
)
def test_what_cannot_be_served_is_told(cli: Cli, words: str, code: int, message: str, paths: Paths) -> None:
    result = cli(*words.split())
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
    assert running_services(paths.services) == []


@pytest.mark.slow
def test_a_component_that_fails_is_told(cli: Cli, project: Path) -> None:
    (project / "bad.py").write_text("class Bad:\n    def __init__(self):\n        raise ValueError('no motor')\n")
    installed = cli("install", "environment", "./bad.py", "--name", "bad")
    assert installed.exit_code == 0, (installed.output, installed.exception)
    result = cli("agent", "serve", "env", "environment", "bad")
    assert result.exit_code == 1
    assert "environment.bad: bad.py, line 3: ValueError: no motor" in result.stderr
