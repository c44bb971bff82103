"""The names of numbers in a text, and lines brought to the form of an assignment. Pure.

What forms there are stands in :mod:`autoresearch.task.printed`.
"""

from __future__ import annotations

import re
import unicodedata

from autoresearch.task.metric_names import COUNTERS, Kind, meaning_of, part_word

MAX_KEY_CHARACTERS = 64
_LONGEST_NAME_WORDS = 9
_GAP = re.compile(r" {3,}")

# A comma before three digits parts thousands, else it is that of a decimal, as much of Europe writes it.
DECIMAL_COMMA = r"(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))"
DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+(?![\d,])|{DECIMAL_COMMA}(?![\d,.])|\d[\d_]*|(?=\.\d))(?:\.\d*)?(?:e[-+]?\d+)?"
# The number of a step: step 3/10, at epoch 5.
COUNTED = re.compile(
    rf"(?:\s(?P<at>at|after|in|on|for|from|@)\s+)?(?<![\w/.-])(?:{'|'.join(sorted(COUNTERS, key=len, reverse=True))})"
    r"\s?(?:no\.?|number)?\s?[#:=]?\s?[\[(]?\s?\d[\d,_]*(?![\d.]*\d|\w)(?:\s?(?:/|of)\s?\d[\d,_]*)?\s?[\])]?(?:\s?\(\s?\d+(?:\.\d+)?\s?%\))?",
    re.IGNORECASE,
)
BOUNDARY = re.compile(
    r"[,;|│┃║\t(){}<>\[\]—·•]|[，、；。]|[:=：＝]\s*|\s[-–]{1,2}\s|(?<=\w{4})[.!?]\s|(?<=\d)\s?[A-Za-zµ%]{0,4}\.\s|\s{2,}|\s(?:with|and|has|have)\s"
    r"|(?<!time)(?<!steps)(?<!moves)(?<!epochs)(?<!seconds)(?<!episodes)(?<!iterations)(?<!evaluations)\sto\s"
)
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
    rf"(?:[-+]?{DIGITS}(?:\s?[A-Za-zµ%]{{1,3}})?|[-+]?(?:inf(?:inity)?|nan|none))"
    r"(?:\s{0,2}(?:-{1,3}>|={1,2}>|→|⟶|➜|➔|⇒)\s{0,2}(?=[-+]?\.?\d|[-+]?inf|nan))"
)
_MOVED = re.compile(
    r"(?:\s(?:has\s)?(?:improved|increased|decreased|reduced|went|rose|fell|dropped|changed))?(?:\sfrom)?"
    rf"\s{{0,2}}[:=]?\s{{0,2}}[(\[]?\s?(?<![\w.])(?:{_WAS})+",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"\sbefore\s?[:=]?\s?[-+]?{DIGITS}%?\s?[,;|/]?\s?(?:and\s)?after\s?[:=]?\s?(?=[-+]?\.?\d)", re.IGNORECASE
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
# Two names with two numbers: train/val loss: 0.1 / 0.2; loss (train, val): 0.1, 0.2; precision/recall: 0.8/0.7.
_FIRST, _SECOND = rf"(?P<a>[-+]?{DIGITS})", rf"(?P<b>[-+]?{DIGITS})(?![\w.]|\s?[/,|]\s?\d)"
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


def simplified(line: str) -> str:
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
    meaning = meaning_of(trailing_name(before)[0])
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
    if ("[" in aside[0] and not re.search(r"[^\W\d]", aside[2])) or COUNTED.search(aside[2]):
        return aside[0]
    return "_" + "_".join(re.findall(r"[\w.]+", f"{aside[1] or ''} {aside[2]}"))


def trailing_name(before: str) -> tuple[str, str]:
    """The name at the end of a text, and what stands before that."""
    aside = re.search(r"\s?\(([^()]{1,40})\)\s*$", before)  # accuracy (test)
    *leads, last = BOUNDARY.split(before[: aside.start()] if aside else before)
    name = name_of(last)
    if aside and name and (inner := name_of(aside[1])):
        name = f"{name}_{inner}"
    return name, next((lead for piece in reversed(leads) if (lead := name_of(piece))), "")


_ADDRESS = re.compile(r"\d\.\d+\.\d")
_AROUND_NAME = " \t%/-–*•>#`\"'.…,;:=~✓✔✅🚀📈🎯→[]"
_UNIT_OF_NAME = re.compile(
    r"\s?[(\[](?:%|[mµun]?s|sec|seconds|mm|cm|km|[KMG]?i?B|[KMG]B/s|ms/step|bits|dB|Hz|eV|kcal/mol)[)\]]$"
)


def name_of(text: str) -> str:
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


def name_key(name: str) -> str:
    """A name for comparison."""
    plain = re.sub(r"['’]s\b", "", unicodedata.normalize("NFKC", name).casefold())
    return "_".join(re.split(r"[\W_]+", plain)).strip("_")
