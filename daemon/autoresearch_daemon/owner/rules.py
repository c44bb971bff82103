"""Whether this machine is the node's to use now. What the machine shows goes in, refusals come out. Pure.

What nothing tells is never taken for the answer that suits the node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autoresearch.hours import parse_hours
from autoresearch.settings import NetworkSection, Work
from autoresearch.text import clock, duration, size
from autoresearch.words import Why

# An answer about use that is older than this is none.
KNOWN_MS = 60_000
# Runs go on when it is so much cooler than where they were stopped, or memory has been free for so long.
COOLER = 10
FREE_MS = 300_000
# Percent of the last ten seconds in which some program waited for memory.
PRESSURE = 20.0


@dataclass(frozen=True, slots=True)
class Use:
    """When somebody used this machine last, and what showed it: "a session on seat0", "terminal pts/3"."""

    last_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class Heat:
    """The hottest sensor."""

    sensor: str
    celsius: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What the machine shows at a moment; None is what nothing tells.

    ``answered_ms`` is when all sources of use answered last, None: never. ``unanswered`` says which source did not.
    ``pressure`` is the share of time that programs waited for memory, in percent. ``others`` are programs of others on
    the cards.
    """

    now_ms: int
    on_mains: bool | None = None
    use: Use | None = None
    answered_ms: int | None = None
    unanswered: str = ""
    free_bytes: int | None = None
    pressure: float | None = None
    heat: Heat | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkRefusal:
    """Why nothing is begun, and when it goes on, in one sentence. ``stops``: runs in hand are stopped too.

    It stands at least until ``until_ms``.
    """

    sentence: str
    stops: bool = True
    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class NetworkRest:
    """Why the network rests, and why programs and checkpoints don't move over it; empty where nothing keeps them."""

    offline: str = ""
    blobs: str = ""


def network_rest(network: NetworkSection, now_ms: int, *, metered: bool | None) -> NetworkRest:
    """What the settings leave of the network now; ``metered`` is whether the link is paid by volume, None: unknown."""
    hours, offline, blobs = parse_hours(network.hours), "", ""
    if not hours.has(now_ms):
        begins = clock(hours.change_ms(now_ms) or now_ms)
        offline = f"outside the hours of network.hours ({network.hours}); the network goes on at {begins}"
    if metered and not network.blobs_on_metered:
        blobs = "this link is metered: records move, programs and checkpoints don't (network.blobs_on_metered)"
    return NetworkRest(offline, blobs)


def refusals(work: Work, reading: Reading, before: Mapping[Why, WorkRefusal]) -> dict[Why, WorkRefusal]:
    """What keeps the node from its work now; ``before`` is what did at the last look."""
    return dict(_refusals(work, reading, before))


def unheld(work: Work, reading: Reading) -> list[str]:
    """The limits that hold nothing because nothing tells what they are about; what follows an arrow is the remedy."""
    problems = []
    if work.max_temperature and reading.heat is None:
        text = "no sensor of a processor or a card answers, so work.max_temperature stops nothing"
        problems.append(f"{text} → autoresearch node config set work.max_temperature 0")
    if work.only_idle and work.idle_unknown == "work" and not _is_known(reading):
        text = f"whether somebody uses this machine is unknown: {reading.unanswered}; runs go on (work.idle_unknown)"
        problems.append(f"{text} → autoresearch node config set work.idle_unknown wait")
    return problems


def _refusals(work: Work, reading: Reading, before: Mapping[Why, WorkRefusal]) -> Iterator[tuple[Why, WorkRefusal]]:
    if work.hours and (refusal := _hours(work, reading.now_ms)):
        yield Why.OUTSIDE_HOURS, refusal
    if work.only_on_mains and not reading.on_mains:
        fact = "this machine runs on battery" if reading.on_mains is False else "nothing tells whether it is on mains"
        yield Why.ON_BATTERY, WorkRefusal(f"{fact} (work.only_on_mains); runs go on when it is plugged in")
    if work.only_idle and (refusal := _use(work, reading)):
        yield Why.IN_USE, refusal
    if work.pause_memory_mib and (refusal := _memory(work, reading, before.get(Why.MEMORY_LOW))):
        yield Why.MEMORY_LOW, refusal
    if work.max_temperature and (refusal := _heat(work, reading, before.get(Why.TOO_HOT))):
        yield Why.TOO_HOT, refusal
    if work.only_free_card and reading.others:
        fact = f"another program computes on a card: {', '.join(reading.others[:3])}"
        yield Why.CARD_IN_USE, WorkRefusal(f"{fact} (work.only_free_card); runs go on when it ends")


def _hours(work: Work, now_ms: int) -> WorkRefusal | None:
    hours = parse_hours(work.hours)
    if hours.has(now_ms):
        return None
    begin_ms = hours.change_ms(now_ms)
    stops = work.hours_end == "stop"
    rest = "" if stops else "a run in hand is finished, "
    sentence = f"outside the hours of work.hours ({work.hours}); {rest}runs go on at {clock(begin_ms or now_ms)}"
    return WorkRefusal(sentence, stops)


def _use(work: Work, reading: Reading) -> WorkRefusal | None:
    use, wanted_ms = reading.use, work.only_idle * 60_000
    if use and reading.now_ms - use.last_ms < wanted_ms:
        when = "now" if reading.now_ms - use.last_ms < 1000 else f"at {clock(use.last_ms, seconds=True)}"
        until = f"runs go on after {duration(wanted_ms)} without use, at {clock(use.last_ms + wanted_ms)} or later"
        return WorkRefusal(f"this machine was used {when} by {use.source} (work.only_idle); {until}")
    if _is_known(reading) or work.idle_unknown == "work":
        return None
    fact = f"whether somebody uses this machine is unknown: {reading.unanswered or 'nothing has told it yet'}"
    return WorkRefusal(
        f"{fact} (work.only_idle); to work all the same: autoresearch node config set work.idle_unknown work"
    )


def _is_known(reading: Reading) -> bool:
    """Whether all sources of use have answered lately."""
    return reading.answered_ms is not None and reading.now_ms - reading.answered_ms <= KNOWN_MS


def _memory(work: Work, reading: Reading, before: WorkRefusal | None) -> WorkRefusal | None:
    bound, free = work.pause_memory_mib << 20, reading.free_bytes
    until = f"(work.pause_memory_mib); runs go on when memory has been free for {duration(FREE_MS)}"
    if free is not None and free < bound:
        fact = f"{size(free)} of memory are free, less than {size(bound)}"
    elif reading.pressure is not None and reading.pressure >= PRESSURE:
        fact = f"programs waited for memory {reading.pressure:.0f} % of the last ten seconds"
    else:
        return before if before and reading.now_ms < before.until_ms else None
    return WorkRefusal(f"{fact} {until}", until_ms=reading.now_ms + FREE_MS)


def _heat(work: Work, reading: Reading, before: WorkRefusal | None) -> WorkRefusal | None:
    if reading.heat is None:
        return before
    most, again = work.max_temperature, work.max_temperature - COOLER
    if reading.heat.celsius < (again if before else most):
        return None
    fact = f"the sensor {reading.heat.sensor} shows {reading.heat.celsius:.0f} °C"
    return WorkRefusal(f"{fact} (work.max_temperature is {most}); runs go on below {again} °C")
