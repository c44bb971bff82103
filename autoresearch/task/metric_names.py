"""What the name of a metric says: which values are better, of what kind it is, on which part of the data. Pure.

By whole words (``metric_words.toml``), never by parts of words: ``sentiment_accuracy`` has no "time" in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

Direction = Literal["minimize", "maximize"]

_WORDS = tomllib.loads(Path(__file__).with_name("metric_words.toml").read_text("utf-8"))
_MORE = frozenset((*_WORDS["result"]["more"], *_WORDS["result_elsewhere"]["more"]))
_LESS = frozenset((*_WORDS["result"]["less"], *_WORDS["result_elsewhere"]["less"]))
_WEAK = frozenset(_WORDS["weak"]["more"])
_OTHER_MORE, _OTHER_LESS = frozenset(_WORDS["other"]["more"]), frozenset(_WORDS["other"]["less"])
_NONE, _TURNED = frozenset(_WORDS["none"]["words"]), frozenset(_WORDS["turned"]["words"])
_HELD_OUT, _TRAINING = frozenset(_WORDS["part"]["held_out"]), frozenset(_WORDS["part"]["training"])
_TEST = frozenset(_WORDS["part"]["test"])
_RESULTS = _MORE | _LESS | _WEAK
_WORTH = {word: place for place, word in enumerate((*_WORDS["result"]["more"], *_WEAK, *_WORDS["result"]["less"]))}
_ALL = _RESULTS | _OTHER_MORE | _OTHER_LESS | _NONE | _TURNED | _HELD_OUT | _TRAINING
# What counts a run's progress: the number beside it is a place, and no part of a name.
COUNTERS = frozenset(_WORDS["counter"]["words"])
# A word at the end of a name that says over what the number was taken: train_loss_epoch.
_OVER = frozenset({"epoch", "step", "batch", "episode", "fold", "fraction", "percent", "n"})
# What a speed is counted by: tokens_per_second, tokens_per_joule.
_SPENT = frozenset({"second", "seconds", "sec", "s", "minute", "hour", "day", "ms", "joule", "watt", "dollar", "cent"})
_SPREAD = frozenset({"std", "sd", "stderr", "stdev"})
_PREPOSITIONS = frozenset({"of", "on", "for", "in", "at", "over", "after", "with"})  # accuracy of the test images
_AT = re.compile(r"(?<![A-Za-z])([PR])(?=@\d)", re.IGNORECASE)  # P@5
_SPLIT = re.compile(r"[\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_A_SECOND = re.compile(r"(?<=\w)/s(?:ec|econd)?(?!\w)")
_LONGEST = 200


class Kind(IntEnum):
    """What a number is, the likelier the number to improve the smaller."""

    RESULT = 0
    UNKNOWN = 1
    OTHER = 2


class DataPart(IntEnum):
    """Which part of the data it is about; the smaller is preferred."""

    HELD_OUT = 0
    UNSTATED = 1
    TRAINING = 2


class Meaning(NamedTuple):
    """What a name says. ``worth`` orders the results of one part of the data: the smaller is preferred."""

    kind: Kind
    part: DataPart
    direction: Direction | None
    worth: int


def direction_of(name: str) -> Direction | None:
    """Whether less or more of a metric is better, by its name; None where it says nothing, or two things.

    ``val_loss`` minimize, ``tokens_per_second`` maximize, ``fid_score`` minimize, ``foo`` None.
    """
    return meaning_of(name).direction


_STEPS = frozenset(["time", "steps", "moves", "epochs", "seconds", "episodes", "iterations", "evaluations"])
_STATED = re.compile(r"[\W_]*(lower|smaller|less|higher|larger|greater|more)[\W_]+is[\W_]+better")


@lru_cache(maxsize=4096)
def meaning_of(name: str) -> Meaning:
    """What a metric's name says by its words."""
    if stated := _STATED.search(name[:_LONGEST].lower()):  # score (lower is better)
        rest = meaning_of(name[: stated.start()])
        direction: Direction = "minimize" if stated[1] in ("lower", "smaller", "less") else "maximize"
        return rest._replace(direction=direction, kind=Kind.RESULT if rest.kind is Kind.UNKNOWN else rest.kind)
    words = words_of(name[:_LONGEST])
    part = (
        DataPart.HELD_OUT if _HELD_OUT & {*words} else DataPart.TRAINING if _TRAINING & {*words} else DataPart.UNSTATED
    )
    if "per" in words[1:-1]:  # tokens_per_second
        return _ratio(words, part)
    if "to" in words[1:]:  # time_to_accuracy, episodes_to_solve
        way = meaning_of("_".join(words[: words.index("to", 1)]))
        return way._replace(direction=way.direction or "minimize") if words[0] in _STEPS else way
    head = next((place for place in range(1, len(words)) if _is_aside(words, place)), len(words))
    core = [word for word in words[:head] if word not in _HELD_OUT | _TRAINING and not word.isdigit()]
    results = [word for word in core if word in _RESULTS]
    if words and not core and part is not DataPart.TRAINING:
        return Meaning(Kind.RESULT, part, None, len(_WORTH) + 1)  # Val: 0.79, Test: 0.81
    while len(core) > 1 and core[-1] in _OVER and results:
        core.pop()
    last = core[-1] if core else ""
    is_count = core[:1] in (["num"], ["n"])
    is_other = (
        is_count or last in _OTHER_MORE | _OTHER_LESS | _NONE - {"rate", "fraction", "index"} or _SPREAD & {*core}
    )
    if results and not is_other:
        turns = sum(word in _TURNED for word in core)
        strong = [word for word in results if word not in _WEAK] or results
        return Meaning(Kind.RESULT, part, _by_noun(strong, _MORE | _WEAK, _LESS, turns), min(map(_worth, strong)))
    others = [word for word in core if word in _OTHER_MORE | _OTHER_LESS]
    if results and is_count:
        return Meaning(Kind.OTHER, part, _by_noun(results, _MORE | _WEAK, _LESS, 0), 0)
    kind = Kind.OTHER if others or _NONE & {*core} else Kind.UNKNOWN
    return Meaning(kind, part, _by_noun(others[-1:], _OTHER_MORE, _OTHER_LESS, 0), 0)


def _is_aside(words: list[str], place: int) -> bool:
    """Whether what a number is called ends before this place: accuracy of the test images, AUC 5 folds, F1 k 5."""
    if words[place] in _PREPOSITIONS:
        return True
    two = words[place : place + 2]
    is_count = len(two) == 2 and any(word.isdigit() for word in two) and any(word in _NONE for word in two)
    return is_count and any(word in _RESULTS for word in words[:place])


def is_of_test_data(name: str) -> bool:
    """Whether a name says that a number is of the test data, and not of the validation data: ``test_acc``."""
    words = {*words_of(name[:_LONGEST])}
    return bool(words & _TEST) and not words & (_HELD_OUT - _TEST)


def part_word(text: str) -> str:
    """The first word of a text that says which part of the data it is about, as it stands there; else empty."""
    return next((word for word in _SPLIT.split(text[:_LONGEST]) if word.lower() in _HELD_OUT | _TRAINING), "")


def _ratio(words: list[str], part: DataPart) -> Meaning:
    """What a name such as ``tokens_per_second``, ``seconds_per_step`` or ``bits_per_byte`` says."""
    place = words.index("per", 1)
    above = [word for word in words[:place] if word not in _HELD_OUT | _TRAINING]
    if words[place + 1] in _SPENT:
        results = [word for word in above if word in _LESS]
        return Meaning(Kind.OTHER, part, "minimize" if results else "maximize", 0)
    whole = meaning_of("_".join(above))
    return whole._replace(part=part)


def _by_noun(words: list[str], more: frozenset[str], less: frozenset[str], turns: int) -> Direction | None:
    """The direction of the last word that has one: the noun, as in ``top1_error``."""
    last = next((word for word in reversed(words) if word in more | less), None)
    if last is None:
        return None
    return "maximize" if (last in more) != bool(turns % 2) else "minimize"


def _worth(word: str) -> int:
    return _WORTH.get(word, len(_WORTH))


def words_of(name: str) -> list[str]:
    """The words of a name in small letters; two or three that are one word of the field together count as that.

    ``valAccuracy_top1`` has ``val``, ``accuracy`` and ``top1``, ``log loss`` has ``logloss``.
    """
    tokens = [token for token in _SPLIT.split(_AT.sub("precision", _A_SECOND.sub(" per second", name))) if token]
    parts: list[str] = []
    for token in tokens:
        small = token.lower()
        pieces = [small] if small in _ALL or not token.isascii() else [piece.lower() for piece in _CAMEL.split(token)]
        parts += [piece for whole in pieces for piece in _pieces(whole)]
    words, place = [], 0
    while place < len(parts):
        for count in (3, 2, 1):
            joined = "".join(parts[place : place + count])
            if count == 1 or (joined in _ALL and place + count <= len(parts)):
                words.append(joined)
                place += count
                break
    return words


def _pieces(word: str) -> Iterator[str]:
    """A word, or where a script has no blanks the known words at its beginning and its end; ``loss3`` is ``loss``."""
    if word in _ALL:
        yield word
        return
    if word.isascii():
        stem = re.sub(r"\d+k?$", "", word)
        yield stem if stem in _ALL else word
        return
    for size in range(len(word) - 1, 1, -1):
        if word[:size] in _ALL:
            yield word[:size]
            break
    for size in range(len(word) - 1, 1, -1):
        if word[-size:] in _ALL:
            yield word[-size:]
            return
    yield word
