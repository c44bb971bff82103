"""The names and numbers of one printed line after another. Pure.

What forms there are stands in :mod:`autoresearch.task.printed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.task.metric_names import COUNTERS, DataPart, Kind, meaning_of, part_word
from autoresearch.task.printed_forms import (
    BOUNDARY,
    COUNTED,
    DECIMAL_COMMA,
    DIGITS,
    name_key,
    name_of,
    simplified,
    trailing_name,
)

_MOST_CELLS = 48

_NOTHING = r"[-+.]{0,2}(?:nan(?:\(\w{1,8}\)|16|32)?|inf(?:inity|16|32)?|none|null|n/?a)(?![\w./(])"
_TYPE = r"(?:(?:np|numpy|torch|jnp|tf)\.)?(?:float|int|tensor|array|decimal|parameter)\d{0,3}"
_WRAP = rf"(?:['\"*`$€£<\[(]|{_TYPE}[\[(]){{0,6}}\s?"
# Behind a number that is one of several in brackets.
_SEVERAL = r"(?!(?:\s?,\s?|\s)[-+]?\.?\d[\d.e+-]*(?:(?:\s?,\s?|\s)[-+]?[\d.e+-]+){0,99}(?:\s?\.\.\.)?\s?[\])])"
# What may stand between a number and the end of what it was wrapped in.
_NAMED = r",\s?(?:device|dtype|grad_fn|requires_grad|shape|weak_type)=[^,()\[\]]{0,60}(?:\([^()]{0,20}\))?"
_UNWRAP = rf"(?:\s?[\])'\"*`>]|{_NAMED}){{0,8}}"
_VALUE = (
    rf"{_WRAP}(?:(?P<nothing>{_NOTHING})|(?P<number>[-+]?{DIGITS})(?P<of>\s?/\s?{DIGITS})?(?P<unit>[%％]|[kMB](?![\w/]))?)"
    rf"{_SEVERAL}{_UNWRAP}"
)
_END = r"(?=\s|$|,(?!\d)|[，、；。;|│┃║)\]}'\"%％…±]|/(?=[A-Za-z])|\+/?-|\+[\d.n]|[.!](?!\d)|[A-Za-zµ°](?!\w*\())"
# Between a name and its number stand one of these, or blanks.
_JOIN = r"\s{0,3}(?::=|[:=：＝]|[-=]>|→|⇒|≈)(?![:=])\s{0,3}|\s(?:is|was|of|are|at|reached)(?:\s?[:=])?\s"
_JOINED = re.compile(rf"(?:(?P<join>{_JOIN})|(?P<blank>\s{{1,3}})){_VALUE}{_END}", re.IGNORECASE)
_UNITS = re.compile(
    r"\s?(?:[A-Za-zµ°]{1,8}/[A-Za-z]{1,10}|%|[kMGT]?i?B|[mµun]?s|secs?|seconds?|minutes?|mins?|hours?|hrs?|dB|bits?|bytes?|Hz|ms)?"
    r"(?:\s?(?:±|\+/-|\+-)\s?[\d.]+(?:e[-+]?\d+)?%?|\s?\((?:±|\+/-|\+-)\s?[\d.]+(?:e[-+]?\d+)?%?\)|\s?\(\d+(?:\.\d+)?\s?%\))?(?!\w)",
    re.IGNORECASE,
)
_ATTACHED = re.compile(r"[A-Za-zµ°%/^*]{0,16}")
_PAIR = re.compile(
    rf"(?P<quote>['\"])(?P<key>[^'\"\n]{{1,80}}?)(?P=quote)\s{{0,8}}:\s{{0,8}}(?:(?P<open>\{{)|{_VALUE}(?=\s*(?:[,}}\]]|$)))|(?P<close>\}})",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"\s*{_VALUE}(?:[A-Za-zµ°%][\w%/^*.-]{{0,15}}|\s(?:%|[mµun]?s|secs?|min|[KMGT]?i?B|[A-Za-z]{{1,6}}/[A-Za-z]{{1,6}}|dB|Hz))?"
    r"(?:\s?±\s?[\d.]+)?\s*[.;]?\s*",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"\s*(?P<key>[^\W\d_][^:=：＝\n]{0,80}?)\s*[:=：＝]\s*")
HAS_VALUE = re.compile(r"\d|nan|inf|none|null|n/?a\b", re.IGNORECASE)

# The field of a mapping that says which part of the data it is about.
_SPLIT_FIELD = re.compile(
    r"[\"'](?:split|phase|mode|stage|subset|partition|set)[\"']:\s?[\"'](\w{1,20})[\"']", re.IGNORECASE
)
# Behind a number that counts what there is, and is no result: train: 455 rows.
_THING = (
    r"\s?(?:rows|samples|examples|images|records|sentences|documents|files|batches|items|points|instances|features|classes"
    r"|param(?:eter)?s|tokens|words|epochs|(?:time)?steps|iterations|episodes|generations|trials|workers|threads"
    r"|(?:ms|seconds|minutes|hours)\sper)\b"
)
# avg return over 10 episodes: 231.5; mean reward (last 100 episodes) 12.3
_THINGS = re.compile(_THING + r"(?P<headed>(?:\)\s{0,3}[:=]?|\s{0,3}[:=])\s{0,3}[-+]?\.?\d)?", re.IGNORECASE)
# What stands before a name and is no part of it: times, levels and sources of a log, marks of lists.
_PREFIX = re.compile(
    r"\s*(?:\d{4}[-/]\d\d[-/]\d\d[T ]?|\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)|"
    r"wandb:|(?:stdout|stderr) [FP]\s|\[[^\[\]{}'\"]{0,60}\]\s?:?|\([\w .=:-]{0,30} ?pid=\d+\)|"
    r"(?-i:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|NOTICE|SUCCESS|Info|Warning)\b(?!\s?=)(?::[\w.]{1,60}:)?\s*[:|-]?|"
    r"[\w.]{1,60}:[\w<>.]{1,60}:\d+\s*[-:|]|[-*•>#+=~✓✔✅🚀📈🎯→]+(?=\s|\w|\*)|\$(?=\s))\s*",
    re.IGNORECASE,
)
_MOST_BESIDE = 4
_PREPOSITIONS = frozenset({"after", "over", "on", "in", "for", "across", "with", "within", "from", "per", "than", "by"})
_A_TIME = re.compile(r"\s+[^\W\d]\S{0,20}\s+\d+:\d")
_MEAN = re.compile(r"\s?\(\s*([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*\)")
_PASS = re.compile(r"\[\s{0,4}\d+\s?/\s?\d+\]")
_CELL = re.compile(r"[|│┃║┆┊]")
RULED = re.compile(r"[\s|│┃║┆┊+=:_.·┌┬┐├┼┤└┴┘─━═╒╤╕╞╪╡╘╧╛┏┳┓┡╇┩╭╮╰╯╶╴╺╸—–-]+")
_BLANKS = re.compile(r"\s{2,}")
_TYPED = re.compile(r"[-=:.─━]+|<\w{1,10}>|[iuf]\d{1,2}|u?int\d*|float\d*|str|bool|date|object|chr|dbl", re.IGNORECASE)
_VALUE_COLUMNS = ("value", "estimate", "result")


class PrintedItem(NamedTuple):
    """A name with its number or None."""

    name: str
    value: float | None
    bare: str
    """The name without what stands earlier in the line."""
    is_loose: bool = False
    """Whether only a blank is between name and number."""
    is_empty: bool = False
    """Whether nothing stands where its number should be."""
    in_progress: bool = False
    """Whether its line is one of many in a pass over the data, such as ``Test: [3/10]``."""


class LineReader:
    """Reads lines in their order: what a line means can depend on those before it."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        """The last line of names, by how its cells are parted."""
        self._section = ""
        self._inside: list[str] = []
        """The keys of the mapping that lines are in."""
        self._heading = ""
        self._part = ("", 0)
        """The part of the data that a heading names, and how far that is indented: what stands below is about it."""

    def read(self, line: str) -> list[PrintedItem]:
        """The names and numbers of a line."""
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= self._part[1]:
            self._part = ("", 0)
        below = self._part[0]
        return [item._replace(name=_qualified(item.name, below)) for item in self._items(line, indent)]

    def _items(self, line: str, indent: int) -> list[PrintedItem]:
        line = simplified(line)
        heading, self._heading = self._heading, ""
        line = _without_prefix(line)
        if not line.strip():
            self._heading = heading
            return []
        if match := _EMPTY.fullmatch(line):
            self._heading, name = match["key"], name_of(match["key"])
            self._part = (part_word(match["key"]), indent)
            return [PrintedItem(name, None, name, is_empty=True)] if name else []
        if not HAS_VALUE.search(line):
            self._keep_names(line)
            return []
        if heading and (match := _BARE.fullmatch(line)):
            name = name_of(heading)
            return [PrintedItem(name, _value(match, name), name)] if name else []
        items, rest = self._mapping(line)
        if not items and (row := self._table(line)) is not None:
            return row
        return [*items, *_sentence(rest)]

    def _mapping(self, line: str) -> tuple[list[PrintedItem], str]:
        """The pairs of a dict or of JSON, also of one that goes over lines; and the line without them."""
        items: list[PrintedItem] = []
        stated = part_word(line.partition("{")[0]) if "{" in line else ""
        if split := _SPLIT_FIELD.search(line):
            stated = split[1]

        def take(match: re.Match[str]) -> str:
            if match["close"]:
                self._inside = self._inside[:-1]
            elif match["open"]:
                self._inside = [*self._inside[-3:], match["key"]]
            else:
                name = "/".join((*self._inside, "_".join(match["key"].split())))
                items.append(PrintedItem(_qualified(name, stated), _value(match, name), name))
            return ";"

        rest = _PAIR.sub(take, line) if "'" in line or '"' in line or self._inside else line
        return items, rest

    # Tables

    def _keep_names(self, line: str) -> None:
        if RULED.fullmatch(line):
            return
        for kind, cells in _rows(line):
            names = [cell.strip(" *`\"'↑↓") for cell in cells]
            if all(not name or _TYPED.fullmatch(name) for name in names):
                continue  # the types of columns, or a rule
            if kind == " " and not all(re.match(r"[^\W\d]", name) for name in names):
                self._names.pop(kind, None)
            elif len([name for name in names if name]) >= 2:
                self._names[kind] = names
                self._section = ""
            elif kind == "|" and len(names) == 2 and names[0].endswith("/"):
                self._section = names[0]
            else:
                self._names.pop(kind, None)

    def _table(self, line: str) -> list[PrintedItem] | None:
        """The names and numbers of a row; None where the line is none."""
        rows = [(kind, cells, [_BARE.fullmatch(cell) for cell in cells]) for kind, cells in _rows(line)]
        if not any(all(values) if kind == " " else any(values) for kind, _, values in rows):
            if not _JOINED.search(line):
                self._keep_names(line)  # such as "epoch  dev_f1"
            return None
        for kind, cells, values in rows:
            names = self._names.get(kind)
            numeric = sum(value is not None for value in values)
            if not numeric:
                continue
            least = {"|": 1, "\t": 1, " ": len(cells)}.get(kind, max(1, len(cells) // 2))
            if names and len(names) == len(cells) and numeric >= least:
                if len(cells) == 2 and values[0] is None and meaning_of(names[1]).kind is not Kind.RESULT:
                    return self._row(cells[0], values[1])
                return [*self._columns(names, cells, values), *(self._emptied(names, cells) if kind in ",;\t" else ())]
            if names and kind == "  " and len(cells) == len(names) + 1:
                if values[0] is None:
                    return self._labelled(names, cells[0], values[1:])
                return self._columns(names, cells[1:], values[1:])
            if values[0] is None and values[1] is not None and (kind == "|" or (kind == "\t" and len(cells) == 2)):
                return self._row(cells[0], values[1])
            if kind == "|" and not names and numeric == 1 and values[-1] is not None:
                return self._row(cells[-2], values[-1])  # result | accuracy | 0.93
            is_result = kind == "  " and meaning_of(cells[0]).kind is Kind.RESULT and not re.search("[:=]", line)
            if values[0] is None and values[1] is not None and is_result:
                return self._row(cells[0], values[1])
            if kind == "  " and any(a and b for a, b in pairwise(values)) and not re.search("[:=]", line):
                return []  # a row below names that were not understood
        return None

    def _row(self, label: str, value: re.Match[str] | None) -> list[PrintedItem]:
        name = name_of(label.strip(" *`\"'"))
        if not name or value is None:
            return []
        name = f"{self._section}{name}"
        return [PrintedItem(name, _value(value, name), name)]

    def _labelled(self, names: list[str], label: str, values: list[re.Match[str] | None]) -> list[PrintedItem]:
        """A row whose label no name stands above, as in scikit-learn's report, or the name of the label."""
        row = name_of(label.strip(" *`\"'"))
        items: list[PrintedItem] = []
        for name, value in zip(names, values, strict=True):
            if value is not None and (column := name_of(name)):
                items.append(PrintedItem(f"{row}_{column}" if row else column, _value(value, column), column))
        return items

    def _emptied(self, names: list[str], cells: list[str]) -> list[PrintedItem]:
        """The names above empty cells: their last word, where they had numbers before."""
        return [
            PrintedItem(column, None, column, is_empty=True)
            for name, cell in zip(names, cells, strict=True)
            if not cell and (column := name_of(name))
        ]

    def _columns(self, names: list[str], cells: list[str], values: list[re.Match[str] | None]) -> list[PrintedItem]:
        small = [name.lower().strip(".") for name in names]
        if "metric" in small and (
            column := next((small.index(name) for name in _VALUE_COLUMNS if name in small), None)
        ):
            return self._row(cells[small.index("metric")], values[column])
        if values[0] is None and meaning_of(cells[0]).kind is not Kind.OTHER:
            return self._labelled(names[1:], cells[0], values[1:])
        return self._labelled(names, "", values)


def _rows(line: str) -> Iterator[tuple[str, list[str]]]:
    """The cells of a line for each way in which it may be parted."""
    if _CELL.search(line):
        ways = {"|": _CELL.split(line.strip().strip("|│┃║┆┊"))}
    else:
        ways = {
            "\t": line.split("\t"),
            ",": line.split(","),
            ";": line.split(";"),
            "  ": _BLANKS.split(line.strip()),
            " ": line.split(),
        }
    for kind, cells in ways.items():
        if 1 < len(cells) <= _MOST_CELLS:
            yield kind, [cell.strip() for cell in cells]


def _without_prefix(line: str) -> str:
    """A line without times, levels and marks before it; ``[val] loss: 2`` is ``val: loss: 2``."""
    for _ in range(6):
        match = _PREFIX.match(line)
        if match is None or not match.end():
            break
        word = match.group().strip(" []:")
        if word.isalpha() and meaning_of(word).part is not DataPart.UNSTATED:
            return f"{word}: {line[match.end() :]}"
        line = line[match.end() :]
    return line


def _sentence(line: str) -> Iterator[PrintedItem]:
    """The names and numbers of a line of words.

    A number with only blanks before it counts where its name is short and the next name, a mark or the end follows.
    """
    in_progress = _PASS.search(line) is not None
    line = _PASS.sub(";", line)
    plain = COUNTED.sub(lambda counted: " " if counted["at"] else ";", line)
    matches = list(_JOINED.finditer(plain)) or list(_JOINED.finditer(line))
    line = plain if plain is not line and _JOINED.search(plain) else line
    stated, start = "", 0
    for match, following in zip_longest(matches, matches[1:]):
        begun = start
        name, lead = trailing_name(line[start : match.start()])
        if lead and (meaning_of(lead).kind is not Kind.RESULT or meaning_of(lead).direction is None):
            stated = part_word(lead) or stated
        unit = _UNITS.match(line, match.end()) or _ATTACHED.match(line, match.end())
        end = unit.end() if unit else match.end()
        if things := _THINGS.match(line, match.end()):
            start = start if things["headed"] else end
            continue
        if not name:
            start = end
            continue
        if match["blank"] is not None:
            after = line[end : following.start() if following else None]
            is_followed = (
                following is not None and len(after.split()) <= _MOST_BESIDE and not re.search(r"(?<![\w@])\d", after)
            )
            is_last = (
                _A_TIME.match(after)
                or BOUNDARY.match(after)
                or not after.strip()
                or re.match(r"\s?[.(\[]|\s(?:at|in|after)\s", after)
            )
            # score after 10 games: 312; score (10 runs) 0.4
            is_inside = name.rpartition("_")[2].lower() in _PREPOSITIONS or (
                "(" in match.group() and re.match(r"\s[^\W\d]", line[match.end() :])
            )
            is_flag = line[begun : match.start()].rpartition(" ")[2].startswith("-")  # ./solve --n 400
            if is_flag or is_inside or name.count("_") >= _MOST_BESIDE or not (is_last or is_followed):
                continue
            if match["nothing"] and meaning_of(name).kind is not Kind.RESULT:
                continue
        start = end
        if match["join"] == "=":  # seed_3 loss=0.5
            name = (
                name_of(re.sub(r"^(?:\S*[\d_]\S*\s+)+(?=\S)", "", BOUNDARY.split(line[begun : match.start()])[-1]))
                or name
            )
        is_loose, number = match["blank"] is not None, _value(match, name)
        if in_progress and (mean := _MEAN.match(line, match.end())):  # of a batch, and in brackets the mean so far
            number = float(mean[1])
        yield PrintedItem(_qualified(name, stated), number, name, is_loose=is_loose, in_progress=in_progress)


def _qualified(name: str, stated: str) -> str:
    """A name with the word for the part of the data that it is about, where it has none itself."""
    return f"{stated}_{name}" if stated and meaning_of(name).part is DataPart.UNSTATED else name


def _value(match: re.Match[str], name: str) -> float | None:
    """The number of a match; None where it is no finite number, or beyond all metrics."""
    if match["number"] is None:
        return None
    digits = match["number"].replace("_", "")
    is_decimal = re.match(rf"[-+]?{DECIMAL_COMMA}(?!\d)", digits)
    number = float(digits.replace(",", "." if is_decimal else ""))
    if (whole := match["of"]) and COUNTERS.isdisjoint(name_key(name).split("_")):
        total = float(whole.strip().lstrip("/").strip().replace(",", "").replace("_", ""))
        number = number / total if total else math.nan
    number *= {"k": 1e3, "m": 1e6, "b": 1e9}.get((match["unit"] or "").lower(), 1.0)
    return number if abs(number) <= NUMBER_MAX else None
