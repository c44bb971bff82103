"""What is known of a task, as values: all that a prompt or ``history.md`` is written from."""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.proposers import Effect


@dataclass(frozen=True, slots=True)
class Attempt:
    """A program that was run, or one run of it. Texts are their author's words."""

    id: str
    """The short id of its first run."""
    title: str
    hypothesis: str
    value: float | None
    seeds: int
    """With how many seeds it was measured; ``value`` is their mean."""
    parent: str
    """The short id of the run that it changes, or empty."""
    delta: float | None
    """The value minus that of the parent."""
    margin: float | None
    """Half of the 95 % interval of ``delta``, by the noise over seeds."""
    state: str
    status: str
    reason: str = ""
    change: str = ""
    """New lines of a program that was written by hand; empty where the title names what changed."""


@dataclass(frozen=True, slots=True)
class Said:
    """A note: what somebody expects or has learned. ``better`` and ``worse`` count the runs that cite it."""

    id: str
    text: str
    better: int = 0
    worse: int = 0


@dataclass(frozen=True, slots=True)
class Best:
    """The program to build on. ``id`` is empty where it is the baseline that nobody has run yet."""

    id: str
    value: float | None
    seeds: int
    state: str
    source: str | None
    """The text of the program, or None where it is not on this machine."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a log knows of a task at a moment. Lists begin with what matters most."""

    best: Best
    baseline: float | None
    noise: float
    """Standard deviation over seeds, as task and runs show it."""
    runs: int
    since_best: int
    """How many runs ended since the best program was found."""
    frontier: tuple[Attempt, ...] = ()
    recent: tuple[Attempt, ...] = ()
    failures: tuple[Attempt, ...] = ()
    effects: tuple[Effect, ...] = ()
    hypotheses: tuple[Said, ...] = ()
    insights: tuple[Said, ...] = ()
    past: tuple[Said, ...] = ()
    """Results that participants brought in from elsewhere, the best first."""
    claims: tuple[str, ...] = ()
    """The titles of what is being tried now."""
    is_linted: bool = False
    """Whether a program must pass the static guard of the harness that ships."""
