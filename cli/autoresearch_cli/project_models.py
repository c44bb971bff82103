"""Answers about a project: its components, its runs, how far a run is."""

from __future__ import annotations

import msgspec

from autoresearch.api import Answer, ServiceView


class ProjectComponent(Answer, frozen=True, kw_only=True):
    """One component. ``missing`` and ``error`` are what ``list --check`` found."""

    type: str
    name: str
    is_default: bool
    class_name: str
    file: str
    source: str = ""
    version: str = ""
    parameters: dict[str, object] = {}
    missing: list[str] = []
    error: str = ""


class ProjectRun(Answer, frozen=True, kw_only=True):
    """One run: ``mode`` is "train" or "bench", ``status`` "ok" or "stopped", ``curve`` mean rewards of equal parts.

    ``totals`` are sums over the run and its ancestors. ``started`` is in Unix milliseconds. ``sandbox`` is the level
    of its sandbox, 0 for none; ``trusted`` are other participants' components that ran without one, by choice.
    """

    id: str
    mode: str
    status: str
    parent: str = ""
    started: int
    seconds: float
    seed: int
    metrics: dict[str, int | float]
    totals: dict[str, int]
    curve: list[float]
    components: list[str]
    policy_changed: bool = False
    sandbox: int = 0
    trusted: list[str] = []
    folder: str


class ProjectAnswer(Answer, frozen=True, kw_only=True):
    """A project: its components; with ``--runs`` its runs, the oldest first. ``head`` is where the next run goes on."""

    schema: str = "autoresearch.project/1"
    folder: str
    components: list[ProjectComponent]
    runs: list[ProjectRun] = []
    head: str = ""


class ProjectRunAnswer(Answer, frozen=True, kw_only=True):
    """A training or benchmark run that was kept."""

    schema: str = "autoresearch.project_run/1"
    run: ProjectRun


class ProjectFigures(Answer, frozen=True, kw_only=True):
    """How far a run is. ``recent_reward`` is the mean of the last 100 episodes."""

    schema: str = "autoresearch.project_figures/1"
    mode: str
    episodes: int
    asked_episodes: int
    steps: int
    seconds: float
    recent_reward: float | None = None


class ActedAnswer(Answer, frozen=True, kw_only=True):
    """What an actor played for the learner at ``learner``: the standard metrics of its episodes."""

    schema: str = "autoresearch.acted/1"
    learner: str
    metrics: dict[str, int | float]


class ServiceAnswer(Answer, frozen=True, kw_only=True):
    """A service that has begun, and again when it ends; ``run`` then keeps what a trainer has learned in it."""

    schema: str = "autoresearch.service/1"
    service: ServiceView
    run: str = ""


class ServiceKeyAnswer(Answer, frozen=True, kw_only=True):
    """This node's key for services: the public key, in hexadecimal digits, and the file that holds the secret one."""

    schema: str = "autoresearch.service_key/1"
    public_key: str
    file: str


class SweepRow(Answer, frozen=True, kw_only=True):
    """One combination of a sweep: the parameters that were set, the run that trained, the one that measured."""

    parameters: dict[str, str]
    train: str
    bench: str
    mean_reward: float | None


class SweepAnswer(Answer, frozen=True, kw_only=True):
    """A sweep: its combinations, the best first. The next run goes on from the best."""

    schema: str = "autoresearch.sweep/1"
    rows: list[SweepRow] = msgspec.field(default_factory=list)


class GotAnswer(Answer, frozen=True, kw_only=True):
    """A published run as a folder. ``run`` is its id there; empty where it is a task's folder with its program."""

    schema: str = "autoresearch.got/1"
    folder: str
    id: str
    task: str
    value: float | None = None
    run: str = ""
