"""Environments over the wire: the same episodes as here, whatever happens on the way."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import BadMessage, NoAnswer, Refused, ServiceFailed, ServiceRefused, UsageError
from autoresearch.services import (
    GymEnvClient,
    GymEnvClientWrapper,
    GymEnvServer,
    GymEnvServerWrapper,
    GymVectorEnvClient,
    InferenceServer,
)
from autoresearch.services.links.client import RequestClient
from autoresearch.services.links.sockets import ClientKeys, KeyPair, ServerKeys
from autoresearch.services.messages import decode, encode
from autoresearch.services.spaces import space_description, space_from
from tests.services.serving import dead_port


@contextmanager
def serving(env: Any, **options: Any) -> Iterator[GymEnvServer]:
    server = GymEnvServer(env, 0, **options)
    server.start(threaded=True)
    try:
        yield server
    finally:
        assert server.stop()


def test_cartpole_over_the_wire_is_cartpole_here() -> None:
    local = gymnasium.make("CartPole-v1")
    with serving(gymnasium.make("CartPole-v1")) as server, GymEnvClient("localhost", server.port) as remote:
        assert remote.observation_space == local.observation_space
        assert remote.action_space == local.action_space
        choices = np.random.default_rng(1)
        for seed in (7, None, None):
            seen = [env.reset(seed=seed) for env in (local, remote)]
            np.testing.assert_equal(seen[0], seen[1])
            done = False
            while not done:
                action = int(choices.integers(2))
                expected, answer = local.step(action), remote.step(action)
                np.testing.assert_equal(expected, answer)
                assert list(map(type, expected)) == list(map(type, answer))
                assert expected[0].dtype == answer[0].dtype
                done = expected[2] or expected[3]


def test_a_remote_environment_can_be_wrapped_and_passes_gymnasiums_own_check() -> None:
    with serving(gymnasium.make("CartPole-v1")) as server:
        client = GymEnvClient("localhost", server.port)
        check_env(client, skip_render_check=True)
        limited = gymnasium.wrappers.TimeLimit(client, 3)
        limited.reset(seed=1)
        assert [limited.step(0)[3] for _ in range(3)] == [False, False, True]
        client.close()


def test_a_vector_of_environments_is_one_server() -> None:
    def vector() -> Any:
        return gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")

    local = vector()
    with serving(vector()) as server:
        remote = GymVectorEnvClient("localhost", server.port)
        assert remote.num_envs == 3
        assert remote.metadata == local.metadata
        assert gymnasium.wrappers.vector.RecordEpisodeStatistics(remote).num_envs == 3
        assert remote.action_space == local.action_space
        assert remote.observation_space == local.observation_space
        np.testing.assert_equal(local.reset(seed=5), remote.reset(seed=5))
        for _ in range(60):
            actions = local.action_space.sample()
            np.testing.assert_equal(local.step(actions), remote.step(actions))
        with pytest.raises(UsageError, match="vector of environments"):
            GymEnvClient("localhost", server.port)
        remote.close()
    with serving(gymnasium.make("CartPole-v1")) as server, pytest.raises(UsageError, match="has one environment"):
        GymVectorEnvClient("localhost", server.port)


class Counting(gymnasium.Env[Any, Any]):
    """Counts its steps; the step 3 takes longer than clients wait."""

    observation_space = spaces.Discrete(1000)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self.steps = 0
        self.block: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return 0, {"options": options}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        if action == 1:
            raise RuntimeError("the motor is hot")
        self.steps += 1
        if self.steps == 3 and self.block:
            self.block()
        return self.steps, 0.0, False, False, {"objects": np.array([None, np.ones(2)], object), "odd": object()}


def test_a_step_without_an_answer_in_time_is_asked_again_and_taken_once() -> None:
    env = Counting()
    with serving(env) as server:
        client = GymEnvClient("localhost", server.port, retry_interval=0.01, timeout_ms=50)
        requests: list[int] = []

        def block() -> None:
            """Takes until the client has asked again, which its next question tells."""
            gone = RequestClient("localhost", server.port, 150)
            with pytest.raises(NoAnswer):
                gone.ask({"type": "spec"})
            requests.append(1)

        env.block = block
        assert client.reset(options={"a": 1})[1] == {"options": {"a": 1}}
        assert [client.step(0)[0] for _ in range(5)] == [1, 2, 3, 4, 5]
        assert requests == [1]
        assert server.counts.answered > 7  # the questions that came twice
        info = client.step(0)[4]
        assert info["objects"][0] is None
        assert info["objects"][1].tolist() == [1, 1]
        assert "odd" not in info


def test_an_error_of_the_environment_reaches_the_client() -> None:
    with serving(Counting()) as server, GymEnvClient("localhost", server.port) as client:
        with pytest.raises(ServiceRefused, match="no episode is in progress"):
            client.step(0)
        client.reset()
        with pytest.raises(ServiceFailed, match="RuntimeError: the motor is hot"):
            client.step(1)
        assert client.step(0)[0] == 1
        with pytest.raises(ServiceFailed, match="NotImplementedError"):
            client.render()


def test_the_client_that_reset_last_has_the_environment() -> None:
    with serving(Counting()) as server:
        earlier, later = GymEnvClient("localhost", server.port), GymEnvClient("localhost", server.port)
        earlier.reset()
        earlier.step(0)
        later.reset()
        with pytest.raises(ServiceRefused, match="another client has reset"):
            earlier.step(0)
        assert later.step(0)[0] == 1
        assert server.steps == 1  # the environment's own attributes are the server's
        assert GymEnvServerWrapper is GymEnvServer
        assert GymEnvClientWrapper is GymEnvClient


@pytest.mark.parametrize(
    "question",
    [
        None,
        {"type": "step"},
        {"type": "eval", "client": "a", "number": 1, "given": "1"},
        {"type": "reset", "client": "a", "number": 1, "given": {"code": 1}},
        {"type": "reset", "client": "a", "number": "1", "given": {}},
        {"type": "reset", "client": "a", "number": 1, "given": [1]},
    ],
)
def test_a_question_that_is_none_is_refused(question: object) -> None:
    with serving(Counting()) as server, RequestClient("localhost", server.port) as client:
        with pytest.raises(ServiceRefused):
            client.ask(question)
        assert client.ask({"type": "spec"})["num_envs"] is None


def test_a_server_that_is_none_is_told() -> None:
    with pytest.raises(NoAnswer):
        GymEnvClient("localhost", dead_port(), retry_interval=0.01, timeout_ms=50, patience_s=0.1)
    other = InferenceServer(0)
    other.start(threaded=True)
    with pytest.raises(ServiceRefused):
        GymEnvClient("localhost", other.port)
    other.stop()


def test_keys_open_an_environment_to_other_machines() -> None:
    with pytest.raises(Refused, match="could be used by anybody"):
        GymEnvServer(Counting(), 0, "0.0.0.0")
    server_keys, client_keys = KeyPair.from_secret(b"s" * 32), KeyPair.from_secret(b"c" * 32)
    keys = ServerKeys.of(server_keys, [client_keys.public])
    with serving(Counting(), address="0.0.0.0", keys=keys) as server:
        allowed = ClientKeys.of(client_keys, server_keys.public)
        with GymEnvClient("127.0.0.1", server.port, keys=allowed) as client:
            assert client.reset()[0] == 0
        stranger = ClientKeys.of(KeyPair.from_secret(b"x" * 32), server_keys.public)
        with pytest.raises(ServiceRefused, match="does not accept"):
            GymEnvClient("127.0.0.1", server.port, keys=stranger)


leaves = st.one_of(
    st.builds(spaces.Discrete, st.integers(1, 9), start=st.integers(-3, 3)),
    st.builds(
        lambda low, shape, kind: spaces.Box(low, low + 5, shape, kind),
        st.integers(0, 5),
        st.lists(st.integers(1, 3), max_size=3).map(tuple),
        st.sampled_from([np.float32, np.float64, np.uint8, np.int64]),
    ),
    st.just(spaces.Box(np.array([-np.inf, -1.0]), np.array([0.0, np.inf]), dtype=np.float64)),
    st.builds(spaces.MultiDiscrete, st.lists(st.integers(1, 5), min_size=1, max_size=3)),
    st.builds(spaces.MultiBinary, st.one_of(st.integers(1, 4), st.lists(st.integers(1, 3), min_size=2, max_size=2))),
    st.builds(spaces.Text, st.integers(1, 5)),
)
any_space = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3).map(spaces.Dict),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=40)
@given(any_space)
def test_a_space_comes_as_it_was(space: Any) -> None:
    rebuilt = space_from(decode([bytes(frame) for frame in encode(space_description(space))]))
    assert rebuilt == space
    assert space.contains(rebuilt.sample())


def test_spaces_of_other_libraries_and_none() -> None:
    from autoresearch.services.spaces import Discrete

    assert space_from(space_description(Discrete(4))) == spaces.Discrete(4)
    board = space_from(space_description(np.zeros((4, 4), np.int64)))
    assert (board.shape, board.dtype) == ((4, 4), np.int64)
    assert space_from(space_description(np.zeros(2, np.float32))) == spaces.Box(-np.inf, np.inf, (2,))
    for wrong in (spaces.Sequence(spaces.Discrete(2)), object(), np.zeros(2, complex)):
        with pytest.raises(UsageError, match="can't be described"):
            space_description(wrong)


KINDS = ["box", "discrete", "dict", "tuple", "text", "multi_discrete", "multi_binary"]
PARTS = ["n", "start", "shape", "dtype", "low", "high", "parts", "nvec", "least", "most", "letters"]
nonsense = st.recursive(
    st.one_of(st.none(), st.integers(-5, 2**63), st.text(max_size=5), st.floats(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.fixed_dictionaries({"kind": st.sampled_from(KINDS)}, optional=dict.fromkeys(PARTS, inner)),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=80)
@given(nonsense)
def test_a_description_of_no_space_is_a_bad_message(description: object) -> None:
    try:
        rebuilt = space_from(description)
    except BadMessage:
        return
    assert isinstance(rebuilt, spaces.Space)


@pytest.mark.slow
def test_a_server_needs_no_gymnasium() -> None:
    script = (
        "import sys; sys.modules['gymnasium'] = None; from autoresearch.project.shipped.corridor import Corridor\n"
        "from autoresearch.services import GymEnvServer; GymEnvServer(Corridor(), 0).stop()\n"
        "from autoresearch.errors import CannotRunHere\n"
        "try:\n    from autoresearch.services import GymEnvClient\n"
        "except CannotRunHere as error:\n    print(error, '|', error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("remote environments need Gymnasium | pip install")
