"""What the log shows of a participant: how often it was right in a row, what it did wrong. Never stored, never sent.

Every peer computes the same from the same records. Only what others decided counts: a confirmed or a refuted run, and
verifications on the side that won or lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.records import Record, Run, format_id
from autoresearch.verification import EVALUATE, REPLICATE, Report, in_time, network_rules
from autoresearch.views.bans import Ban, bans
from autoresearch.views.copies import copies
from autoresearch.views.memory import memory_of, remembered, roster_of
from autoresearch.views.models import MarkView
from autoresearch.views.standing import first_words, judgement, voices_at
from autoresearch.words import Mark, RunState

# A run of which others say that it is what its author says.
UPHELD = frozenset({RunState.PROVISIONAL, RunState.CONFIRMED, RunState.NOT_REPLICATED})
# Of honest pairs hardly any are so many standard deviations of one run from the median of all who ran them.
_APART_NOISES = 4.0


class Marked(NamedTuple):
    """A mark with what earned it: the participant's own record, and the records by which everybody can check it."""

    mark: Mark
    record: bytes
    evidence: tuple[bytes, ...]
    time_ms: int


class TrackRecord(NamedTuple):
    """A participant, by its voice.

    ``consecutive_valid``: how many times in a row it was right, in runs of its own that were confirmed and in
    verifications on the side that won; ``confirmed`` and ``refuted`` runs of its own; verifications that were
    ``upheld`` and ``overruled``. ``banned_until_ms``: its word does not count until then, if it was ever banned.
    """

    voice: bytes
    consecutive_valid: int = 0
    confirmed: int = 0
    refuted: int = 0
    upheld: int = 0
    overruled: int = 0
    marks: tuple[Marked, ...] = ()
    banned_until_ms: int | None = None


class _Event(NamedTuple):
    """Somebody was right or wrong; ``order`` is time and id of its record."""

    order: tuple[int, bytes]
    voice: bytes
    right: bool
    own: bool
    marked: Marked | None = None


def track_record(log: Log, voice: bytes) -> TrackRecord:
    """What the log shows of one voice."""
    return track_records(log).get(voice, TrackRecord(voice))


def track_records(log: Log, *, runs: Iterable[bytes] | None = None) -> dict[bytes, TrackRecord]:
    """What the log shows of all voices of which it shows anything; with ``runs`` at least what these runs show."""
    if runs is not None and "tracks" not in memory_of(log).known:
        return _computed(log, runs)
    return remembered(log, "tracks", lambda: _computed(log, log.verified()))


def mark_view(marked: Marked) -> MarkView:
    """A mark, ready for JSON."""
    return MarkView(
        mark=marked.mark.value,
        record=format_id(marked.record),
        evidence=[format_id(record) for record in marked.evidence],
        time_ms=marked.time_ms,
    )


def _computed(log: Log, runs: Iterable[bytes]) -> dict[bytes, TrackRecord]:
    by_voice: defaultdict[bytes, list[_Event]] = defaultdict(list)
    for run_id in runs:
        run = log.find(run_id)
        if run is not None and run.kind == "run":
            for event in _events(log, run):
                by_voice[event.voice].append(event)
    for copy in copies(log):
        marked = Marked(Mark.COPIER, copy.run, (copy.original,), copy.time_ms)
        by_voice[copy.voice].append(_Event((copy.time_ms, copy.run), copy.voice, right=False, own=True, marked=marked))
    voice_of = roster_of(log).voice
    banned = bans(log)
    for voice, found in banned.items():
        for ban in found:
            if voice_of(ban.device, ban.start_ms).voice != voice:
                continue
            marked = Marked(Mark.FRAUD, ban.record, (ban.record,), ban.start_ms)
            by_voice[voice].append(_Event((ban.start_ms, ban.record), voice, right=False, own=True, marked=marked))
    return {
        voice: _summed(voice, sorted(events, key=lambda event: event.order), banned.get(voice, []))
        for voice, events in by_voice.items()
    }


def _events(log: Log, run: Record) -> Iterator[_Event]:
    """Who was right about a run and who was not, as far as that is decided."""
    state = judgement(log, run.id).state
    if state not in UPHELD and state is not RunState.REFUTED:
        return
    author = roster_of(log).voice(run.author, run.time).voice
    reports = first_words(log, run)
    if state is RunState.REFUTED:
        against = tuple(record.id for record, report in reports if report.stage == EVALUATE and not report.passed)
        marked = Marked(Mark.FABRICATOR, run.id, against, run.time)
        yield _Event((run.time, run.id), author, right=False, own=True, marked=marked)
    elif state is RunState.CONFIRMED:
        yield _Event((run.time, run.id), author, right=True, own=True)
    timely = in_time(
        [report for _, report in reports], min(network_rules(log.network).quorum, max(voices_at(log, run) - 1, 1))
    )
    assert isinstance(run.body, Run)
    rules = log.rules(run.body.task)
    apart = _apart([report for _, report in reports if report.stage == REPLICATE], rules.noise if rules else 0.0)
    for record, report in reports:
        if report.stage == REPLICATE and (state is RunState.REFUTED or report.voice in apart):
            continue  # whoever ran the program beside its parent said nothing of the author's number
        # Who repeats what others had said was not right by its own doing; who was wrong was wrong.
        if report in timely or report.passed != (state in UPHELD):
            yield _verifier(run, record, report, state)


def _apart(pairs: Sequence[Report], noise: float) -> set[bytes]:
    """The voices that found another improvement than most. Not wrong, for machines differ, nor right."""
    means = {report.voice: fmean(report.improvements) for report in pairs}
    middle = median(means.values()) if means else 0.0
    return {voice for voice, mean in means.items() if abs(mean - middle) > _APART_NOISES * noise > 0}


def _verifier(run: Record, record: Record, report: Report, state: RunState) -> _Event:
    right = report.passed == (state in UPHELD)
    marked = None
    if report.stage == EVALUATE and report.passed and state is RunState.REFUTED:
        marked = Marked(Mark.RUBBER_STAMP, record.id, (run.id,), record.time)
    return _Event(report.order, report.voice, right=right, own=False, marked=marked)


def _summed(voice: bytes, events: list[_Event], banned: Sequence[Ban]) -> TrackRecord:
    """One voice's events, in their order, as its record."""
    streak = 0
    for event in events:
        streak = streak + 1 if event.right else 0
    marks = tuple(event.marked for event in events if event.marked)
    return TrackRecord(
        voice,
        consecutive_valid=streak,
        confirmed=sum(event.own and event.right for event in events),
        refuted=sum(marked.mark is Mark.FABRICATOR for marked in marks),
        upheld=sum(not event.own and event.right for event in events),
        overruled=sum(not event.own and not event.right for event in events),
        marks=marks,
        banned_until_ms=max((ban.end_ms for ban in banned), default=None),
    )
