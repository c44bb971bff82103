"""What of a project runs in sandboxes: ``python -m autoresearch.project.inside WORD``, in a folder of flat files.

``train`` trains for the budget's episodes, ``order`` by the order in ``order.json``, with the code in ``project.zip``.
Both go on from ``begin.zip`` where it lies in the folder, and leave ``learned.zip``. The project is a folder of flat
files: components of ``agent.ini``, the environment of ``environment.ini``. A run tells of itself in lines on the result
channel, whose descriptor a variable names, and how an order ends by marked lines in the log.

An evaluation has two sides, each in a sandbox of its own. ``examine`` plays episodes of the task's environment and
prints what the agent earned; ``answer`` is the agent with what it learned. The environment of ``environment.ini`` lives
in the first alone. The agent sees observations and rewards and gives actions; it can neither reach the environment nor
begin an episode anew, and what it says of its rewards is not asked.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import sys
import tempfile
import threading
import traceback
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from autoresearch.errors import AutoresearchError, BadMessage, UsageError
from autoresearch.link import LinkEnded
from autoresearch.project import acr
from autoresearch.project.child.child import ProjectSession, do_order, failure_message
from autoresearch.project.child.members import Members, use
from autoresearch.project.child.messages import (
    Conversation,
    Message,
    OrderDone,
    OrderFailed,
    RunFigures,
    RunOrder,
    decode_order,
    marked,
)
from autoresearch.project.child.recording import Recorder, Tally, compared_rewards
from autoresearch.project.exchange.flat_files import BENCHMARK, ENVIRONMENT_INI
from autoresearch.project.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.project.model import INI, Project, load_ini, load_project, project_of, require_parts, with_parameters
from autoresearch.project.runs.kept import carry_files
from autoresearch.run.sandbox.capture import HarnessResult, RunProgress
from autoresearch.services.spaces import description_of, space_of
from autoresearch.task.model import episode_seed
from autoresearch.text import one_line

# What a file that grows too large ends with in the sandbox, by its own bound or by that of the folder.
_DISK_FULL = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}


def flat_project(folder: Path) -> Project:
    """The project in a folder. The environment of a task takes the place of those that ``agent.ini`` names.

    Raises:
        NotFound: there is no ``agent.ini``, or ``environment.ini`` has no environment.
        UsageError: a line of a file is wrong.
    """
    project = load_project(folder / INI)
    if (folder / ENVIRONMENT_INI).exists():
        environment = environment_project(folder)
        components = {**project.components, "environment": environment.components["environment"]}
        defaults = {**project.defaults, "environment": environment.component("environment").name}
        project = msgspec.structs.replace(project, components=components, defaults=defaults)
    return with_parameters(project)


def environment_project(folder: Path) -> Project:
    """A project of a task's environment alone.

    Raises:
        NotFound: there is no ``environment.ini``, or no environment in it.
        UsageError: a line of it is wrong.
    """
    file = folder / ENVIRONMENT_INI
    project = project_of(load_ini(file), file, besides=frozenset((BENCHMARK,)))
    project.component("environment")
    return project


class FigureWriter:
    """Writes figures and the end of a run of so many ``episodes``. Without a channel it writes nothing."""

    def __init__(self, episodes: float) -> None:
        self._episodes = episodes
        self._descriptor = int(os.environ.get("AUTORESEARCH_RESULT_FD", "-1"))

    def figures(self, figures: RunFigures) -> None:
        """Tell how far it is."""
        done = min(1.0, figures.episodes / self._episodes) if self._episodes else 1.0
        self._write(RunProgress(fraction=done, step=figures.steps, reward=_finite(figures.recent_reward)))

    def result(self, done: OrderDone) -> None:
        """Tell how it ended. Numbers that are not finite are left out."""
        metrics = {name: float(value) for name, value in done.metrics.items() if math.isfinite(value)}
        curve = tuple(done.curve) if all(map(math.isfinite, done.curve)) else ()
        self._write(HarnessResult(status="ok", metrics=metrics, curve=curve))

    def _write(self, event: RunProgress | HarnessResult) -> None:
        if self._descriptor >= 0:
            os.write(self._descriptor, msgspec.json.encode(event) + b"\n")


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


ORDER = "order.json"
CODE = "project.zip"


def carry_out() -> None:
    """Do the order. A component's error is told, and is no error here."""
    folder = Path.cwd()
    order = decode_order((folder / ORDER).read_bytes())
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        code, begin, out = (Path(scratch, name) for name in ("code", "begin", "out"))
        out.mkdir()
        with zipfile.ZipFile(folder / CODE) as file:
            file.extractall(code)
        if (folder / BEGIN).exists():
            unpack_learned(folder / BEGIN, begin)
        order = _placed(order, code, learned=begin if begin.exists() else None, out=out)
        order.project.folder.mkdir(parents=True, exist_ok=True)
        os.chdir(order.project.folder)
        try:
            messages: Sequence[Message] = do_order(order, FigureWriter(order.episodes).figures, _stop().is_set)
            if order.episodes:
                pack_learned(out, folder / LEARNED)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's code does becomes a sentence
            messages = [failure_message(error)]
            if isinstance(error, OSError) and error.errno in _DISK_FULL:
                hint = "autoresearch node config set work.max_disk_mib allows more"
                messages = [OrderFailed("the run wrote more to disk than it may", hint, 1)]
        os.chdir(folder)
    sys.stdout.flush()
    for message in messages:
        sys.stderr.write(marked(message).decode())


def _stop() -> threading.Event:
    """Set as soon as the other side lets go of the descriptor that this process was started with."""
    descriptor, stop = int(os.environ["AUTORESEARCH_TALK_READ"]), threading.Event()

    def listen() -> None:
        while os.read(descriptor, 1):
            pass
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    return stop


def _placed(order: RunOrder, code: Path, *, learned: Path | None, out: Path) -> RunOrder:
    """The order with the paths of this machine, as it looks in here."""
    project = order.project
    components = {
        kind: {
            name: msgspec.structs.replace(each, file=str(code / each.file), root=str(code / each.root))
            for name, each in members.items()
        }
        for kind, members in project.components.items()
    }
    project = msgspec.structs.replace(
        project, folder=code / project.folder, ini=code / project.ini, components=components
    )
    return msgspec.structs.replace(order, project=project, learned=str(learned or ""), out=str(out))


def train() -> None:
    """Train, with the seed and the episodes that the environment's variables say.

    Raises:
        UsageError: a variable is missing or no number.
        AutoresearchError: the project can't be trained.
    """
    folder = Path.cwd()
    episodes, seed = _number("AUTORESEARCH_BUDGET"), int(_number("AUTORESEARCH_SEED"))
    stop_after = max(1, math.ceil(episodes * _number("AUTORESEARCH_STOP_AT", "1")))
    project = flat_project(folder)
    require_parts(project, training=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        begin, out = Path(scratch, "begin"), Path(scratch, "out")
        out.mkdir()
        if (folder / BEGIN).exists():
            unpack_learned(folder / BEGIN, begin)
        order = RunOrder(
            project=project,
            mode="train",
            episodes=stop_after,
            seed=seed,
            learned=str(begin) if begin.exists() else "",
            out=str(out),
        )
        teller = FigureWriter(episodes)
        done = ProjectSession(order, teller.figures, lambda: False).run()
        if done.fault:
            raise AutoresearchError(done.fault)
        carry_files(begin, out)
        pack_learned(out, folder / LEARNED)
        teller.result(done)


def _number(name: str, otherwise: str = "") -> float:
    text = os.environ.get(name, otherwise)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"the variable {name} must be a number from 0, not “{text}”", hint="correct it")
    return number


class RemoteEnvironment:
    """The environment as the agent's side has it: every step is taken by the other side."""

    def __init__(self, talk: Conversation, action_space: object, observation_space: object) -> None:
        self.action_space, self.observation_space = action_space, observation_space
        self._talk = talk
        self._is_over = True

    def reset(self, **_: object) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode. Raises AutoresearchError in the middle of one."""
        if not self._is_over:
            raise AutoresearchError(
                "an episode of a benchmark can't be begun anew", hint="play it to its end, then call reset()"
            )
        self._is_over = False
        observation, info = self._receive(2)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Take an action. Raises AutoresearchError where no episode has begun."""
        if self._is_over:
            raise AutoresearchError("the episode is over", hint="call reset() before the next step")
        self._talk.send(action)
        observation, reward, terminated, truncated, info = self._receive(5)
        self._is_over = terminated or truncated
        return observation, reward, terminated, truncated, info

    def _receive(self, count: int) -> Any:  # noqa: ANN401
        message = self._talk.receive()
        if not isinstance(message, list | tuple) or len(message) != count:
            raise BadMessage("the environment's side told something else than a step")
        return tuple(message)


def answer() -> None:
    """Play until the other side has seen enough.

    Raises:
        AutoresearchError: the project, or what it learned, can't be loaded, or a component fails.
    """
    folder, talk = Path.cwd(), Conversation.from_environment()
    question = talk.receive()
    project = flat_project(folder)
    components = {kind: members for kind, members in project.components.items() if kind != "environment"}
    defaults = {kind: name for kind, name in project.defaults.items() if kind != "environment"}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        if (folder / LEARNED).exists():
            unpack_learned(folder / LEARNED, Path(scratch))
        order = RunOrder(
            project=msgspec.structs.replace(project, components=components, defaults=defaults),
            mode="bench",
            episodes=int(question["episodes"]),
            seed=int(os.environ.get("AUTORESEARCH_SEED", "0")),
            learned=scratch,
            out=scratch,
        )
        session = ProjectSession(order, lambda _figures: None, lambda: False)
        spaces = (space_of(question["action_space"]), space_of(question["observation_space"]))
        session.members.register("environment", str(question["name"]), lambda: RemoteEnvironment(talk, *spaces))
        try:
            session.run()
        except LinkEnded:
            raise AutoresearchError("the environment's side ended before the last episode") from None


_PLAIN = (bool, int, float, str, np.ndarray, np.generic)


def examine() -> None:
    """Play the episodes and print the mean reward, its standard error and the other metrics.

    Raises:
        UsageError: a number of the task is none.
        AutoresearchError: the environment fails, or the agent's actions are none.
    """
    folder, seed = Path.cwd(), int(os.environ.get("AUTORESEARCH_SEED", "0"))
    project, episodes = environment_project(folder), _episodes(folder)
    tally, talk = Tally(), Conversation.from_environment()
    name = project.component("environment").name
    members = Members(project, seed=seed, made=lambda *made: made[2])
    use(members)  # an environment draws from the generator that it has there
    inner = members.default("environment")
    environment = Recorder(inner, tally, map(partial(episode_seed, seed), itertools.count()))
    action_space = getattr(environment, "action_space", None)
    spaces = [description_of(space) for space in (action_space, getattr(environment, "observation_space", None))]
    talk.send({"name": name, "episodes": episodes, "action_space": spaces[0], "observation_space": spaces[1]})
    for _ in range(episodes):
        observation, info = environment.reset()
        talk.send([observation, _plain(info)])
        ended = False
        while not ended:
            action = _action(talk.receive(), action_space)
            observation, reward, terminated, truncated, info = environment.step(action)
            ended = bool(terminated or truncated)
            talk.send([observation, float(reward), bool(terminated), bool(truncated), _plain(info)])
    metrics = tally.metrics()
    metrics["standard_error"] = metrics["std_reward"] / math.sqrt(episodes)
    metrics |= compared_rewards(inner, seed)
    for metric, value in metrics.items():
        sys.stdout.write(f"{metric}: {value!r}\n" if math.isfinite(value) else f"{metric}: none\n")


def _episodes(folder: Path) -> int:
    section = load_ini(folder / ENVIRONMENT_INI).section(BENCHMARK)
    text = section.items["episodes"].text if section and "episodes" in section.items else ""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        sentence = f"{ENVIRONMENT_INI}: [{BENCHMARK}] episodes must be a whole number from 1, not “{text}”"
        raise UsageError(sentence, hint="correct it")
    return int(text)


def _action(action: object, space: Any) -> Any:  # noqa: ANN401 - a stranger's class
    """An action as the environment takes it. Raises AutoresearchError where it is none."""
    kind = getattr(space, "dtype", None)
    try:
        if kind is not None and isinstance(action, np.ndarray | np.generic | float | list):
            action = np.asarray(action, dtype=kind)
            action = action[()] if action.shape == () else action
        if space is None or not hasattr(space, "contains") or space.contains(action):
            return action
    except (TypeError, ValueError, OverflowError):
        pass  # as any other that is none
    raise AutoresearchError(f"the agent's action {one_line(repr(action), 60)} is not in the action space {space}")


def _plain(info: object) -> dict[str, object]:
    """What of an environment's info can be told; the rest stays here."""
    if not isinstance(info, Mapping):
        return {}
    return {key: value for key, value in info.items() if isinstance(key, str) and isinstance(value, _PLAIN)}


_WORDS: dict[str, Callable[[], None]] = {
    "train": train,
    "order": carry_out,
    "answer": answer,
    "examine": examine,
}


def main(words: list[str]) -> int:
    """Do what the word says. Returns the exit status."""
    folder = str(Path.cwd())
    sys.path[:] = [path for path in sys.path if path not in ("", folder)]  # a component's file is its own alone
    sys.modules["acr"] = acr
    try:
        if len(words) != 1 or words[0] not in _WORDS:
            raise UsageError(f"give one of the words {', '.join(_WORDS)}", hint=f"not {' '.join(words) or 'nothing'}")
        _WORDS[words[0]]()
    except AutoresearchError as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        hint = f" → {error.hint}" if error.hint else ""
        sys.stderr.write(f"{error}{hint}\n")  # the log's last line
        return error.exit_status
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a component's own threads must not hold it
