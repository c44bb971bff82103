"""Environments of OpenEnv: its own client against its own server, in a process beside."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autoresearch.errors import AutoresearchError, NoAnswer, Refused, ServiceFailed, UsageError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install
from autoresearch.project.model import load_project
from autoresearch.project.runs.records import prepare_run
from autoresearch.project.runs.running import check_project
from tests.daemon.daemons import wait_for
from tests.project.making import SHIPPED, bench, learner, train
from tests.trust.attesting.postoffice import free_port

HAS_OPENENV = importlib.util.find_spec("openenv") is not None
here_too = pytest.mark.skipif(not HAS_OPENENV, reason="there is no openenv-core: make test-libraries")


@pytest.mark.parametrize(
    ("typed", "name", "parameters"),
    [
        ("http://localhost:8000", "openenv", {"url": "http://localhost:8000"}),
        ("wss://a.example/some/env", "openenv", {"url": "wss://a.example/some/env"}),
        ("echo-env", "echo_env", {"image": "echo-env"}),
        ("echo-env:latest", "echo_env", {"image": "echo-env:latest"}),
        ("ghcr.io/some/Chess.Env:1.2", "chess.env", {"image": "ghcr.io/some/Chess.Env:1.2"}),
        ("localhost:5000/echo@sha256:00ff", "echo", {"image": "localhost:5000/echo@sha256:00ff"}),
    ],
)
def test_a_server_and_an_image_are_environments(
    tmp_path: Path, typed: str, name: str, parameters: dict[str, str]
) -> None:
    offer = find_offer("environment", f"openenv:{typed}", tmp_path)
    assert (offer.name, offer.parameters, offer.pins) == (name, parameters, {"source": f"openenv:{typed}"})
    assert offer.requirements == ([] if HAS_OPENENV else ["openenv-core>=0.3"])


@pytest.mark.parametrize("typed", ["", "http://", "ftp://a/b", "--rm", "a b", "-v/:/x img", "http://h/?q", "../env"])
def test_what_is_neither_is_refused(tmp_path: Path, typed: str) -> None:
    with pytest.raises(UsageError, match="no address of an OpenEnv server, and no image"):
        find_offer("environment", f"openenv:{typed}", tmp_path)
    with pytest.raises(UsageError, match="OpenEnv has environments, no policy"):
        find_offer("policy", f"openenv:{typed}", tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server that runs."""
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-m", "tests.project.openenv_server", str(port)], env=environment)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def is_ready() -> bool:
        try:
            return bool(opener.open(f"http://127.0.0.1:{port}/health", timeout=1).status == 200)
        except OSError:
            return False

    try:
        wait_for(is_ready, 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def on_server(folder: Path, server: str, *lines: str) -> Path:
    """A project whose environment is the server's, with lines of its section."""
    project = install(
        load_project(learner(folder) / "agent.ini"),
        find_offer("environment", f"openenv:{server}", folder),
        default=True,
    )
    project.ini.write_text(project.ini.read_text() + "".join(f"{line}\n" for line in lines))
    return folder


@here_too
@pytest.mark.slow
def test_a_table_learns_the_way_on_a_server(server: str, tmp_path: Path) -> None:
    folder = on_server(tmp_path, server, "observe = place")
    train(folder, 60)
    run = bench(folder, 3)
    assert run.data.metrics["mean_reward"] == -5
    checks = {each.key: (each.missing, each.error) for each in check_project(folder)}
    assert checks["environment.openenv"] == ([], "")
    with pytest.raises(Refused, match="acts on a server"):
        prepare_run(load_project(folder / "agent.ini"), run)


@pytest.fixture(scope="module")
def component() -> ModuleType:
    """The component's module. To import OpenEnv takes seconds: its package imports its server and Gradio."""
    spec = importlib.util.spec_from_file_location("openenv_environment", SHIPPED / "openenv_environment.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@here_too
@pytest.mark.slow
@pytest.mark.parametrize(
    ("observe", "first", "shape"),
    [
        ("place", 0, ()),
        ("line", [1, 0, 0, 0, 0, 0], (6,)),
        ("place, line", [0, 1, 0, 0, 0, 0, 0], (7,)),
        ("word", "here", None),
        ("", {"place": 0, "line": [1, 0, 0, 0, 0, 0], "word": "here"}, None),
    ],
)
def test_an_observation_is_what_was_named(server: str, component: Any, observe: str, first: Any, shape: Any) -> None:
    environment = component.OpenEnvEnvironment(url=server, observe=observe)
    try:
        observation, info = environment.reset(seed=2**70)
        assert (observation.tolist() if hasattr(observation, "tolist") else observation, info) == (first, {})
        assert getattr(environment.observation_space, "shape", None) == shape
        assert [environment.step(1)[1:4] for _ in range(5)] == [(-1.0, False, False)] * 4 + [(-1.0, True, False)]
        assert environment.action_space.n == 2
    finally:
        environment.inner.close()


@here_too
@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"actions": [{"way": "up"}]}, ServiceFailed, "step of the OpenEnv server at"),
        ({"observe": "nothing"}, UsageError, "the server sends no nothing"),
        ({"image": "echo-env"}, UsageError, "one of url and image is needed"),
        ({"patience": 1e-6}, NoAnswer, "did not answer within 1e-06 s"),
        ({"url": "http://127.0.0.1:9"}, NoAnswer, r"no OpenEnv server answers at http://127\.0\.0\.1:9"),
        ({"url": "", "image": "no/such-image"}, NoAnswer, "no OpenEnv server answers at no/such-image"),
    ],
)
def test_a_fault_is_a_sentence(
    server: str, component: Any, settings: dict[str, Any], error: type[AutoresearchError], sentence: str
) -> None:
    with pytest.raises(error, match=sentence) as raised:
        component.OpenEnvEnvironment(**{"url": server, **settings}).step(0)
    assert raised.value.hint or error is ServiceFailed
    assert "\n" not in str(raised.value)


FLAG, WAY, NUMBER = {"type": "boolean"}, {"enum": ["a", "b", "c"]}, {"type": "integer", "minimum": 0}


@here_too
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "required", "count"),
    [
        ({"way": WAY}, ["way"], 3),
        ({"way": WAY, "flag": FLAG}, ["way", "flag"], 6),
        ({"way": WAY, "flag": FLAG}, ["way"], 3),
        ({"way": WAY, "metadata": {"type": "object"}}, [], 3),
        ({"n": {**NUMBER, "maximum": 8}}, ["n"], 9),
        ({"n": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 5}}, ["n"], 4),
        ({"kind": {"const": "go"}, "way": {"$ref": "#/$defs/Way"}}, ["kind", "way"], 3),
        ({"n": NUMBER}, ["n"], 0),
        ({"message": {"type": "string"}}, ["message"], 0),
        ({"x": {"type": "number", "minimum": 0, "maximum": 1}, "flag": FLAG}, ["x", "flag"], 0),
        ({"n": {**NUMBER, "maximum": 10**9}}, ["n"], 0),
        ({f"n{each}": {**NUMBER, "maximum": 99} for each in range(3)}, ["n0", "n1", "n2"], 0),
        ({"way": {"$ref": "#/$defs/None"}}, ["way"], 0),
        ({"way": None}, ["way"], 0),
    ],
)
def test_few_actions_are_listed_and_many_are_not(
    component: Any, fields: dict[str, Any], required: list[str], count: int
) -> None:
    listed = component.actions_of({"properties": fields, "required": required, "$defs": {"Way": WAY}})
    assert len(listed) == count
    assert all(set(required) <= set(each) for each in listed)
