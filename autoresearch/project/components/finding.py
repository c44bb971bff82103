"""From what a person typed to a component: one that ships, of Gymnasium or OpenEnv, or a file of one's own.

A further place of components is a function of type, name and version (empty for any): the registry is one.

Gymnasium's environments come in groups, each with Python packages of its own: extras of the package ``gymnasium``, see
https://gymnasium.farama.org/introduction/basic_usage/ and the list in its metadata. A component may have other methods
than its interface: nothing is forbidden.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from collections.abc import Callable, Sequence
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from autoresearch.beneath import read_beneath
from autoresearch.errors import NotFound, UsageError
from autoresearch.project import interfaces
from autoresearch.project.components.trusting import ComponentOffer
from autoresearch.project.model import AGENT, INIT_FILE, MOST_BYTES, Component, check_name, lone_name
from autoresearch.project.modules import dotted, not_python
from autoresearch.task.source import parse_python
from autoresearch.text import did_you_mean, one_line

_FOLDER = Path(__file__).parents[1] / "shipped"
_SHIPPED = (
    ("environment", "corridor", "corridor:Corridor", "Walk to the right end of a corridor."),
    ("environment", "2048", "game_2048:Game2048", "The game 2048: slide and merge tiles."),
    ("environment", "remote", "remote:Remote", "An environment that `agent serve env` serves elsewhere."),
    ("policy", "random", "random_policy:RandomPolicy", "Takes any action."),
    ("policy", "q_table", "q_table:QTable", "A table of values for each observation and action."),
    ("policy", "dqn", "dqn:DQN", "A neural network that values actions (torch)."),
    ("trainer", "sarsa", "sarsa:Sarsa", "SARSA for a q_table."),
    ("trainer", "q_learning", "q_learning:QLearning", "Q-learning from a dataset, for a q_table."),
    ("trainer", "dqn_sgd", "dqn_sgd:DqnSgd", "Deep Q-learning by gradient descent for a dqn (torch)."),
    ("dataset", "replay", "replay:Replay", "The newest transitions, drawn uniformly."),
)
GYM_CLASS = "gym_environment:GymEnvironment"
OPENENV_CLASS = "openenv_environment:OpenEnvEnvironment"
# Environments that are elsewhere: what a sandbox has no network for.
OF_SERVERS = frozenset((OPENENV_CLASS, "remote:Remote"))
ATARI_MODULE = "ale_py"
_ATARI = "ALE/"


def shipped_offers(words: str = "", kind: str = "") -> list[ComponentOffer]:
    """Every component that ships; those of a type, whose type, name and description have all of some words."""
    terms = words.lower().split()
    return [
        _offer(*each)
        for each in _SHIPPED
        if kind in ("", each[0]) and all(word in " ".join((each[0], each[1], each[3])).lower() for word in terms)
    ]


def shipped_offer(kind: str, name: str) -> ComponentOffer | None:
    """The component of this type and name that ships."""
    return next((_offer(*each) for each in _SHIPPED if each[:2] == (kind, name)), None)


def full_id(gym_id: str) -> str:
    """The id as ``gymnasium.make`` takes it: a module registers Atari's games, as in ``ale_py:ALE/Pong-v5``."""
    return f"{ATARI_MODULE}:{gym_id}" if gym_id.startswith(_ATARI) else gym_id


def gym_offer(gym_id: str) -> ComponentOffer:
    """A Gymnasium environment by its id; it is called by the id's name: ``cartpole`` of ``CartPole-v1``."""
    name = gym_id.rpartition("/")[2].rpartition(":")[2].partition("-v")[0].lower()
    offer = _offer("environment", name, GYM_CLASS, f"Gymnasium's {gym_id}.")
    return msgspec.structs.replace(offer, pins={"source": f"{GYM}{gym_id}"}, parameters={"id": full_id(gym_id)})


def _offer(kind: str, name: str, class_name: str, description: str) -> ComponentOffer:
    from autoresearch.version import __version__

    file = f"{class_name.partition(':')[0]}.py"
    return ComponentOffer(
        type=kind,
        name=name,
        class_name=class_name,
        files={file: (_FOLDER / file).read_bytes()},
        description=description,
        pins={"source": "shipped", "version": __version__},
    )


# A place on the web or of git, whose names have colons and points before a slash.
_ADDRESS = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:|[\w-]+(\.[\w-]+)+/\w")
_GYMNASIUM = "gymnasium>=1.0"
# What a person writes before an id, and before the address of a server or the image of a container.
GYM, OPENENV = "gym:", "openenv:"
_OPENENV_PACKAGE = "openenv-core>=0.3"
# The packages of a group are an extra, by the module that has its environments.
_EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}
# Where Gymnasium is not here, its environments with packages of their own are known by the beginning of their id.
_BEGINNINGS = {
    ("LunarLander", "BipedalWalker", "CarRacing"): ["box2d==2.3.10", "pygame-ce>=2.1.3"],
    ("Ant-", "HalfCheetah", "Hopper", "Humanoid", "Inverted", "Pusher", "Reacher", "Swimmer", "Walker2d"): [
        "mujoco>=2.1.5",
        "imageio>=2.14.1",
    ],
    (_ATARI,): ["ale_py>=0.9"],
}


def needed_packages(gym_id: str) -> list[str]:
    """The packages that an environment needs besides Gymnasium, as ``mujoco>=2.1.5``; Gymnasium where it is not here.

    Nothing of an environment is imported. Of an id with a module in front, as ``module:Env-v0``, nothing is known but
    what Atari's games need.

    Raises:
        NotFound: Gymnasium has no such environment.
    """
    if find_spec("gymnasium") is None:
        more = (lines for beginnings, lines in _BEGINNINGS.items() if gym_id.startswith(beginnings))
        return [_GYMNASIUM, *next(more, [])]
    module, colon, _ = full_id(gym_id).partition(":")
    if colon:
        extra = "atari" if module == ATARI_MODULE else ""
    else:
        extra = _EXTRAS.get(_module_of(gym_id).rpartition(".")[0], "")
    # The lines of an extra of Gymnasium that hold for this Python, without their conditions.
    requirements = [Requirement(line) for line in requires("gymnasium") or []] if extra else []
    return [f"{each.name}{each.specifier}" for each in requirements if _is_of(each, extra)]


def unchecked_id(offer: ComponentOffer) -> str:
    """Why nobody looked whether Gymnasium has the environment of an offer; empty where it has, or is not asked."""
    source = offer.pins.get("source", "")
    gym_id = source.removeprefix(GYM)
    if source == gym_id:
        return ""
    if find_spec("gymnasium") is None:
        return f"{gym_id} is not checked: Gymnasium is not here"
    module, colon, _ = full_id(gym_id).partition(":")
    return f"{gym_id} is not checked: {module}, which has it, is not imported here" if colon else ""


def gym_packages(component: Component) -> list[str]:
    """The packages that an installed environment of Gymnasium needs besides it; none of another component."""
    source = component.pins.get("source", "")
    if not source.startswith(GYM):
        return []
    try:
        return needed_packages(source.removeprefix(GYM))
    except NotFound:  # it was installed with another version of Gymnasium
        return []


def _module_of(gym_id: str) -> str:
    """The module of an environment that Gymnasium itself registers."""
    import gymnasium

    try:
        entry = gymnasium.spec(gym_id).entry_point
    except gymnasium.error.Error as error:
        raise NotFound(
            f"Gymnasium has no environment “{one_line(gym_id, 60)}”",
            hint=_similar(gym_id, list(gymnasium.registry)) or one_line(str(error), 100),
        ) from None
    return entry.partition(":")[0] if isinstance(entry, str) else ""


def _similar(gym_id: str, ids: list[str]) -> str:
    """What to type instead: the newest version of this environment, else the id that is nearest."""
    name = gym_id.partition("-v")[0].lower()
    versions = [each for each in ids if each.partition("-v")[0].lower() == name]
    if versions:
        near = [max(versions, key=lambda each: int(each.rpartition("-v")[2] or 0))]
    else:
        near = difflib.get_close_matches(gym_id, ids, 1)
    return f"autoresearch install environment gym:{near[0]}" if near else ""


def _is_of(requirement: Requirement, extra: str) -> bool:
    """Whether it is asked for with the extra, and not without."""
    marker = requirement.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})


# What the commands and the components that ship call.
METHODS: dict[str, tuple[str, ...]] = {
    "agent": ("train", "advance"),
    "environment": ("reset", "step", "action_space", "observation_space"),
    "policy": ("decide", "state_dict", "load_state_dict"),
    "trainer": ("train",),
    "dataset": ("add", "sample"),
}
_BASES: dict[str, type] = {
    "agent": interfaces.Agent,
    "environment": interfaces.Environment,
    "policy": interfaces.Policy,
    "trainer": interfaces.Trainer,
    "dataset": interfaces.Dataset,
}
# The base class has a whole one of these.
_WHOLE = frozenset(("state_dict", "load_state_dict"))


def missing_methods(kind: str, component: object) -> list[str]:
    """The names of the interface that a component lacks, or that only its base class has; none for an unknown type."""
    return [name for name in METHODS.get(kind, ()) if not _has(kind, component, name)]


def _has(kind: str, component: object, name: str) -> bool:
    if getattr(component, name, None) is None:
        return False
    if kind == "agent" or name in _WHOLE or name in vars(component):
        return True
    own = getattr(type(component), name, None)
    return own is None or own is not getattr(_BASES[kind], name, None)


Source = Callable[[str, str, str], ComponentOffer | None]


def find_offer(
    kind: str, spec: str, folder: Path, *, class_name: str = "", name: str = "", sources: Sequence[Source] = ()
) -> ComponentOffer:
    """The component that ``install TYPE NAME`` means, for the project in ``folder``.

    ``spec`` is NAME, NAME==VERSION, a path (with ``.``, ``/`` or ``~`` in front, or ``.py`` behind), gym:ID, or
    openenv:IMAGE_OR_URL. A name is looked for among the components that ship, then in ``sources`` in their order. With
    a version, or with a publisher as in PUBLISHER/NAME, only there.

    Of an environment of Gymnasium or OpenEnv the ``requirements`` are the packages that this Python lacks, and no
    ``packages`` fit them yet.

    Raises:
        NotFound: there is none of this name or id, or no such file.
        UsageError: the type or name can't be one, or the file does not say which class is meant.
    """
    kind = kind.lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,31}", kind):
        raise UsageError(
            f"“{one_line(kind, 40)}” is no type of component", hint="environment, policy, trainer, dataset"
        )
    if spec.startswith((GYM, OPENENV)):
        library, of_library = ("Gymnasium", _gymnasium) if spec.startswith(GYM) else ("OpenEnv", _openenv)
        if kind != "environment":
            raise UsageError(f"{library} has environments, no {kind}", hint=f"autoresearch install environment {spec}")
        return _renamed(of_library(spec.partition(":")[2]), name)
    if _ADDRESS.match(spec):
        hint = f"git clone ADDRESS FOLDER, then autoresearch install {kind} ./FOLDER"
        raise UsageError(f"“{one_line(spec, 80)}” is an address, no name of a component", hint=hint)
    if spec.startswith((".", "/", "~")) or spec.endswith(".py"):
        return _own(kind, Path(spec), folder, class_name, name)
    full_name, _, version = spec.partition("==")
    check_name(full_name.rpartition("/")[2])
    offer = None if version else shipped_offer(kind, full_name)
    for source in () if offer else sources:
        if offer := source(kind, full_name, version):
            break
    if offer is None:
        raise _unknown(kind, spec)
    return _renamed(offer, name)


def _renamed(offer: ComponentOffer, name: str) -> ComponentOffer:
    return msgspec.structs.replace(offer, name=check_name(name)) if name else offer


def _unknown(kind: str, spec: str) -> NotFound:
    names = [each.name for each in shipped_offers() if each.type == kind]
    other = next((each.type for each in shipped_offers() if each.name == spec), "")
    hint = did_you_mean(spec, names) or (f"here are: {', '.join(names)}" if names else "install ./file.py")
    if other:
        hint = f"autoresearch install {other} {spec}"
    return NotFound(f"there is no {kind} “{one_line(spec, 60)}” to install", hint=hint)


def _gymnasium(gym_id: str) -> ComponentOffer:
    if not re.fullmatch(r"(?:[\w.]+:)?(?:[\w-]+/)?[\w.-]+", gym_id):
        raise UsageError(f"“{one_line(gym_id, 60)}” is no id of Gymnasium", hint="gym:CartPole-v1")
    from autoresearch.run.package_locks import has_packages  # the command line starts without them

    lacking = [line for line in needed_packages(gym_id) if not has_packages([line])]
    return msgspec.structs.replace(gym_offer(gym_id), requirements=lacking)


def _openenv(server: str) -> ComponentOffer:
    """An environment of OpenEnv by its server's address, or an image: ``echo_env`` of ``ghcr.io/some/echo-env:1``."""
    is_address = re.fullmatch(r"(?:https?|wss?)://[^\s/?#]+[^\s?#]*", server) is not None
    if not is_address and not re.fullmatch(r"[a-z0-9][\w.-]*(?::\d+)?(?:/[\w.-]+)*(?:[:@][\w.:-]+)?", server):
        hint = "openenv:http://HOST:PORT, or openenv:IMAGE"
        raise UsageError(f"“{one_line(server, 60)}” is no address of an OpenEnv server, and no image", hint=hint)
    from autoresearch.run.package_locks import has_packages  # the command line starts without them

    name = "openenv" if is_address else re.split("[:@]", server.rpartition("/")[2])[0].replace("-", "_").lower()
    offer = _offer("environment", check_name(name), OPENENV_CLASS, f"OpenEnv's {server}.")
    return msgspec.structs.replace(
        offer,
        pins={"source": f"{OPENENV}{server}"},
        parameters={"url" if is_address else "image": server},
        requirements=[] if has_packages([_OPENENV_PACKAGE]) else [_OPENENV_PACKAGE],
    )


def _own(kind: str, typed: Path, folder: Path, class_name: str, name: str) -> ComponentOffer:
    """A file of the person's own, or a folder with one; it stays where it is."""
    path = typed if typed.is_absolute() else Path(os.path.abspath(typed.expanduser()))  # noqa: PTH100 - keeps links
    # A project's process does without these.
    from autoresearch.ask.registry.preparing import local_component
    from autoresearch.ask.requests import Description

    about, requirements = Description(), list[str]()
    if path.is_dir() and path != folder:  # the lists of the project itself are of all its components
        about, requirements = local_component(path, kind)
    module, _, short = (class_name or about.class_name).rpartition(":")
    files = [path / f"{module.replace('.', '/')}{each}" for each in (".py", f"/{INIT_FILE}")] if module else []
    file = path
    if path.is_dir():
        file = next(filter(Path.is_file, files), files[0]) if files else _lone_file(path, kind)
    if not file.is_file():
        raise NotFound(f"there is no file {file}", hint="give the Python file of the component")
    if "." in file.stem:
        raise UsageError(f"{file.name} can't be imported: it has a dot in its name", hint="rename the file")
    if not short:
        short = _lone_class(file, kind)
    elif not re.search(rf"(?<!\w){re.escape(short)}(?!\w)", file.read_text(errors="replace")):
        names = ", ".join(each.name for each in _classes(file))
        raise NotFound(
            f"{file} has no class {one_line(short, 60)}", hint=f"it has {names}" if names else "--class NAME"
        )
    root = path if path.is_dir() else file.parent
    while root not in (folder, root.parent) and (root / INIT_FILE).is_file():  # its package's name is part of its own
        root = root.parent
    place = os.path.relpath(root, folder)
    return ComponentOffer(
        type=kind,
        name=check_name(name or about.name or lone_name(short)),
        class_name=f"{dotted(root, file) or file.stem}:{short}",
        path="" if place == "." else place,
        description=about.description,
        pins={},
        requirements=requirements,
        needs=about.needs,
    )


def _lone_file(folder: Path, kind: str) -> Path:
    named = folder / f"{kind}.py"
    files = [named] if named.is_file() else sorted(folder.glob("*.py"))
    if len(files) > 1:
        files = [file for file in files if any(_is_for(each, kind) for each in _classes(file))] or files
    if len(files) != 1:
        raise UsageError(f"{folder} has {len(files)} Python files", hint="give the file, or --class file:Class")
    return files[0]


def _lone_class(file: Path, kind: str) -> str:
    """The class that a file holds for a type, told by its base class or its methods. Nothing is imported."""
    classes = _classes(file)
    fitting = [each for each in classes if _is_for(each, kind)] or classes
    if len(fitting) != 1:
        names = ", ".join(each.name for each in fitting) or "none"
        raise UsageError(f"{file} does not say which class is the {kind}: {names}", hint="--class NAME")
    return fitting[0].name


def _classes(file: Path) -> list[ast.ClassDef]:
    try:
        tree = parse_python(read_beneath(file.parent, file.name, MOST_BYTES))
    except (SyntaxError, ValueError) as error:
        raise not_python(file, error) from None
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}", hint="copy the file there") from None
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _is_for(node: ast.ClassDef, kind: str) -> bool:
    bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    own = {AGENT: "advance"}.get(kind, next((m for m in METHODS.get(kind, ()) if m != "reset"), ""))
    return kind.capitalize() in bases or bool(own and own in methods)
