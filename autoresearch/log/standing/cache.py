"""Questions about one state of a log, and results that are kept until it changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from autoresearch.log.tables.records import ABOUT_PEOPLE
from autoresearch.log.tables.tables import Tables
from autoresearch.trust.roster import Roster

T = TypeVar("T")
LogT = TypeVar("LogT", bound=Tables)
P = ParamSpec("P")


def in_snapshot(question: Callable[Concatenate[LogT, P], T]) -> Callable[Concatenate[LogT, P], T]:
    """A question about a log, its first argument: all that it reads is of one revision."""

    @wraps(question)
    def ask(log: LogT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with log.reader.snapshot():
            return question(log, *args, **kwargs)

    return ask


def cached(log: Tables, name: Hashable, compute: Callable[[], T], *, lasting: bool = False) -> T:
    """A result by name, computed in a snapshot once for a revision and a trust list.

    A ``lasting`` one follows from who is who and from tasks alone: it is kept until one of these changes.
    """
    with log.reader.snapshot() as revision:
        results = log.results.at(revision, log.trust, lasting=lasting, hides=log.reader.hides)
        if name not in results:
            results[name] = compute()
        return cast("T", results[name])


# So many answers to a question are kept: a visitor may ask it in any number of ways.
ANSWERS_KEPT = 8


def cached_answer(log: Tables, question: str, request: Hashable, compute: Callable[[], T]) -> T:
    """The answer to a request, computed in a snapshot; the last few to a question are kept until the log changes."""
    with log.reader.snapshot():
        answers = cached(log, ("answers", question), dict[Hashable, T])
        if request not in answers:
            while len(answers) >= ANSWERS_KEPT:
                answers.pop(next(iter(answers)))
            answers[request] = compute()
        return answers[request]


def roster_of(log: Tables) -> Roster:
    """The roster of a log: the participant behind each device, under the network's trust."""
    return cached(log, "roster", lambda: _roster(log), lasting=True)


def _roster(log: Tables) -> Roster:
    return Roster(log.records.of_kinds(ABOUT_PEOPLE), log.trust, domain_voices=log.network.domain_voices)
