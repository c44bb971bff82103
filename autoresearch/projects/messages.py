"""What a project's own process is asked for and what it tells: one JSON document a line. Pure."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from autoresearch.projects.model import Project

Mode = Literal["train", "bench"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A run to do. ``episodes`` 0 builds the components and checks their interfaces alone.

    ``learned`` is the folder of the state to begin from, empty for none. What is learned is left in ``out``.
    """

    project: Project
    mode: Mode
    episodes: int
    seed: int
    learned: str
    out: str


class Figures(msgspec.Struct, frozen=True, tag="figures"):
    """How far a run is. ``recent_reward`` is the mean of the last 100 episodes; none before the first has ended."""

    episodes: int
    steps: int
    seconds: float
    recent_reward: float | None


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """A component was loaded: the methods of its interface that it has not, or the error that it raised."""

    key: str
    missing: list[str]
    error: str = ""
    hint: str = ""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """A run ended: in full, or ``stopped`` before. ``changed``: the policy's state changed in a benchmark run."""

    metrics: dict[str, int | float]
    curve: list[float]
    seconds: float
    used: list[str]
    stopped: bool = False
    changed: bool = False


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A run failed: the sentence, what to do next, the exit status."""

    error: str
    hint: str
    exit_status: int


Message = Figures | Checked | Done | Failed


def encode(message: Message | Order) -> bytes:
    """A message as a line."""
    return msgspec.json.encode(message, enc_hook=str) + b"\n"


def decode_order(line: bytes) -> Order:
    """The order of a line."""
    return msgspec.json.decode(line, type=Order, dec_hook=_path)


def decode_message(line: bytes) -> Message:
    """The message of a line. Raises msgspec.ValidationError where it is none."""
    found: Message = msgspec.json.decode(line, type=Message)
    return found


def _path(kind: type, value: Any) -> Any:  # noqa: ANN401
    return Path(value) if kind is Path else value
