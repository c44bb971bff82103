"""Any environment of OpenEnv, by the address of its server or the image of its container: https://meta-pytorch.org/OpenEnv."""

from __future__ import annotations

import atexit
import itertools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.request import urlopen

import numpy as np
from openenv.core import GenericEnvClient
from openenv.core.containers.runtime import LocalDockerProvider

from autoresearch.errors import NoAnswer, ServiceFailed, UsageError
from autoresearch.project.interfaces import Environment
from autoresearch.services.spaces import Discrete
from autoresearch.text import one_line

MOST_ACTIONS = 1000
# Bytes of what a server says of its actions.
MOST_SCHEMA = 1 << 20


class Numbers(NamedTuple):
    """A space that has no bounds: arrays of this shape."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class OpenEnvEnvironment(Environment):
    """A session with the server at ``url``, or with one that is started from an ``image`` and ends with the run.

    An action is a number: its place in ``actions``, a JSON list of what the server takes. Left out, they are those that
    the server's own schema allows, where it names few. Otherwise an action is such a JSON object itself.

    An observation is the one field that the server sends, or that ``observe`` names: a number, text, or an array. Of
    several names, with commas between, it is their numbers in a row. Otherwise it is the JSON object.
    """

    def __init__(
        self,
        url: str = "",
        image: str = "",
        actions: list[dict[str, Any]] | None = None,
        observe: str = "",
        patience: float = 60.0,
    ) -> None:
        if bool(url) == bool(image):
            raise UsageError("one of url and image is needed", hint="url = http://HOST:PORT below the component")
        self.patience = patience
        self.names = [each.strip() for each in observe.split(",") if each.strip()]
        provider = None
        try:
            if image:
                provider = LocalDockerProvider()
                url = provider.start_container(image)
                atexit.register(provider.stop_container)
                provider.wait_for_ready(url, patience)
            self.url = url.rstrip("/")
            client = GenericEnvClient(self.url, message_timeout_s=patience)
            self.inner = client.sync()
            self.inner.connect()
        except (OSError, RuntimeError, ValueError) as error:
            raise NoAnswer(
                f"no OpenEnv server answers at {image or url}: {one_line(str(error), 200)}",
                hint="start it, and check url or image",
            ) from error
        atexit.register(self.inner.close)
        self.actions = actions if actions is not None else actions_of(self._schema())
        self.action_space = Discrete(len(self.actions)) if self.actions else None
        first = np.asarray(self.reset()[0])
        self.observation_space = Numbers(first.shape, first.dtype) if first.dtype.kind in "biuf" else None

    def _schema(self) -> Any:
        address = f"http{self.url[2:]}" if self.url.startswith("ws") else self.url
        try:
            with urlopen(f"{address}/schema", timeout=self.patience) as answer:  # noqa: S310 - http, as install checks
                return json.loads(answer.read(MOST_SCHEMA)).get("action")
        except (OSError, ValueError, AttributeError):  # an older server: it does not say
            return None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. JSON has whole numbers of any size, and a server's generators often take 32 bits."""
        seeds = {} if seed is None else {"seed": seed % 2**32}
        result = self._asked("reset", **seeds, **(options or {}))
        return self._observation(result.observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        result = self._asked("step", self.actions[int(action)] if self.actions else action)
        return self._observation(result.observation), float(result.reward or 0.0), bool(result.done), False, {}

    def _asked(self, act: str, *arguments: Any, **more: Any) -> Any:
        try:
            return getattr(self.inner, act)(*arguments, **more)
        except TimeoutError as error:
            reason = f"the OpenEnv server at {self.url} did not answer within {self.patience:g} s"
            raise NoAnswer(reason, hint="a larger patience, in seconds, below the component") from error
        except Exception as error:
            raise ServiceFailed(f"{act} of the OpenEnv server at {self.url}: {one_line(str(error), 200)}") from error

    def _observation(self, fields: Mapping[str, Any]) -> Any:
        names = self.names or (list(fields) if len(fields) == 1 else [])
        if missing := [each for each in names if each not in fields]:
            raise UsageError(f"the server sends no {missing[0]}", hint=f"observe = one of {', '.join(fields)}")
        if len(names) == 1:
            value = fields[names[0]]
            return np.asarray(value) if isinstance(value, list) else value
        if not names:
            return fields
        return np.concatenate([np.ravel(np.asarray(fields[each], dtype=np.float64)) for each in names])


def actions_of(schema: Any) -> list[dict[str, Any]]:
    """Every action that a JSON schema allows, where these are few; none where they are many, or it does not say."""
    if not isinstance(schema, dict) or not isinstance(fields := schema.get("properties"), dict):
        return []
    required = [each for each in schema.get("required", ()) if each in fields]
    choices = {name: values_of(fields[name], schema) for name in required or fields}
    if not required:  # the others keep what they are by default
        choices = {name: values for name, values in choices.items() if values}
    count = 1
    for values in choices.values():
        count *= len(values)
    if not choices or not 0 < count <= MOST_ACTIONS:
        return []
    return [dict(zip(choices, each, strict=True)) for each in itertools.product(*choices.values())]


def values_of(field: Any, schema: dict[str, Any]) -> list[Any]:
    """The few values of one field: those it lists, yes and no, or whole numbers between bounds."""
    reference = field.get("$ref", "") if isinstance(field, dict) else ""
    if reference:
        field = schema.get("$defs", {}).get(reference.rpartition("/")[2])
    if not isinstance(field, dict):
        return []
    if "const" in field:
        return [field["const"]]
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    if field.get("type") == "boolean":
        return [False, True]
    low = field.get("minimum", field.get("exclusiveMinimum", -1) + 1)
    high = field.get("maximum", field.get("exclusiveMaximum", -1) - 1)
    if field.get("type") == "integer" and 0 <= high - low < MOST_ACTIONS:
        return list(range(int(low), int(high) + 1))
    return []
