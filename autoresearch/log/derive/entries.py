"""Entries: programs as single devices ran them, and which device published each first. Boards are these rows.

No committee verifies the repetitions of others, so a program is ranked by the runs of one device. After an unmerged
fork of a device's log its runs count once others verified them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache

from autoresearch.judging.statistics import CountedRun, TaskRules, pool, rank
from autoresearch.log.derive.step import Items, Step, done
from autoresearch.log.rows import Entry, EntryKey, EntryPlace, EntryRow, Program, RunFacts
from autoresearch.log.standing.precedence import order_of
from autoresearch.log.tables.runs import ATTESTED, COUNTED, DOUBTED, KINDS, OTHERS, RIVALS, UNVOUCHED, WITH_DOUBTED
from autoresearch.log.tables.standings import JudgedRun
from autoresearch.log.tables.tables import Tables
from autoresearch.words import UPHELD, RunState


def derive(log: Tables, devices: Sequence[EntryKey], _: float) -> Items:
    """Compute anew the entries of programs by devices, and which of each program is the first."""
    some = dict.fromkeys(devices)
    log.entries.replace(some, [entry for device in some for entry in _entries(log, device)])
    for program in dict.fromkeys(device[:3] for device in some):
        log.entries.set_places(program, _places(log, program))
    done(log.reader.connection, "entries", [device.key for device in some])
    return {}


def add_new(log: Tables, runs: Iterable[RunFacts], judged: Iterable[JudgedRun]) -> list[EntryKey]:
    """Write the entries of new runs that nobody verified where each is all of its program; returns the others."""
    rules = cache(log.tasks.rules)
    entries: dict[Program, Entry] = {}
    others: list[EntryKey] = []
    for run, row in zip(runs, judged, strict=True):
        if not run.valued:
            continue
        program = (run.task, run.seedless, run.budget)
        is_plain = not (run.forked or run.copied)
        if program in entries or not is_plain or not log.entries.is_new(program):
            others.append(EntryKey(*program, run.author))
            continue
        vouch, ruling = (ATTESTED if row.attested else OTHERS), rules(run.task)
        entries[program] = Entry(
            *program,
            run.author,
            vouch,
            run.device if ruling and ruling.clocked else "",
            run.n,
            run.time,
            run.id,
            1,
            run.value,
            _rank(run.value, 1, ruling, run.budget),
            copy=False,
            place=COUNTED + WITH_DOUBTED if row.attested else UNVOUCHED,
        )
    log.entries.add(entries.values())
    return others


def _entries(log: Tables, device: EntryKey) -> Iterator[Entry]:
    rules, runs = log.tasks.rules(device.task), log.entries.runs_of(device)
    counted = [run for run in runs if not run.forked or RunState(run.state) in UPHELD]
    attested = [run for run in runs if run.attested]
    words = {
        OTHERS: [run for run in counted if not run.attested],
        ATTESTED: [run for run in counted if run.attested],
        DOUBTED: attested if any(run not in counted for run in attested) else [],
    }
    for vouch, some in words.items():
        by_hardware = defaultdict[str, list[RunFacts]](list)
        for run in some:
            by_hardware[run.device if rules and rules.clocked else ""].append(run)
        for hardware, same in by_hardware.items():
            pooled = pool(map(_counted, same), clocked=False)
            assert pooled is not None, "at least one run"
            first = min(same, key=lambda run: (run.time, run.id))
            entry = Entry(
                *device,
                vouch,
                hardware,
                first.n,
                first.time,
                first.id,
                pooled.runs,
                pooled.mean,
                _rank(pooled.mean, pooled.runs, rules, device.budget),
                copy=first.copied,
                place=0,
            )
            yield entry
            if vouch == ATTESTED and rules and entry.rank is not None and not entry.copy:
                yield from _measured(entry, same, rules)


def _measured(entry: Entry, runs: Sequence[RunFacts], rules: TaskRules) -> Iterator[Entry]:
    """The same by the first run that one attested participant measured, and by the first that two did."""
    for least, kinds in enumerate(KINDS, start=1):
        some = [run for run in runs if run.checkers >= least and not run.copied]
        if not some:
            continue
        first = min(some, key=lambda run: (run.time, run.id))
        state, ranked = RunState(first.state), entry.rank
        if least > 1 and state is RunState.CONFIRMED:
            ranked = rules.sign * (entry.mean if first.verified is None else first.verified)
        yield entry._replace(vouch=kinds[state], n=first.n, time=first.time, first=first.id, rank=ranked)


def _counted(run: RunFacts) -> CountedRun:
    return CountedRun(run.time, run.id, run.value, run.author, run.replicate, run.device, run.source_digest)


def _rank(mean: float, runs: int, rules: TaskRules | None, budget: float) -> float | None:
    return rank(mean, runs, rules) if rules and rules.ranks(budget) else None


def _places(log: Tables, program: Program) -> Iterator[EntryPlace]:
    """The entries of a program whose places have changed."""
    rows, places = log.entries.rivals(program), defaultdict[EntryRow, int](int)
    counted, doubted, others = ([row for row in rows if row.vouch == vouch] for vouch in (ATTESTED, DOUBTED, OTHERS))
    # Where a device has runs after a fork, that entry has its other runs too.
    with_doubted = [*doubted, *(row for row in counted if row.author not in {doubt.author for doubt in doubted})]
    groups = [(counted, COUNTED), (with_doubted, WITH_DOUBTED), ([] if counted else others, UNVOUCHED)]
    for kinds in KINDS:
        by_hardware = defaultdict[str, list[EntryRow]](list)
        for row in rows:
            if row.vouch in kinds.values():
                by_hardware[row.hardware].append(row)
        groups += [(same, 0) for same in by_hardware.values()]
    some = [(_oldest(group), what) for group, what in groups if group]
    order = order_of(log, (row for rivals, _ in some if len(rivals) > 1 for row in rivals))
    for rivals, what in some:
        first = order.first(rivals)
        places[first] += what or 1 << first.vouch
    return (EntryPlace(*row[:3], places[row]) for row in rows if places[row] != row.place)


def _oldest(rows: Sequence[EntryRow]) -> Collection[EntryRow]:
    """The entries with the earliest runs, of each device one."""
    by_device: dict[bytes, EntryRow] = {}
    for row in sorted(rows, key=lambda row: (row.time, row.id))[:RIVALS]:
        by_device.setdefault(row.author, row)
    return by_device.values()


ENTRIES = Step(
    "entries",
    reads="record run standing suspect copy rules mention lineage commitment dated_back",
    writes="entry",
    derive=derive,
    item=EntryKey.of_key,
)
