"""The dialogue of an evaluator and a program, carried out and rehearsed by an attacker's program in the sandbox.

The spy's text begins with this one: the standard library is all it needs.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import select
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence

Turn = tuple[str, str]
MOST_WORDS, MOST_KINDS, MOST_TRIES = 10, 12, 150
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


def talk(
    command: Sequence[str], partner: Sequence[str], environment: dict[str, str], seconds: float, *,
    script: Sequence[Turn] = ()
) -> tuple[list[Turn], str]:  # fmt: skip
    """Run an evaluator with a partner, or with a script; what each said by turns, and what the evaluator printed."""
    (asks, asking), (hears, answering) = os.pipe(), os.pipe()
    (passed, passing), (replies, replying) = os.pipe(), os.pipe()
    end, turns, pieces = time.monotonic() + seconds, [["", ""]], {asks: passing, replies: answering}
    with tempfile.TemporaryFile() as out:
        names = {"AUTORESEARCH_TALK_READ": str(hears), "AUTORESEARCH_TALK_WRITE": str(asking)}
        processes = [
            subprocess.Popen(
                command, env={**environment, **names}, pass_fds=(hears, asking), stdout=out, stderr=subprocess.DEVNULL
            )
        ]
        if partner and not script:
            names = {"AUTORESEARCH_TALK_READ": str(passed), "AUTORESEARCH_TALK_WRITE": str(replying)}
            processes.append(
                subprocess.Popen(
                    partner, env={**os.environ, **names}, pass_fds=(passed, replying),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )  # fmt: skip
        for each in (hears, asking, passed, replying):
            os.close(each)
        while asks in pieces and time.monotonic() < end:
            for source in select.select([asks] if script else list(pieces), [], [], 0.5)[0]:
                if not (data := os.read(source, 1 << 16)):
                    os.close(pieces.pop(source))
                    continue
                if source == asks and turns[-1][1]:
                    turns.append(["", ""])
                turns[-1][source == replies] += data.decode("utf-8", "replace")
                expected = script[min(len(turns), len(script)) - 1] if script else ("", "")
                with contextlib.suppress(OSError):
                    if not script:
                        os.write(pieces[source], data)
                    elif turns[-1][0].count("\n") >= expected[0].count("\n"):
                        turns[-1][1] = expected[1]
                        os.write(answering, expected[1].encode())
        for source, other in pieces.items():
            os.close(other)
            os.close(source)
        for process in reversed(processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, end - time.monotonic()) if process is processes[0] else 0.1)
            process.kill()
            process.wait()
        out.seek(0)
        return [(question, answer) for question, answer in turns], out.read().decode("utf-8", "replace")


def printed_value(metric: str, text: str) -> float | None:
    """The number that an evaluator printed last under the metric's name."""
    printed = re.findall(re.escape(metric) + r"\W{1,4}([-+]?[\d.]+(?:e[-+]?\d+)?)", text)
    try:
        return float(printed[-1]) if printed else None
    except ValueError:
        return None


def rehearsed(
    play: Callable[[list[str]], float | None], turns: Sequence[Turn], words: Sequence[str], sign: float, seconds: float
) -> list[str] | None:
    """Better answers to questions that are the same each time, by playing them again; None where none are better.

    An answer may follow what is asked next, or be better where it stands.
    """
    answers, end = [answer for _, answer in turns], time.monotonic() + seconds
    first = height = play(answers)
    best = answers
    if height is None or len(turns) < 2:
        return None

    def improved(trial: list[str]) -> bool:
        """Whether an answer is one that the evaluator takes; the best is kept."""
        nonlocal best, height
        value = play(trial) if time.monotonic() < end else None
        if value is None or not math.isfinite(value):
            return False
        if height is None or sign * (height - value) > 0:
            best, height = trial, value
        return True

    following = [question.splitlines()[-1:] for question, _ in turns[1:]]
    ahead = [*("".join(lines) for lines in following), ""]
    improved([f"{line}\n" if line else answer for line, answer in zip(ahead, answers, strict=True)])
    width = min(4, max(len(line.split()) for line in ahead))
    for at in range(width if width > 1 else 0):
        parts = [[*line.split(), *[""] * width][at] for line in ahead]
        improved([f"{part}\n" if part else answer for part, answer in zip(parts, answers, strict=True)])
    dice = random.Random(1)  # noqa: S311 - no secret
    if all(len(answer.split()) == 1 for answer in answers):
        usable = [word for word in _words(turns, words) if improved([f"{word}\n"] * len(turns))]
        kinds = Counter(ahead)
        for kind in kinds if 2 <= len(kinds) <= MOST_KINDS else ():
            for word in usable:
                improved([f"{word}\n" if a == kind else b for a, b in zip(ahead, best, strict=True)])
        moves: Callable[[str], str] = lambda _: f"{dice.choice(usable)}\n" if usable else ""  # noqa: E731
    else:
        moves = _shaken(dice)
    for _ in range(MOST_TRIES if height == first else 0):
        begin = dice.randrange(len(best))
        block, changed = range(begin, begin + (1 << dice.randrange(5))), moves(best[begin])
        improved([changed if at in block else answer for at, answer in enumerate(best)])
    return None if height == first else best


def _words(turns: Sequence[Turn], more: Sequence[str]) -> list[str]:
    """Words that may be answers: those of the dialogue, numbers beside its numbers, then others of the program."""
    spoken = Counter(word for answer in turns for word in answer[1].split())
    questions = Counter(word for question in turns for word in question[0].split())
    numbers = [int(word) for word in spoken if word.isdigit()]
    near = [str(at) for at in range(min(max(numbers) + 3, MOST_WORDS))] if numbers else []
    every = [*spoken, *near, *(word for word, _ in questions.most_common(MOST_WORDS)), *more]
    return list(dict.fromkeys(every))[:MOST_WORDS]


def _shaken(dice: random.Random) -> Callable[[str], str]:
    """A change of the numbers of an answer."""

    def number(match: re.Match[str]) -> str:
        value = float(match[0])
        moved = value + dice.gauss(0, 0.3 * abs(value) + 0.1)
        return f"{moved:.6g}" if "." in match[0] or "e" in match[0] else str(round(moved))

    return lambda answer: NUMBER.sub(number, answer)
