"""How an attack stands between the evaluator and the program that it asks while it runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from autoresearch.run.attack.programs import after_docstring
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.run.bench import command_words
from autoresearch.task.program import split_program

NOT_ASKED = "no evaluator asks the program while it runs"
NOT_PYTHON = "what answers is not a Python file that may change"

# What the program writes to the evaluator goes through change(text) first.
BETWEEN = """
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
BESIDE = """
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
IN_SHORT = BESIDE.replace("REPLY", "return None").replace(
    "CUT", "import re as _re\n        lines = data.splitlines(True)\n        CHANGE"
)


def answering(
    name: str,
    does: str,
    hole: Hole,
    changes: tuple[str, ...] | Callable[[Target], tuple[str, ...] | str],
    *,
    between: str = BETWEEN,
    guess: str = "return None",
    part: float = 0.0,
    quick: bool = False,
) -> Attack:
    """An attack that changes what is said; a gain takes ``part`` of the way, where a baseline may be weak."""

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        evaluator = target.task.evaluator
        if evaluator is None or not evaluator.answers:
            return NOT_ASKED
        files = split_program(target.task.baseline.decode())
        entry = next((word for word in command_words(evaluator.answers) if word in files and word.endswith(".py")), "")
        if not entry:
            return NOT_PYTHON
        texts = changes(target) if callable(changes) else changes
        if isinstance(texts, str):
            return texts
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
                least=part * target.way,
            )
            for change in texts
        )

    return Attack(name, does, hole, tries, quick)
