"""Spaces as values that can be sent, and back. Describing one needs no Gymnasium, making one does.

Also a space of a few numbers serves environments that do without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from autoresearch.errors import BadMessage, UsageError
from autoresearch.text import one_line

MOST_PARTS = 1000
# What Gymnasium allows for, and more than anybody has.
_MOST_NUMBERS = 1 << 28


def space_description(space: Any, name: str = "space") -> dict[str, Any]:  # noqa: ANN401 - a space of any library
    """A space of Gymnasium, one with ``n``, or anything with a shape and a type of number.

    Raises:
        UsageError: the space is of another kind.
    """
    kinds = {each.__name__ for each in type(space).__mro__ if each.__module__.partition(".")[0] in {"gymnasium", "gym"}}
    if "Box" in kinds:
        return _box(space.low, space.high)
    if "Discrete" in kinds or (not kinds and hasattr(space, "n") and space.shape == ()):
        return {"kind": "discrete", "n": int(space.n), "start": int(getattr(space, "start", 0))}
    if isinstance(space, Discrete):
        every = np.full(space.shape, space.n)
        return {"kind": "multi_discrete", "nvec": every, "start": np.zeros_like(every), "dtype": every.dtype.name}
    if "MultiDiscrete" in kinds:
        return {"kind": "multi_discrete", "nvec": space.nvec, "start": space.start, "dtype": space.dtype.name}
    if "MultiBinary" in kinds:
        return {"kind": "multi_binary", "shape": list(space.shape)}
    if "Text" in kinds:
        letters = "".join(space.character_set)
        return {"kind": "text", "least": int(space.min_length), "most": int(space.max_length), "letters": letters}
    if "Dict" in kinds:
        return {
            "kind": "dict",
            "parts": {key: space_description(each, f"{name} {key}") for key, each in space.spaces.items()},
        }
    if "Tuple" in kinds:
        return {"kind": "tuple", "parts": [space_description(each, name) for each in space.spaces]}
    if not kinds and hasattr(space, "shape") and hasattr(space, "dtype"):
        return _whole(tuple(space.shape), np.dtype(space.dtype))
    raise UsageError(
        f"the {name} {one_line(type(space).__name__, 40)} can't be described to clients",
        hint="use Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict or Tuple",
    )


def _box(low: np.ndarray[Any, Any], high: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Bounds that are the same everywhere are sent once: an image's would be larger than the image."""
    shape = list(low.shape)
    is_even = low.size > 0 and bool((low == low.flat[0]).all() and (high == high.flat[0]).all())
    bounds = (low.flat[0], high.flat[0]) if is_even else (low, high)
    return {"kind": "box", "shape": shape, "dtype": low.dtype.name, "low": bounds[0], "high": bounds[1]}


def _whole(shape: tuple[int, ...], dtype: np.dtype[Any]) -> dict[str, Any]:
    """Every value of a type of number."""
    if dtype.kind in "iu":
        low: Any = dtype.type(np.iinfo(dtype).min)
        high: Any = dtype.type(np.iinfo(dtype).max)
    elif dtype.kind == "b":
        low, high = np.False_, np.True_
    elif dtype.kind == "f":
        low, high = dtype.type(-np.inf), dtype.type(np.inf)
    else:
        raise UsageError(f"a space of {dtype.name} can't be described to clients")
    return {"kind": "box", "shape": list(shape), "dtype": dtype.name, "low": low, "high": high}


def space_from(description: Any) -> Any:  # noqa: ANN401 - what came from a server
    """The space of Gymnasium that a server described.

    Raises:
        BadMessage: it describes none.
    """
    try:
        return _made(description, [0])
    except (KeyError, TypeError, ValueError, AssertionError, AttributeError, OverflowError, RecursionError) as error:
        reason = one_line(f"{type(error).__name__}: {error}", 100)
        raise BadMessage(
            f"the server describes a space that is none ({reason})",
            hint="both sides must run the same version of autoresearch",
        ) from None


def _made(description: Any, count: list[int]) -> Any:  # noqa: ANN401
    count[0] += 1
    if count[0] > MOST_PARTS:
        raise ValueError(f"more than {MOST_PARTS} parts")
    maker = _MAKERS[description["kind"]]
    return maker(description, count)


def _made_box(fields: Mapping[str, Any], _: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import Box

    shape = tuple(map(int, fields["shape"]))
    size = 1
    for side in shape:
        size *= side
    if size > _MOST_NUMBERS or min(shape, default=0) < 0:
        raise ValueError(shape)
    return Box(fields["low"], fields["high"], shape, np.dtype(fields["dtype"]).type)


def _made_discrete(fields: Mapping[str, Any], _: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import Discrete

    return Discrete(fields["n"], start=fields["start"])


def _made_multi_discrete(fields: Mapping[str, Any], _: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import MultiDiscrete

    return MultiDiscrete(fields["nvec"], dtype=np.dtype(fields["dtype"]).type, start=fields["start"])


def _made_multi_binary(fields: Mapping[str, Any], _: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import MultiBinary

    shape = list(map(int, fields["shape"]))
    return MultiBinary(shape[0] if len(shape) == 1 else shape)


def _made_text(fields: Mapping[str, Any], _: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import Text

    return Text(fields["most"], min_length=fields["least"], charset=fields["letters"])


def _made_dict(fields: Mapping[str, Any], count: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import Dict

    return Dict({str(name): _made(each, count) for name, each in fields["parts"].items()})


def _made_tuple(fields: Mapping[str, Any], count: list[int]) -> Any:  # noqa: ANN401
    from gymnasium.spaces import Tuple

    return Tuple([_made(each, count) for each in fields["parts"]])


_MAKERS: dict[str, Callable[[Mapping[str, Any], list[int]], Any]] = {
    "box": _made_box,
    "discrete": _made_discrete,
    "multi_discrete": _made_multi_discrete,
    "multi_binary": _made_multi_binary,
    "text": _made_text,
    "dict": _made_dict,
    "tuple": _made_tuple,
}


_NUMBERS = "numbers"


class Discrete(msgspec.Struct, frozen=True):
    """The whole numbers from 0 to ``n`` - 1: one, or an array of them where there is a ``shape``, as a board has."""

    n: int
    shape: tuple[int, ...] = ()

    def contains(self, value: Any) -> bool:  # noqa: ANN401 - a number or an array
        """Whether a number, or every one of an array, is one of them."""
        numbers = np.asarray(value).astype(int)
        return numbers.shape == self.shape and bool(((numbers >= 0) & (numbers < self.n)).all())


def description_of(value: object) -> dict[str, Any] | None:
    """A space as plain values and arrays; None for what is none, and for kinds that can't be described."""
    if isinstance(value, Discrete):
        return {"kind": _NUMBERS, "n": value.n, "shape": list(value.shape)}
    if type(value).__module__.partition(".")[0] != "gymnasium":
        return None
    try:
        return space_description(value)
    except UsageError:
        return None


def space_of(description: object) -> Any:  # noqa: ANN401 - Gymnasium's, or ours
    """The space of a description, or None. Raises BadMessage where it describes none."""
    if description is None:
        return None
    if isinstance(description, Mapping) and description.get("kind") == _NUMBERS:
        return Discrete(int(description["n"]), tuple(map(int, description["shape"])))
    return space_from(description)
