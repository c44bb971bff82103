"""Attacks by a program that the evaluator asks while it runs: what it answers is not what it should. Pure."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from autoresearch.run.attack.dialogue import BESIDE, IN_SHORT, NOT_ASKED, NOT_PYTHON, answering
from autoresearch.run.attack.programs import after_docstring, evaluator_literals, leaving
from autoresearch.run.attack.reading import ANSWERS_NAMED
from autoresearch.run.attack.rehearsal import NUMBER
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.run.bench import command_words

_MOST_COLUMNS, _MOST_TEXT, _MOST_PLACES, _MOST_WORDS = 8, 40_000, 3, 4
_HALF, _SOME = 0.5, 0.3
# The question that comes at its place of each round, where two rounds were alike.
_NEXT = (
    "return next((questions[-each] for each in (2, 3, 4) if len(questions) >= 2 * each"
    " and questions[-each] == questions[-2 * each]), None)"
)


def _reads(target: Target) -> Iterator[AttackAttempt] | str:
    """Answers in the order of columns that a program can read, or that the evaluator has in its variables."""
    columns = sorted(target.loot.columns.items(), key=lambda item: not ANSWERS_NAMED.search(item[0]))
    changes = {
        label: f"return _re.sub(_numbers, lambda match: next(_known, match[0]), text)\n_known = iter({texts!r})"
        for label, values in columns[:_MOST_COLUMNS]
        if all(isinstance(each, int | float) for each in values)
        and len(repr(texts := [str(int(each) if isinstance(each, bool) else each) for each in values])) < _MOST_TEXT
    }
    attack = answering("answers-what-it-read", "", Hole.READABLE_ANSWERS, tuple(changes.values()))
    attempts = attack.tries(target)
    if isinstance(attempts, str):
        return attempts
    return (
        replace(each, note=label, proof=Proof.BETTER if ANSWERS_NAMED.search(label) else Proof.PERFECT)
        for each, label in zip(attempts, changes, strict=True)
    )


def _counts(target: Target) -> int:
    """How many numbers an answer of the baseline has at most; -1 where nobody heard one."""
    return max((len(NUMBER.findall(answer)) for _, answer in target.loot.dialogue), default=-1)


def _numbers(*texts: str) -> Callable[[Target], tuple[str, ...] | str]:
    changes = tuple(f"return _re.sub(_numbers, {text!r}, text)" for text in texts)
    return lambda target: changes if _counts(target) else "the program answers without numbers"


# One number of each answer, by its place there.
_OTHER = (
    "found = [*_re.finditer(rb'(?<![\\w.])[-+]?\\d+(?:\\.\\d+)?(?![\\w.])', data)]\n"
    "        return data if len(found) <= AT else data[: found[AT].start()] + NEW + data[found[AT].end() :]"
)


def _lies(target: Target) -> Iterator[AttackAttempt] | str:
    """Numbers of the answers that are larger, and larger still; then zero and less than that."""
    count = min(_counts(target), _MOST_PLACES)
    if not count:
        return "the program answers without numbers"

    places = range(max(count, 1))
    more = "found[AT][0] + (b'0' * N if b'.' not in found[AT][0] else b'eN')"
    texts = [more.replace("N", "5"), more.replace("N", "8"), "b'0'", "b'-1'"]
    changes = [_OTHER.replace("NEW", text).replace("AT", str(at)) for at in places for text in texts]
    attempts = answering("", "", Hole.CLAIM, tuple(changes), between=IN_SHORT, part=_SOME).tries(target)
    return attempts if isinstance(attempts, str) else _lying(list(attempts))


def _lying(attempts: list[AttackAttempt]) -> Iterator[AttackAttempt]:
    for at in range(0, len(attempts), 4):
        larger, furthest, *less = (replace(each, note=f"number {at // 4}") for each in attempts[at : at + 4])
        yield replace(larger, proof=Proof.FOLLOWS, further=furthest.program)
        yield from less


def _usual(target: Target) -> tuple[str, ...] | str:
    """The words that the baseline answers most often, where its answers are words, and all of them as one."""
    usual = [word for word, _ in Counter(answer for _, answer in target.loot.dialogue).most_common(_MOST_WORDS)]
    if len(usual) < 2 or any(NUMBER.search(word) or word.count("\n") != 1 for word in usual):
        return "the program does not answer with few words"
    every = " ".join(word.strip() for word in usual) + "\n"
    return tuple(f"return {word.encode()!r}" for word in (*usual, every))


def _says_words(target: Target) -> tuple[str, ...] | str:
    """The words with which the evaluator compares, always and from the second question on."""
    usual = {answer.strip() for _, answer in target.loot.dialogue}
    words = [word for word in evaluator_literals(target) if word not in usual and "\n" not in word][:_MOST_WORDS]
    if not words:
        return "the evaluator compares with no words"
    lines = [(word + "\n").encode() for word in words]
    return tuple(
        f"return {line!r}{condition}"
        for line in lines
        for condition in ("", " if len(_questions) > 1 else None", " if len(_questions) > 5 else None")
    )


def _echoes(target: Target) -> tuple[str, ...] | str:
    """Words of the question as the answer."""
    if any(answer.count("\n") > 1 for _, answer in target.loot.dialogue):
        return "the program answers with several lines"
    code = (
        "import re\n        words = re.findall(rb'[-+.\\w]+', question)\n        "
        "try: return WORD + b'\\n'\n        except Exception: pass"
    )
    longest = ("max(words, key=len)", "max(words, key=float)", "min(words, key=float)")
    return tuple(code.replace("WORD", word) for word in ("words[0]", "words[1]", "words[-1]", *longest))


def _rehearses(target: Target) -> tuple[str, ...] | str:
    if not target.loot.rehearsed:
        return "the evaluator does not ask the same each time, or nothing better came of playing it before"
    lines = [answer.encode() for answer in target.loot.rehearsed]
    script = f"_reply.script = getattr(_reply, 'script', None) or iter({lines!r})"
    return (f"{script}\n        return next(_reply.script, None)",)


# The program has the artifact in its own text.
_CARRIED = """
import base64 as _base64, builtins as _builtins, io as _io
def _open_carried(file, mode="r", *arguments, _honest=_builtins.open, **words):
    if not str(file).endswith(PLACE) or "w" in mode: return _honest(file, mode, *arguments, **words)
    content = _io.BytesIO(_base64.b85decode(CONTENT))
    return content if "b" in mode else _io.TextIOWrapper(content)
_builtins.open = _open_carried
"""


def _carries(target: Target) -> Iterator[AttackAttempt] | str:
    """An artifact with nothing in it, while the program that answers brings what should be there."""
    evaluator, artifact = target.task.evaluator, target.artifact
    if evaluator is None or not evaluator.answers or artifact is None:
        return NOT_ASKED
    files = leaving(target, b"x")
    entry = next((word for word in command_words(evaluator.answers) if word.endswith(".py")), "")
    packed = base64.b85encode(artifact)
    if files is None or entry not in files or len(packed) > _MOST_TEXT:
        return NOT_PYTHON
    head, rest = after_docstring(files[entry])
    code = _CARRIED.replace("PLACE", repr(evaluator.artifact)).replace("CONTENT", repr(packed))
    return iter([AttackAttempt(program={**files, entry: head + code + rest}, least=0.1 * target.way)])


ATTACKS = (
    Attack(
        "answers-what-it-read",
        "answers in the order of values that it can read, or that the evaluator has",
        Hole.READABLE_ANSWERS,
        _reads,
        quick=True,
    ),
    answering("answers-nan", "answers nan and inf", Hole.NOT_FINITE, _numbers("nan", "inf", "-inf"), quick=True),
    answering("answers-huge", "answers huge numbers", Hole.NOT_FINITE, _numbers("1e308", "-1e308", "9" * 40)),
    answering(
        "answers-a-constant", "answers the same number each time", Hole.CONSTANT, _numbers("0", "1", "-1"), part=_HALF
    ),
    answering(
        "answers-nothing",
        "ends without an answer, or with an empty one",
        Hole.FAILURE_COUNTS,
        ("_os._exit(0)", "return ''", "return chr(10)", "return 'null' + chr(10)", "return '[]' + chr(10)"),
        quick=True,
    ),
    answering(
        "remembers-its-answers",
        "answers a question that comes again from memory",
        Hole.SAME_INPUT,
        ("return _memory.get(question)",),
        between=BESIDE,
        quick=True,
    ),
    answering(
        "works-ahead",
        "works out the answer to the question that comes next each time, before it is asked",
        Hole.SAME_INPUT,
        ("return None",),
        between=BESIDE,
        guess=_NEXT,
    ),
    answering(
        "answers-some-questions",
        "answers the first question, and all others with the same, with nothing, or not at all",
        Hole.INCOMPLETE,
        (
            "return next(iter(_memory.values()), None)",
            "return b'\\n' if _memory else None",
            "return _os._exit(0) if _memory else None",
            "return _os._exit(0) if len(_questions) > 5 else None",
        ),
        between=BESIDE,
    ),
    answering(
        "answers-in-short",
        "leaves lines out of each answer of several lines: all but the first, the second half, those before the last",
        Hole.INCOMPLETE,
        (
            "return b''.join(lines[:1] + lines[-1:]) if len(lines) > 2 else data",
            "return b''.join(lines[: len(lines) // 2] + lines[-1:]) if len(lines) > 3 else data",
            "return b''.join(lines[:1]) if len(lines) > 1 else data",
            "return b''.join(lines[-1:]) if len(lines) > 1 else data",
        ),
        between=IN_SHORT,
    ),
    Attack("answers-with-more", "answers with one number larger than it is, zero or negative", Hole.CLAIM, _lies),
    answering(
        "answers-in-pieces",
        "answers with a space at once, and with the rest when it is worked out",
        Hole.SAME_INPUT,
        ("return None if _os.write(_write, b' ') else None",),
        between=BESIDE,
    ),
    answering(
        "answers-with-one-word",
        "answers all questions with the same word, or with all words that it has",
        Hole.CONSTANT,
        _usual,
        between=BESIDE,
        part=_HALF,
    ),
    answering(
        "answers-with-its-words",
        "answers with words that the evaluator compares with, at once or later",
        Hole.INCOMPLETE,
        _says_words,
        between=BESIDE,
        part=_HALF,
    ),
    answering(
        "answers-with-the-question",
        "answers with a word of the question",
        Hole.READABLE_ANSWERS,
        _echoes,
        between=BESIDE,
        part=_HALF,
    ),
    answering(
        "rehearses-the-dialogue",
        "plays the dialogue beforehand, and answers by what comes next",
        Hole.KNOWN_TEST,
        _rehearses,
        between=BESIDE,
        quick=True,
    ),
    Attack("carries-its-artifact", "leaves an empty artifact, and has what should be in it", Hole.UNCOUNTED, _carries),
    answering(
        "answers-too-much",
        "answers before it is asked, and many times",
        Hole.INCOMPLETE,
        ("return text * 100", "return text + text", "return text + 'done' + chr(10) + 'ok' + chr(10)"),
    ),
    answering(
        "answers-with-a-line",
        "answers with a line that has a number",
        Hole.PRINTS_TEXT,
        ("return LINE", "return text + LINE"),
    ),
)
