"""The names and numbers of one printed line after another. Pure.

What forms there are stands in :mod:`autoresearch.task.printed`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise, zip_longest
from typing import NamedTuple

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.task.metric_names import COUNTERS, DataPart, Kind, meaning_of, part_word

MAX_KEY_CHARACTERS = 64
_MOST_CELLS = 48
_LONGEST_NAME_WORDS = 9
_GAP = re.compile(r" {3,}")

# A comma before three digits parts thousands, else it is that of a decimal, as much of Europe writes it.
_DECIMAL_COMMA = r"(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))"
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+(?![\d,])|{_DECIMAL_COMMA}(?![\d,.])|\d[\d_]*|(?=\.\d))(?:\.\d*)?(?:e[-+]?\d+)?"
_NOTHING = r"[-+.]{0,2}(?:nan(?:\(\w{1,8}\)|16|32)?|inf(?:inity|16|32)?|none|null|n/?a)(?![\w./(])"
_TYPE = r"(?:(?:np|numpy|torch|jnp|tf)\.)?(?:float|int|tensor|array|decimal|parameter)\d{0,3}"
_WRAP = rf"(?:['\"*`$€£<\[(]|{_TYPE}[\[(]){{0,6}}\s?"
# Behind a number that is one of several in brackets.
_SEVERAL = r"(?!(?:\s?,\s?|\s)[-+]?\.?\d[\d.e+-]*(?:(?:\s?,\s?|\s)[-+]?[\d.e+-]+){0,99}(?:\s?\.\.\.)?\s?[\])])"
# What may stand between a number and the end of what it was wrapped in.
_NAMED = r",\s?(?:device|dtype|grad_fn|requires_grad|shape|weak_type)=[^,()\[\]]{0,60}(?:\([^()]{0,20}\))?"
_UNWRAP = rf"(?:\s?[\])'\"*`>]|{_NAMED}){{0,8}}"
_VALUE = (
    rf"{_WRAP}(?:(?P<nothing>{_NOTHING})|(?P<number>[-+]?{_DIGITS})(?P<of>\s?/\s?{_DIGITS})?(?P<unit>[%％]|[kMB](?![\w/]))?)"
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

# How far a bar of progress is, as tqdm draws it; what it says in brackets behind that stays.
_BAR = re.compile(
    r":?\s{0,4}\d{1,3}%\|[^|\n]{0,200}\|\s{0,4}[^\s\[]{1,24}\s?\[[\d:?<\s]{1,24}(?:,\s{0,3}(?:\?|[\d.]{1,12})\s?[A-Za-z]{1,12}/[A-Za-z]{1,12})?,?"
)
# Brackets between a name and its number: Average Precision @[ IoU=0.50 | area=all ] = 0.4
_ASIDE = re.compile(r"\s{0,4}(?:\(([^()]{1,20})\)\s?)?@?\[([^\[\]]{1,80})\](?=\s{0,3}[:=]\s{0,3}[-+]?\.?\d)")
# The same with a number in them: AUC (5 folds): 0.9; mAP (IoU 0.5) = 0.4
_NUMBERED_ASIDE = re.compile(r"(?<=[^\W\d])\s{0,2}()\(([^()]{0,40}\d[^()]{0,40})\)(?=\s{0,3}[:=]\s{0,3}[-+]?\.?\d)")
_CHANGED = re.compile(
    r"\s(?:has\s)?(?:improved|increased|decreased|reduced|went|rose|fell|dropped|changed)(?:\sfrom\s\S{1,24})?\sto\s(?=[-+]?\.?\d)"
)
# What a number was and what it is now: loss 0.52 -> 0.48; loss decreased (inf --> 0.4); loss before: 1.2, after: 0.8.
_WAS = (
    rf"(?:[-+]?{_DIGITS}(?:\s?[A-Za-zµ%]{{1,3}})?|[-+]?(?:inf(?:inity)?|nan|none))"
    r"(?:\s{0,2}(?:-{1,3}>|={1,2}>|→|⟶|➜|➔|⇒)\s{0,2}(?=[-+]?\.?\d|[-+]?inf|nan))"
)
_MOVED = re.compile(
    r"(?:\s(?:has\s)?(?:improved|increased|decreased|reduced|went|rose|fell|dropped|changed))?(?:\sfrom)?"
    rf"\s{{0,2}}[:=]?\s{{0,2}}[(\[]?\s?(?<![\w.])(?:{_WAS})+",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"\sbefore\s?[:=]?\s?[-+]?{_DIGITS}%?\s?[,;|/]?\s?(?:and\s)?after\s?[:=]?\s?(?=[-+]?\.?\d)", re.IGNORECASE
)
# A pair of an OrderedDict.
_TUPLE = re.compile(r"\(\s?(['\"])([^'\"\n]{1,80})\1,\s?(?=[-+.\d]|nan|inf|none|np\.|tensor|array)", re.IGNORECASE)
# The last of a list of numbers that a mapping has under a name: its curve.
_LIST = re.compile(r"(?<=:)\s?\[(?!\])(?:[^\[\]{}'\"]{0,4000}[,\s(])?([-+\w.]{1,30})\)?\s?\](?=\s?(?:[,}]|$))")
_TF = re.compile(r"<tf\.[^<>]{0,120}numpy=([^<>\s]{1,40})>")
# A name and its number in fields of their own.
_FIELDS = re.compile(
    r"([\"'])(?:name|metric|key|tag)\1:\s?(\"[^\"\n]{1,80}\"|'[^'\n]{1,80}')(?=.{0,300}?[\"']value[\"']:\s?([-+\w.]{1,40}))"
)
# The field of a mapping that says which part of the data it is about.
_SPLIT_FIELD = re.compile(
    r"[\"'](?:split|phase|mode|stage|subset|partition|set)[\"']:\s?[\"'](\w{1,20})[\"']", re.IGNORECASE
)
# Two names with two numbers: train/val loss: 0.1 / 0.2; loss (train, val): 0.1, 0.2; precision/recall: 0.8/0.7.
_FIRST, _SECOND = rf"(?P<a>[-+]?{_DIGITS})", rf"(?P<b>[-+]?{_DIGITS})(?![\w.]|\s?[/,|]\s?\d)"
_TWO_BEFORE = re.compile(
    rf"(?<![\w/])(?P<before>(?:[^\W\d]\w*\s){{0,3}}?)(?P<one>[^\W\d]\w*)\s?[/|]\s?(?P<two>[^\W\d]\w*)(?P<of>(?:\s[^\W\d]\w*){{0,3}})(?:\s?[:=]\s?|\s)"
    rf"{_FIRST}\s?[/|,]\s?{_SECOND}"
)
_TWO_BEHIND = re.compile(
    rf"(?<!\w)(?P<before>)(?P<of>[^\W\d]\w*)\s?\((?P<one>[^\W\d]\w*)\s?[/|,]\s?(?P<two>[^\W\d]\w*)\)\s?[:=]\s?"
    rf"{_FIRST}\s?[/|,]\s?{_SECOND}"
)
_SPENT_IN = frozenset({"s", "sec", "second", "min", "minute", "h", "hour", "it", "iter"})
# Which way is better, behind the number.
_BETTER = re.compile(
    r"\s?[:=]\s?(?P<number>[-+]?[\d.]+(?:e[-+]?\d+)?%?)"
    r"\s?(?P<better>\((?:lower|smaller|less|higher|larger|greater|more) is better\))",
    re.IGNORECASE,
)
_MINUTES = re.compile(r"(?<![\w.])(\d{1,6})m\s?(\d{1,2}(?:\.\d+)?)s\b")
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
_COUNTED = re.compile(
    rf"(?:\s(?P<at>at|after|in|on|for|from|@)\s+)?(?<![\w/.-])(?:{'|'.join(sorted(COUNTERS, key=len, reverse=True))})"
    r"\s?(?:no\.?|number)?\s?[#:=]?\s?[\[(]?\s?\d[\d,_]*(?![\d.]*\d|\w)(?:\s?(?:/|of)\s?\d[\d,_]*)?\s?[\])]?(?:\s?\(\s?\d+(?:\.\d+)?\s?%\))?",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"[,;|│┃║\t(){}<>\[\]—·•]|[，、；。]|[:=：＝]\s*|\s[-–]{1,2}\s|(?<=\w{4})[.!?]\s|(?<=\d)\s?[A-Za-zµ%]{0,4}\.\s|\s{2,}|\s(?:with|and|has|have)\s"
    r"|(?<!time)(?<!steps)(?<!moves)(?<!epochs)(?<!seconds)(?<!episodes)(?<!iterations)(?<!evaluations)\sto\s"
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
        line = _simplified(line)
        heading, self._heading = self._heading, ""
        line = _without_prefix(line)
        if not line.strip():
            self._heading = heading
            return []
        if match := _EMPTY.fullmatch(line):
            self._heading, name = match["key"], _name(match["key"])
            self._part = (part_word(match["key"]), indent)
            return [PrintedItem(name, None, name, is_empty=True)] if name else []
        if not HAS_VALUE.search(line):
            self._keep_names(line)
            return []
        if heading and (match := _BARE.fullmatch(line)):
            name = _name(heading)
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
        name = _name(label.strip(" *`\"'"))
        if not name or value is None:
            return []
        name = f"{self._section}{name}"
        return [PrintedItem(name, _value(value, name), name)]

    def _labelled(self, names: list[str], label: str, values: list[re.Match[str] | None]) -> list[PrintedItem]:
        """A row whose label no name stands above, as in scikit-learn's report, or the name of the label."""
        row = _name(label.strip(" *`\"'"))
        items: list[PrintedItem] = []
        for name, value in zip(names, values, strict=True):
            if value is not None and (column := _name(name)):
                items.append(PrintedItem(f"{row}_{column}" if row else column, _value(value, column), column))
        return items

    def _emptied(self, names: list[str], cells: list[str]) -> list[PrintedItem]:
        """The names above empty cells: their last word, where they had numbers before."""
        return [
            PrintedItem(column, None, column, is_empty=True)
            for name, cell in zip(names, cells, strict=True)
            if not cell and (column := _name(name))
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


def _simplified(line: str) -> str:
    """A line with what is drawn, put aside or told in words in the form of an assignment."""
    line = _NUMBERED_ASIDE.sub(_flat, _ASIDE.sub(_flat, _BAR.sub("; ", line)))
    line = _MINUTES.sub(lambda time: f"{60 * int(time[1]) + float(time[2]):g} s", line)
    if ":" in line and ("'" in line or '"' in line):
        line = _FIELDS.sub(r"\2: \3", _LIST.sub(r"\1", _TF.sub(r"\1", _TUPLE.sub(r"{\1\2\1: ", line))))
    elif "(" in line:
        line = _TUPLE.sub(r"{\1\2\1: ", line)
    if "is better" in line:
        line = _BETTER.sub(r" \g<better>: \g<number>", line)
    for two in (_TWO_BEFORE, _TWO_BEHIND):
        line = two.sub(_apart, line)
    for way in (_MOVED, _AFTER):
        line = way.sub(_now, line)
    return _GAP.sub("  ", _CHANGED.sub(": ", line))


def _now(was: re.Match[str]) -> str:
    """A colon between the name of a result or a speed and what it is now. ``lr 0.1 -> 0.93`` stays as it is."""
    before = was.string[: was.start()]
    meaning = meaning_of(_trailing(before)[0])
    if meaning.kind is not Kind.RESULT and meaning.direction is None:
        return was[0]
    return ": "


def _apart(two: re.Match[str]) -> str:
    """Two names with a number each; a counter of its total, and a speed, stay as they stand."""
    names = two["one"], two["two"]
    if not (COUNTERS | _SPENT_IN).isdisjoint(name.lower() for name in names):
        return two[0]
    before, of = two["before"], two["of"].strip()
    if not of and all(map(part_word, names)):  # accuracy train/test: 0.9/0.8
        before, of = "", before.strip()
    numbers = zip(names, (two["a"], two["b"]), strict=True)
    return before + "; ".join(f"{name} {of}".strip() + f": {number}" for name, number in numbers)


def _flat(aside: re.Match[str]) -> str:
    """What stands in brackets as one word of a name; a number alone in square ones, and a step, stay as they stand."""
    if ("[" in aside[0] and not re.search(r"[^\W\d]", aside[2])) or _COUNTED.search(aside[2]):
        return aside[0]
    return "_" + "_".join(re.findall(r"[\w.]+", f"{aside[1] or ''} {aside[2]}"))


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
    plain = _COUNTED.sub(lambda counted: " " if counted["at"] else ";", line)
    matches = list(_JOINED.finditer(plain)) or list(_JOINED.finditer(line))
    line = plain if plain is not line and _JOINED.search(plain) else line
    stated, start = "", 0
    for match, following in zip_longest(matches, matches[1:]):
        begun = start
        name, lead = _trailing(line[start : match.start()])
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
                or _BOUNDARY.match(after)
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
                _name(re.sub(r"^(?:\S*[\d_]\S*\s+)+(?=\S)", "", _BOUNDARY.split(line[begun : match.start()])[-1]))
                or name
            )
        is_loose, number = match["blank"] is not None, _value(match, name)
        if in_progress and (mean := _MEAN.match(line, match.end())):  # of a batch, and in brackets the mean so far
            number = float(mean[1])
        yield PrintedItem(_qualified(name, stated), number, name, is_loose=is_loose, in_progress=in_progress)


def _qualified(name: str, stated: str) -> str:
    """A name with the word for the part of the data that it is about, where it has none itself."""
    return f"{stated}_{name}" if stated and meaning_of(name).part is DataPart.UNSTATED else name


def _trailing(before: str) -> tuple[str, str]:
    """The name at the end of a text, and what stands before that."""
    aside = re.search(r"\s?\(([^()]{1,40})\)\s*$", before)  # accuracy (test)
    *leads, last = _BOUNDARY.split(before[: aside.start()] if aside else before)
    name = _name(last)
    if aside and name and (inner := _name(aside[1])):
        name = f"{name}_{inner}"
    return name, next((lead for piece in reversed(leads) if (lead := _name(piece))), "")


_ADDRESS = re.compile(r"\d\.\d+\.\d")
_AROUND_NAME = " \t%/-–*•>#`\"'.…,;:=~✓✔✅🚀📈🎯→[]"
_UNIT_OF_NAME = re.compile(
    r"\s?[(\[](?:%|[mµun]?s|sec|seconds|mm|cm|km|[KMG]?i?B|[KMG]B/s|ms/step|bits|dB|Hz|eV|kcal/mol)[)\]]$"
)


def _name(text: str) -> str:
    """The name of a number from the words before it; empty where these are none."""
    text = _UNIT_OF_NAME.sub("", text.strip(_AROUND_NAME)).strip(_AROUND_NAME)
    text = re.sub(r"'s(?=\s)", "", text)
    words = text.split()
    while words and (
        words[0].lower() in {"the", "and", "a", "an", "with", "is", "now"} or not re.search(r"[^\W_]", words[0])
    ):
        words = words[1:]
    # the number of a step, or any number before the words
    while len(words) > 1 and (
        re.fullmatch(r"[\d.,/%#\[\]()-]+:?", words[0])
        or (words[0].lower() in COUNTERS and re.match(r"[\[#(]?\d", words[1]))
    ):
        words = words[2:] if words[0].lower() in COUNTERS else words[1:]
    if not words or len(words) > _LONGEST_NAME_WORDS:
        return ""
    name = re.sub(r"[^\w./@%+-]+", "_", "_".join(words)).strip("_./-")
    if len(name) > MAX_KEY_CHARACTERS or not re.match(r"[^\W\d]", name) or _ADDRESS.search(name):
        return ""
    return name.rstrip(":：=")


def _value(match: re.Match[str], name: str) -> float | None:
    """The number of a match; None where it is no finite number, or beyond all metrics."""
    if match["number"] is None:
        return None
    digits = match["number"].replace("_", "")
    is_decimal = re.match(rf"[-+]?{_DECIMAL_COMMA}(?!\d)", digits)
    number = float(digits.replace(",", "." if is_decimal else ""))
    if (whole := match["of"]) and COUNTERS.isdisjoint(name_key(name).split("_")):
        total = float(whole.strip().lstrip("/").strip().replace(",", "").replace("_", ""))
        number = number / total if total else math.nan
    number *= {"k": 1e3, "m": 1e6, "b": 1e9}.get((match["unit"] or "").lower(), 1.0)
    return number if abs(number) <= NUMBER_MAX else None


def name_key(name: str) -> str:
    """A name for comparison."""
    plain = re.sub(r"['’]s\b", "", unicodedata.normalize("NFKC", name).casefold())
    return "_".join(re.split(r"[\W_]+", plain)).strip("_")
