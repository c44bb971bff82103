"""What Gymnasium says of an environment's id: whether there is one, and which Python packages it needs besides.

Its environments come in groups, and each group has packages of its own: extras of the package ``gymnasium``, see
https://gymnasium.farama.org/introduction/basic_usage/ and the list in its metadata.
"""

from __future__ import annotations

import difflib
from importlib.metadata import requires
from importlib.util import find_spec

from packaging.requirements import Requirement

from autoresearch.errors import NotFound
from autoresearch.projects.components.shelf import ATARI_MODULE, full_id
from autoresearch.projects.model import Component
from autoresearch.sanitise import one_line

_GYMNASIUM = "gymnasium>=1.0"
# What a person writes before an id.
GYM = "gym:"
# The packages of a group are an extra, by the module that has its environments.
_EXTRAS = {"gymnasium.envs.box2d": "box2d", "gymnasium.envs.mujoco": "mujoco"}


def needed_packages(gym_id: str) -> list[str]:
    """The packages that an environment needs besides Gymnasium, as ``mujoco>=2.1.5``; Gymnasium where it is not here.

    Nothing of an environment is imported. Of an id with a module in front, as ``module:Env-v0``, nothing is known but
    what Atari's games need.

    Raises:
        NotFound: Gymnasium has no such environment.
    """
    if find_spec("gymnasium") is None:
        return [_GYMNASIUM]
    module, colon, _ = full_id(gym_id).partition(":")
    if colon:
        extra = "atari" if module == ATARI_MODULE else ""
    else:
        extra = _EXTRAS.get(_module_of(gym_id).rpartition(".")[0], "")
    return _packages_of(extra)


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


def _similar(gym_id: str, known: list[str]) -> str:
    """What to type instead: the newest version of this environment, else the id that is nearest."""
    name = gym_id.partition("-v")[0].lower()
    versions = [each for each in known if each.partition("-v")[0].lower() == name]
    if versions:
        near = [max(versions, key=lambda each: int(each.rpartition("-v")[2] or 0))]
    else:
        near = difflib.get_close_matches(gym_id, known, 1)
    return f"autoresearch install environment gym:{near[0]}" if near else ""


def _packages_of(extra: str) -> list[str]:
    """The lines of an extra of Gymnasium that hold for this Python, without their conditions."""
    asked = [Requirement(line) for line in requires("gymnasium") or []] if extra else []
    return [f"{each.name}{each.specifier}" for each in asked if _is_of(each, extra)]


def _is_of(asked: Requirement, extra: str) -> bool:
    """Whether it is asked for with the extra, and not without."""
    marker = asked.marker
    return marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""})
