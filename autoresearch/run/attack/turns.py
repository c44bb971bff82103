"""Attacks by the turns of a dialogue: answers from before it, before the work, behind the end, by what came. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from autoresearch.run.attack.dialogue import BESIDE, IN_SHORT, answering
from autoresearch.run.attack.programs import evaluator_literals
from autoresearch.run.attack.reading import likeness
from autoresearch.run.attack.target import Hole, Target
from autoresearch.run.attack.unpacking import scalar

# What was heard of a turn is cut here (spy.MOST_SAID): a longer one is not whole.
_WHOLE = 400
_LEAST_TURNS, _MOST_PLACES, _MOST_WORDS = 5, 4, 4
_LEAST_LIKENESS = 0.3
_HALF, _SOME = 0.5, 0.3
_TOKEN = re.compile(r"[-+.\w]+")

# The first line of an answer that always was the same at its place of each round: it goes out before the program has
# the question, whose own line is then dropped.
_EARLY = BESIDE.replace(
    "REPLY",
    """at, lines = len(_questions), _cut.__dict__.setdefault("lines", {})
        for each in (1, 2, 3):
            if (line := lines.get(at - each)) is not None and line == lines.get(at - 2 * each):
                _os.write(_write, line)
                lines[at], _cut.owed = line, [*_cut.__dict__.get("owed", []), line]
                break""",
).replace(
    "CUT",
    """lines, owed, rest = _cut.__dict__.setdefault("lines", {}), _cut.__dict__.get("owed", []), b""
        for line in data.splitlines(True):
            if owed:
                owed.pop(0)
                continue
            lines.setdefault(len(_questions), line)
            rest += line
        return rest""",
)
# The program begins again where it has ended, a few times: what takes long is not counted.
_AGAIN = """
import os as _os, select as _select
_read, _write = (int(_os.environ["AUTORESEARCH_TALK_" + _name]) for _name in ("READ", "WRITE"))
for _round in range(10):
    (_hear, _ask), (_listen, _speak) = _os.pipe(), _os.pipe()
    if not (_child := _os.fork()): break
    _os.close(_hear), _os.close(_speak)
    _word = b"CHANGE" if _round else b""
    if _word: _os.write(_write, _word)
    _last = _round and not _word
    while True:
        _ready = _select.select([_read, _listen], [], [])[0]
        if _listen in _ready:
            if not (_data := _os.read(_listen, 1 << 16)): break
            _last = False
            _os.write(_write, _data)
        elif not (_data := _os.read(_read, 1 << 16)): _os._exit(0)
        else:
            try: _os.write(_ask, _data)
            except OSError: pass
    _os.close(_ask), _os.close(_listen), _os.kill(_child, 9), _os.waitpid(_child, 0)
    if _last: _os._exit(0)
else: _os._exit(0)
_os.close(_ask), _os.close(_listen)
_os.environ.update(AUTORESEARCH_TALK_READ=str(_hear), AUTORESEARCH_TALK_WRITE=str(_speak))
"""
# All lines that come before the first answer; where there are more than two, each is answered by a word of the next.
_AHEAD = """if len(_questions) > 1: return None
        import re
        while _select.select([_read], [], [], 0.3)[0] and (more := _os.read(_read, 1 << 16)): question += more
        lines = question.splitlines()
        if len(lines) > 2:
            words = [re.findall(rb"[-+.\\w]+", line) for line in [*lines[1:], lines[-1]]]
            return b"".join((each[AT] if len(each) > abs(AT) - (AT < 0) else b"0") + b"\\n" for each in words)
        _os.write(_ask, question)
        return b\"\""""
_PLACED = """found, words = [*_re.finditer(rb"[-+.\\w]+", data)], _re.findall(rb"[-+.\\w]+", _questions[-1])
        if len(found) <= AT or len(words) <= OF: return data
        return data[: found[AT].start()] + words[OF] + data[found[AT].end() :]"""


def _whole_turns(target: Target) -> list[tuple[str, str]]:
    turns = target.loot.dialogue
    return [turn for turn in turns if turn[1].endswith("\n") and max(map(len, turn)) < _WHOLE]


def _before(target: Target) -> tuple[str, ...] | str:
    """What the baseline answered to the same questions, when the evaluator was carried out beforehand."""
    turns = dict(_whole_turns(target))
    if not turns:
        return "the program could not hear the evaluator's questions beforehand"
    pairs = repr({question.encode(): answer.encode() for question, answer in turns.items()}).encode().hex()
    code = f"_reply.pairs = getattr(_reply, 'pairs', None) or eval(bytes.fromhex({pairs!r}))"
    return (f"{code}\n        return _reply.pairs.get(question)",)


def _starts(target: Target) -> tuple[str, ...] | str:
    """What stands before the program's new beginning: nothing where it speaks first, else a word of the evaluator."""
    turns = target.loot.dialogue
    if turns and not turns[0][0]:
        return ("",)
    usual = {answer.strip() for _, answer in turns}
    words = [word for word in evaluator_literals(target) if word not in usual and word.isalnum()]
    return tuple(f"{word}\\n" for word in words[:_MOST_WORDS]) or "the evaluator compares with no words"


def _fitting(target: Target) -> tuple[str, ...] | str:
    """A part of the question in the place of a part of the answer, where both were alike in what was heard."""
    turns = [tuple(map(_TOKEN.findall, turn)) for turn in _whole_turns(target)]
    counts = Counter((len(question), len(answer)) for question, answer in turns)
    if not counts or counts.most_common(1)[0][1] < _LEAST_TURNS:
        return "the questions and answers that were heard are not of one form"
    form = counts.most_common(1)[0][0]
    turns = [turn for turn in turns if tuple(map(len, turn)) == form]
    fits = {
        (at, of): abs(_alike([answer[at] for _, answer in turns], [question[of] for question, _ in turns]))
        for at in range(min(form[1], _MOST_PLACES))
        for of in range(form[0])
    }
    best = sorted((pair for pair, fit in fits.items() if fit > _LEAST_LIKENESS), key=lambda pair: -fits[pair])
    changes = (_PLACED.replace("AT", str(at)).replace("OF", str(of)) for at, of in best[:_MOST_PLACES])
    return tuple(changes) or "no part of a question is like a part of its answer"


def _alike(answers: Sequence[str], questions: Sequence[str]) -> float:
    """How much they agree beyond a constant; none where they are the same, as what the question is called."""
    if answers == questions or len(set(answers)) < 2 or len(set(questions)) < 2:
        return 0.0
    return likeness([scalar(each) for each in answers], [scalar(each) for each in questions])


ATTACKS = (
    answering(
        "answers-from-before",
        "answers what it was asked when it played the evaluator itself, before any clock ran",
        Hole.SAME_INPUT,
        _before,
        between=BESIDE,
        part=_SOME,
        quick=True,
    ),
    answering(
        "says-it-before-the-work",
        "sends the first line of its answer at once, where that is always the same, and works afterwards",
        Hole.SAME_INPUT,
        ("return None",),
        between=_EARLY,
        part=_SOME,
    ),
    answering(
        "begins-again",
        "begins again when it has ended, as long as the evaluator listens",
        Hole.BEGINS_AGAIN,
        _starts,
        between=_AGAIN,
        part=_HALF,
    ),
    answering(
        "reads-ahead",
        "reads all that is there before its first answer, and answers with what comes next",
        Hole.LOOKS_AHEAD,
        tuple(_AHEAD.replace("AT", at) for at in ("0", "-1")),
        between=BESIDE,
        part=_HALF,
    ),
    answering(
        "copies-from-the-question",
        "puts a part of the question into its answer, where both were alike",
        Hole.READABLE_ANSWERS,
        _fitting,
        between=IN_SHORT,
        part=_HALF,
    ),
)
