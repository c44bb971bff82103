"""A server of OpenEnv with an environment of the tests: a walk to the right end of a line. Run with a port's number."""

from __future__ import annotations

import sys
from typing import Any, Literal

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app


class Walk(Action):
    """A step."""

    way: Literal["left", "right"]


class Place(Observation):
    """Where the walker is, and what it sees of the line."""

    place: int
    line: list[int]
    word: str = "here"


class Line(Environment[Walk, Place, State]):
    """Six places; each step costs 1, and the last place ends the episode."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self.place = 0
        self.steps = 0

    def _seen(self, reward: float | None) -> Place:
        line = [int(each == self.place) for each in range(6)]
        return Place(place=self.place, line=line, reward=reward, done=self.place == 5)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **more: Any) -> Place:
        """Begin at the left end, or where ``start`` says."""
        self.place, self.steps = int(more.get("start", 0)), 0
        return self._seen(None)

    def step(self, action: Walk, timeout_s: float | None = None, **_: Any) -> Place:
        """One place to the left or to the right."""
        if self.place == 4 and action.way == "left" and self.steps == 0:
            raise ValueError("a wall is there")
        self.steps += 1
        self.place = max(0, self.place + (1 if action.way == "right" else -1))
        return self._seen(-1.0)

    @property
    def state(self) -> State:
        """How many steps were taken."""
        return State(step_count=self.steps)


if __name__ == "__main__":
    app = create_fastapi_app(Line, Walk, Place, max_concurrent_envs=4)
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
