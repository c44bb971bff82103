"""Training inside the sandbox: ``train`` for the budget's episodes, ``order`` by the order in ``order.json``.

``order`` has its code from ``project.zip``. Both go on from ``begin.zip`` where it lies in the folder, and leave
``learned.zip``.

The project is a folder of flat files: components of ``agent.ini``, the environment of ``environment.ini``. A run tells
of itself in lines on the result channel, whose descriptor a variable names, and how an order ends by marked lines in
the log.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
import traceback
import zipfile
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.project.child.child import Session, checked
from autoresearch.project.child.messages import Done, Failed, Figures, Message, Order, decode_order, marked
from autoresearch.project.exchange.flat_files import BENCHMARK, ENVIRONMENT_INI
from autoresearch.project.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.project.model import INI, Project, load_ini, load_project, project_of, require_parts, with_parameters
from autoresearch.project.runs.kept import carry_files
from autoresearch.run.sandbox.capture import Progress, Result


def flat_project(folder: Path) -> Project:
    """The project in a folder. The environment of a task takes the place of those that ``agent.ini`` names.

    Raises:
        NotFound: there is no ``agent.ini``, or ``environment.ini`` has no environment.
        UsageError: a line of a file is wrong.
    """
    project = load_project(folder / INI)
    if (folder / ENVIRONMENT_INI).exists():
        given = environment_project(folder)
        components = {**project.components, "environment": given.components["environment"]}
        defaults = {**project.defaults, "environment": given.component("environment").name}
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


class Teller:
    """Writes figures and the end of a run of so many ``episodes``. Without a channel it writes nothing."""

    def __init__(self, episodes: float) -> None:
        self._episodes = episodes
        self._descriptor = int(os.environ.get("AUTORESEARCH_RESULT_FD", "-1"))

    def figures(self, figures: Figures) -> None:
        """Tell how far it is."""
        done = min(1.0, figures.episodes / self._episodes) if self._episodes else 1.0
        self._write(Progress(fraction=done, step=figures.steps, reward=_finite(figures.recent_reward)))

    def result(self, done: Done) -> None:
        """Tell how it ended. Numbers that are not finite are left out."""
        metrics = {name: float(value) for name, value in done.metrics.items() if math.isfinite(value)}
        curve = tuple(done.curve) if all(map(math.isfinite, done.curve)) else ()
        self._write(Result(status="ok", metrics=metrics, curve=curve))

    def _write(self, event: Progress | Result) -> None:
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
        sys.path.append(str(order.project.folder))
        try:
            if order.episodes:
                messages: list[Message] = [Session(order, Teller(order.episodes).figures, _stop().is_set).run()]
                pack_learned(out, folder / LEARNED)
            else:
                messages = [*checked(order)]
        except AutoresearchError as error:
            traceback.print_exc()
            messages = [Failed(str(error), error.hint, error.exit_status)]
        except Exception as error:  # noqa: BLE001 - whatever a stranger's code does becomes a sentence
            traceback.print_exc()
            messages = [Failed(f"{type(error).__name__}: {error}", "", 1)]
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


def _placed(order: Order, code: Path, *, learned: Path | None, out: Path) -> Order:
    """The order with the paths of this machine, as it looks in here."""
    project = order.project
    components = {
        kind: {name: msgspec.structs.replace(each, file=str(code / each.file)) for name, each in members.items()}
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
    wanted = max(1, math.ceil(episodes * _number("AUTORESEARCH_STOP_AT", "1")))
    project = flat_project(folder)
    require_parts(project, training=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        begin, out = Path(scratch, "begin"), Path(scratch, "out")
        out.mkdir()
        if (folder / BEGIN).exists():
            unpack_learned(folder / BEGIN, begin)
        order = Order(
            project=project,
            mode="train",
            episodes=wanted,
            seed=seed,
            learned=str(begin) if begin.exists() else "",
            out=str(out),
        )
        teller = Teller(episodes)
        done = Session(order, teller.figures, lambda: False).run()
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
        raise UsageError(f"the variable {name} must be a number from 0, not “{text}”")
    return number
