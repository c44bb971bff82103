"""Attacks by a program that the evaluator asks while it runs: what it answers is not what it should. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from autoresearch.run.attack.programs import after_docstring
from autoresearch.run.attack.reading import ANSWERS_NAMED
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.run.bench import command_words
from autoresearch.task.program import split_program

_NOT_ASKED = "no evaluator asks the program while it runs"
_MOST_COLUMNS, _MOST_TEXT = 8, 40_000
_NOT_PYTHON = "what answers is not a Python file that may change"

# What the program writes to the evaluator goes through change(text) first.
_BETWEEN = """
import os as _os, re as _re
_pipe = int(_os.environ["AUTORESEARCH_TALK_WRITE"])
_numbers = r"[-+]?\\d+(?:\\.\\d+)?(?:e[-+]?\\d+)?"
def _change(text):
    CHANGE
def _changed(data):
    return _change(data) if isinstance(data, str) else _change(bytes(data).decode("latin-1")).encode("latin-1")
class _Between:
    def __init__(self, stream): self._stream = stream
    def write(self, data):
        self._stream.write(_changed(data))
        return len(data)
    def writelines(self, lines):
        for line in lines: self.write(line)
    def __getattr__(self, name): return getattr(self._stream, name)
    def __enter__(self): return self
    def __exit__(self, *_): self._stream.close()
    def __iter__(self): return iter(self._stream)
_write, _fdopen = _os.write, _os.fdopen
def _writing(descriptor, data):
    _write(descriptor, _changed(data) if descriptor == _pipe else data)
    return len(data)
def _opening(descriptor, *arguments, **words):
    stream = _fdopen(descriptor, *arguments, **words)
    return _Between(stream) if descriptor == _pipe else stream
_os.write, _os.fdopen = _writing, _opening
"""
# Between the evaluator and the program, which goes on in a process of its own: reply(question) may answer in its place,
# and guess(questions) may say what it is asked next, which it then works out before it is asked.
_BESIDE = """
import os as _os
(_hear, _ask), (_listen, _speak) = _os.pipe(), _os.pipe()
if _os.fork():
    import select as _select
    _os.close(_hear), _os.close(_speak)
    _read, _write = (int(_os.environ["AUTORESEARCH_TALK_" + name]) for name in ("READ", "WRITE"))
    _memory, _questions, _answer, _next, _first, _ahead = {}, [], b"", None, None, None
    def _reply(question):
        REPLY
    def _guess(questions):
        GUESS
    def _cut(data):
        CUT
    while True:
        _ready = _select.select([_read, _listen], [], [])[0]
        if _listen in _ready:
            _data = _os.read(_listen, 1 << 16)
            if not _data: break
            _answer += _data
            if _next is None: _os.write(_write, _cut(_data))
            if not _data.endswith(b"\\n"): continue
            if _next is None:
                if _questions: _memory[_questions[-1]] = _answer
            elif _first is None:
                _first = _answer
                _os.write(_ask, _next)
            else:
                _ahead = (_next, _answer)
                _os.write(_write, _first)
                _next = _first = None
            _answer = b""
            continue
        _question = _os.read(_read, 1 << 16)
        if not _question: break
        _questions.append(_question)
        _known = _reply(_question)
        if _ahead is not None and _question == _ahead[0]: _known = _ahead[1]
        elif _known is None: _next = _guess(_questions)
        _ahead = None
        _os.write(*((_ask, _question) if _known is None else (_write, _known)))
    _os._exit(0)
_os.close(_ask), _os.close(_listen)
_os.environ.update(AUTORESEARCH_TALK_READ=str(_hear), AUTORESEARCH_TALK_WRITE=str(_speak))
"""
_IN_SHORT = _BESIDE.replace("REPLY", "return None").replace(
    "CUT", "import re as _re\n        lines = data.splitlines(True)\n        CHANGE"
)
# The question that comes at its place of each round, where two rounds were alike.
_NEXT = (
    "return next((questions[-each] for each in (2, 3, 4) if len(questions) >= 2 * each"
    " and questions[-each] == questions[-2 * each]), None)"
)


def _answering(
    name: str,
    does: str,
    hole: Hole,
    changes: tuple[str, ...],
    *,
    between: str = _BETWEEN,
    guess: str = "return None",
    quick: bool = False,
) -> Attack:
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        evaluator = target.task.evaluator
        if evaluator is None or not evaluator.answers:
            return _NOT_ASKED
        files = split_program(target.task.baseline.decode())
        entry = next((word for word in command_words(evaluator.answers) if word in files and word.endswith(".py")), "")
        if not entry:
            return _NOT_PYTHON
        number, head_and_rest = target.better_number(len(name)), after_docstring(files[entry])
        line = f"\n---\n{target.task.metric.name}: {number}\n"
        return (
            AttackAttempt(
                program={
                    **files,
                    entry: head_and_rest[0]
                    + between.replace("CHANGE", change.replace("LINE", repr(line)))
                    .replace("REPLY", change)
                    .replace("GUESS", guess)
                    .replace("CUT", "return data")
                    + head_and_rest[1],
                },
                proof=Proof.STATED if "LINE" in change else Proof.BETTER,
                stated=number,
                note=change[:60],
            )
            for change in changes
        )

    return Attack(name, does, hole, tries, quick)


def _reads(target: Target) -> Iterator[AttackAttempt] | str:
    """Answers in the order of columns that a program can read, or that the evaluator has in its variables."""
    columns = sorted(target.loot.columns.items(), key=lambda item: not ANSWERS_NAMED.search(item[0]))
    changes = {
        label: f"return _re.sub(_numbers, lambda match: next(_known, match[0]), text)\n_known = iter({texts!r})"
        for label, values in columns[:_MOST_COLUMNS]
        if all(isinstance(each, int | float) for each in values)
        and len(repr(texts := [str(int(each) if isinstance(each, bool) else each) for each in values])) < _MOST_TEXT
    }
    attack = _answering("answers-what-it-read", "", Hole.READABLE_ANSWERS, tuple(changes.values()))
    attempts = attack.tries(target)
    if isinstance(attempts, str):
        return attempts
    return (
        replace(each, note=label, proof=Proof.BETTER if ANSWERS_NAMED.search(label) else Proof.PERFECT)
        for each, label in zip(attempts, changes, strict=True)
    )


def _numbers(*texts: str) -> tuple[str, ...]:
    return tuple(f"return _re.sub(_numbers, {text!r}, text)" for text in texts)


ATTACKS = (
    Attack(
        "answers-what-it-read",
        "answers in the order of values that it can read, or that the evaluator has",
        Hole.READABLE_ANSWERS,
        _reads,
        quick=True,
    ),
    _answering("answers-nan", "answers nan and inf", Hole.NOT_FINITE, _numbers("nan", "inf", "-inf"), quick=True),
    _answering("answers-huge", "answers huge numbers", Hole.NOT_FINITE, _numbers("1e308", "-1e308", "9" * 40)),
    _answering("answers-a-constant", "answers the same number each time", Hole.CONSTANT, _numbers("0", "1", "-1")),
    _answering(
        "answers-nothing",
        "ends without an answer, or with an empty one",
        Hole.FAILURE_COUNTS,
        ("_os._exit(0)", "return ''", "return chr(10)", "return 'null' + chr(10)", "return '[]' + chr(10)"),
        quick=True,
    ),
    _answering(
        "remembers-its-answers",
        "answers a question that comes again from memory",
        Hole.SAME_INPUT,
        ("return _memory.get(question)",),
        between=_BESIDE,
        quick=True,
    ),
    _answering(
        "works-ahead",
        "works out the answer to the question that comes next each time, before it is asked",
        Hole.SAME_INPUT,
        ("return None",),
        between=_BESIDE,
        guess=_NEXT,
    ),
    _answering(
        "answers-some-questions",
        "answers the first question, and all others with the same, with nothing, or not at all",
        Hole.INCOMPLETE,
        (
            "return next(iter(_memory.values()), None)",
            "return b'\\n' if _memory else None",
            "return _os._exit(0) if _memory else None",
        ),
        between=_BESIDE,
    ),
    _answering(
        "answers-in-short",
        "leaves lines out of each answer of several lines: all but the first, the second half, those before the last",
        Hole.INCOMPLETE,
        (
            "return b''.join(lines[:1] + lines[-1:]) if len(lines) > 2 else data",
            "return b''.join(lines[: len(lines) // 2] + lines[-1:]) if len(lines) > 3 else data",
            "return b''.join(lines[:1]) if len(lines) > 1 else data",
            "return b''.join(lines[-1:]) if len(lines) > 1 else data",
        ),
        between=_IN_SHORT,
    ),
    _answering(
        "answers-with-more",
        "answers with a number that is larger, zero or negative in front",
        Hole.CLAIM,
        tuple(f"return _re.sub(rb'^[-+]?\\d+(?![\\w.])', {by}, data)" for by in ("rb'\\g<0>00000'", "b'0'", "b'-1'")),
        between=_IN_SHORT,
    ),
    _answering(
        "answers-too-much",
        "answers before it is asked, and many times",
        Hole.INCOMPLETE,
        ("return text * 100", "return text + text", "return text + 'done' + chr(10) + 'ok' + chr(10)"),
    ),
    _answering(
        "answers-with-a-line",
        "answers with a line that has a number",
        Hole.PRINTS_TEXT,
        ("return LINE", "return text + LINE"),
    ),
)
