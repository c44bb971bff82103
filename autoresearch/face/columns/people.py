"""The lists of participants: what they have done, what stands against them, what they write and claim, peers. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from autoresearch.ask.discussion import AttackView, NoteView, OpenClaim
from autoresearch.ask.node import CandidateView, PeerView
from autoresearch.ask.people.participants import AttestorAct, EvidenceStep, EvidenceView
from autoresearch.ask.records import HiddenView
from autoresearch.face.columns.column import (
    CODE,
    COMPUTE_S,
    COUNT,
    FIGURES,
    MARKS,
    METER,
    PERSON,
    RECORD,
    RECORDS,
    SIZE,
    TIME,
    TIME_MS,
    WORDS,
    Column,
    Columns,
    Face,
    mark_words,
    person,
    persons,
    short,
)
from autoresearch.log.standing.answers import CreditAnswer, CreditView, MarkView
from autoresearch.text import age, counted, duration, figure, lately, moment, signed
from autoresearch.words import EVIDENCE_SENTENCES, MARK_SENTENCES

# Enough of a peer id to tell two apart, and to block by.
PEER_CHARACTERS = 12
# Clocks that differ by less than this hurt nobody.
SKEW_MS = 60_000
KEY_CHARACTERS = 8
TAG_CHARACTERS = 16
DAY_CHARACTERS = 10
# Digests and seeds are told apart by fewer; a program gets all.
WORD_CHARACTERS = 24


def improvement(participant: CreditView, task: str) -> float:
    """The confirmed improvement of a participant on a task, in the metric's unit."""
    return sum(gain.total for gain in participant.improvements if gain.task == task)


def verifications(participant: CreditView) -> int:
    """How many verifications of a participant count."""
    return participant.passes.count + participant.fails.count + participant.replications.count


def improvements(participant: CreditView, answer: CreditAnswer) -> str:
    """How much better its confirmed runs made each metric, by what verifiers measured."""
    names = {task.digest: task.metric for task in answer.tasks}
    return ", ".join(f"{names.get(gain.task, gain.task[:8])} {signed(gain.total)}" for gain in participant.improvements)


def credit_columns(
    answer: CreditAnswer, *, task: str | None = None, counts: Mapping[str, str] | None = None
) -> Columns[CreditView]:
    """What participants have done. ``task`` is the one whose improvements alone are shown; None: those on all tasks.

    ``counts`` says by root key why the verifications of a participant count.
    """

    def improved(row: CreditView, _: int) -> str:
        if task is None:
            one_task = len(answer.tasks) <= 1
            return ", ".join(signed(gain.total) for gain in row.improvements) if one_task else improvements(row, answer)
        if improvement(row, task):
            return signed(improvement(row, task))
        return f"on {counted(len(row.improvements), 'other task')}" if row.improvements else ""

    def why(row: CreditView, _: int) -> str:
        if not answer.trust:
            return ""
        reasons = [counts[key] for key in row.keys if counts and key in counts]
        return reasons[0] if reasons else "attested" if row.attested else "no"

    most = max((improvement(row, task) for row in answer.participants), default=0.0) if task else 0.0
    programs, pages = Face.PIPE, Face.PAGE
    return (
        Column(
            "participant", lambda row: row.participant, display=lambda row, _: persons(row.known_as) or row.participant
        ),
        Column("attested", lambda row: "attested" if row.attested else "not attested", faces=programs),
        Column("counts", lambda row: row.attested, display=why, faces=pages if counts is not None else Face.NOWHERE),
        Column(
            "share",
            lambda row: improvement(row, task) / most if task and most > 0 else None,
            METER,
            heading="of the largest sum of gains",
            faces=pages if counts is None else Face.NOWHERE,
            late=1,
            optional=5,
        ),
        Column("runs", lambda row: row.runs, COUNT, faces=programs),
        Column("finished", lambda row: row.finished, COUNT, faces=programs),
        Column(
            "confirmed",
            lambda row: row.confirmed.count,
            FIGURES,
            display=lambda row, _: f"{row.confirmed.count} of {row.runs}",
            late=2,
            help="of its runs",
        ),
        Column("provisional", lambda row: row.provisional.count, COUNT, faces=programs),
        Column("not replicated", lambda row: row.not_replicated.count, COUNT, faces=programs),
        Column(
            "refuted",
            lambda row: row.refuted.count,
            COUNT,
            late=2,
            optional=3,
            help="its runs whose value verifiers refuted",
        ),
        Column(
            "compute",
            lambda row: row.cpu_ms,
            COMPUTE_S,
            heading="verified compute",
            late=3,
            optional=4,
            help="of runs that verifiers measured",
        ),
        Column("work", lambda row: figure(row.work), faces=programs),
        Column("passes", lambda row: row.passes.count, COUNT, faces=programs),
        Column("fails", lambda row: row.fails.count, COUNT, faces=programs),
        Column("replications", lambda row: row.replications.count, COUNT, faces=programs),
        Column("verifications", verifications, COUNT, faces=Face.PEOPLE, late=2),
        Column(
            "refutations",
            lambda row: row.refutations.count,
            COUNT,
            late=2,
            optional=2,
            help="its verifications that found another value of a run that was refuted",
        ),
        Column("verifying", lambda row: row.verifying_ms, COMPUTE_S, late=3, optional=1, help="time"),
        Column("in a row", lambda row: row.consecutive_valid, COUNT, faces=programs),
        Column(
            "sum of gains",
            lambda row: improvements(row, answer),
            FIGURES,
            display=improved,
            help="of its confirmed runs, each on its parent",
        ),
        Column("marks", lambda row: row.marks, MARKS, late=4),
        Column("keys", lambda row: ",".join(row.keys), faces=programs),
        Column("names", lambda row: ", ".join(who.name for who in row.known_as if who.name), faces=programs),
    )


MARK_COLUMNS: Columns[MarkView] = (
    Column("mark", lambda mark: [mark], MARKS),
    Column("meaning", lambda mark: MARK_SENTENCES.get(mark.mark, "")),  # type: ignore[call-overload]
    Column("record", lambda mark: mark.record, RECORD),
    Column("evidence", lambda mark: mark.evidence, RECORDS),
    Column("when", lambda mark: mark.time_ms, TIME),
)


def consequence(evidence: EvidenceView, now_ms: int) -> str:
    """What follows from the evidence, in a few words."""
    if evidence.until_ms is None:
        return evidence.reason.partition(": ")[2]
    until = moment(evidence.until_ms)[:DAY_CHARACTERS]
    return f"{'was ' if evidence.until_ms <= now_ms else ''}{evidence.follows} until {until}"


EVIDENCE_COLUMNS: Columns[EvidenceView] = (
    Column("kind", lambda row: row.kind),
    Column("id", lambda row: row.id, RECORD),
    Column("author", lambda row: row.participant, PERSON, varies=True, late=1),
    Column("device", lambda row: row.device, display=lambda row, _: row.device[:KEY_CHARACTERS], optional=1),
    Column("when", lambda row: row.time_ms, TIME, optional=2),
    Column("proves", lambda row: EVIDENCE_SENTENCES.get(row.kind, ""), faces=Face.PAGE, late=1),  # type: ignore[call-overload]
    Column("consequence", lambda row: row.follows, display=consequence, late=2),
    Column("until", lambda row: "" if row.until_ms is None else moment(row.until_ms), faces=Face.PIPE),
    Column("records", lambda row: row.records, RECORDS, faces=Face.PIPE | Face.PAGE, late=1),
    Column("name", lambda row: row.participant.name, faces=Face.PIPE),
)


def _shortened_words(text: str) -> str:
    return " ".join(
        word if len(word) <= WORD_CHARACTERS else f"{short(word)[:WORD_CHARACTERS]}…" for word in text.split()
    )


def step_columns(kind: str) -> Columns[EvidenceStep]:
    """The steps by which evidence of a kind is checked: what the record states, and what is found on this machine."""
    signs, words = {True: "✓", False: "✗", None: ""}, {True: "agrees", False: "differs", None: ""}
    return (
        Column("agrees", lambda step: words[step.agrees], display=lambda step, _: signs[step.agrees], heading=""),
        Column("what", lambda step: step.what, heading=kind),
        Column(
            "stated",
            lambda step: step.stated,
            display=lambda step, _: _shortened_words(step.stated),
            heading="the record",
        ),
        Column(
            "found", lambda step: step.actual, display=lambda step, _: _shortened_words(step.actual), heading="here"
        ),
    )


ACT_COLUMNS: Columns[AttestorAct] = (
    Column("when", lambda act: act.time_ms, TIME),
    Column("what", lambda act: act.what),
    Column("participant", lambda act: act.participant, display=lambda act, _: act.participant[:TAG_CHARACTERS]),
    Column("mailbox tag", lambda act: act.tag, display=lambda act, _: act.tag[:TAG_CHARACTERS]),
    Column("reason", lambda act: act.reason),
)


def _since(candidate: CandidateView, now_ms: int) -> str:
    parts = [f"joined with an invite {age(candidate.joined_ms, now_ms)}"] if candidate.joined_ms else []
    parts += [f"dismissed {age(candidate.dismissed_ms, now_ms)}"] if candidate.dismissed_ms else []
    return ", ".join((["you"] if candidate.me else []) + parts) or "does not count"


CANDIDATE_COLUMNS: Columns[CandidateView] = (
    Column("participant", lambda row: row.participant, PERSON),
    Column("name", lambda row: row.participant.name, faces=Face.PIPE),
    Column("joined", lambda row: moment(row.joined_ms) if row.joined_ms else "", faces=Face.PIPE),
    Column("dismissed", lambda row: moment(row.dismissed_ms) if row.dismissed_ms else "", faces=Face.PIPE),
    Column("since", lambda _: "", display=_since, faces=Face.PEOPLE),
)


def cited(note: NoteView) -> str:
    """What became of the runs that cite a note; empty where none does."""
    return f"{note.better} better, {note.worse} not" if note.better or note.worse else ""


NOTE_COLUMNS: Columns[NoteView] = (
    Column("id", lambda note: note.id, RECORD),
    Column("topic", lambda note: note.topic),
    Column("when", lambda note: note.time_ms, TIME),
    Column("device", lambda note: note.author, faces=Face.PIPE),
    Column("evidence", lambda note: note.evidence, RECORDS),
    Column("text", lambda note: note.text, WORDS, late=1),
    Column("status", lambda note: note.status, faces=Face.PIPE),
    Column("by", lambda note: note.participant, PERSON, optional=1),
    Column("name", lambda note: note.participant.name, faces=Face.PIPE),
    Column("better", lambda note: note.better, faces=Face.PIPE),
    Column("worse", lambda note: note.worse, faces=Face.PIPE),
    Column("cited", cited, faces=Face.PEOPLE, optional=2),
)


REPORT_COLUMNS: Columns[AttackView] = (
    Column("id", lambda report: report.id, RECORD),
    Column("when", lambda report: report.time_ms, TIME),
    Column("tried", lambda report: report.tried, COUNT),
    Column("held", lambda report: report.held, COUNT),
    Column("kind", lambda report: "quick" if report.quick else "whole"),
    Column("by", lambda report: report.participant, PERSON),
    Column("name", lambda report: report.participant.name, faces=Face.PIPE),
    Column("counts", lambda report: "attested" if report.attested else "unattested"),
    Column("got through", lambda report: ", ".join(report.holes), WORDS, late=1),
)


def unhiding(hidden: HiddenView) -> str:
    """The command that hides a thing no longer."""
    if hidden.what == "words":
        return f"autoresearch network hide --words {shlex.quote(hidden.thing)} --undo"
    by_key = hidden.what in ("participant", "task", "unknown")
    return f"autoresearch network hide {hidden.thing[:16] if by_key else short(hidden.thing)} --undo"


def from_whom(hidden: HiddenView) -> str:
    """The participant whose list a thing was taken from; empty where a person chose it."""
    return person(hidden.origin) if hidden.origin else ""


def hidden_words(hidden: HiddenView) -> str:
    """Why a record is hidden on this machine."""
    named = {"words": f"the words “{hidden.thing}”", "participant": "its participant"}
    what = named.get(hidden.what, "it")
    origin = f", by the list of {from_whom(hidden)}" if hidden.origin else ""
    why = f" ({hidden.reason})" if hidden.reason and not hidden.origin else ""
    return f"hidden by you: you hide {what}{origin}{why}"


HIDDEN_COLUMNS: Columns[HiddenView] = (
    Column("what", lambda row: row.what),
    Column("thing", lambda row: row.thing, WORDS, display=lambda row, _: row.name or row.thing, late=1),
    Column("records", lambda row: row.records, COUNT, help="that are here and hidden by it"),
    Column("when", lambda row: row.time_ms, TIME, optional=1),
    Column("from", from_whom, optional=2),
    Column("reason", lambda row: row.reason, WORDS, optional=3),
)

CLAIM_COLUMNS: Columns[OpenClaim] = (
    Column("id", lambda row: row.id, RECORD),
    Column(
        "title", lambda row: row.title, WORDS, display=lambda row, _: row.title or "a change without a title", late=1
    ),
    Column(
        "until", lambda row: row.until_ms, TIME, display=lambda row, now_ms: f"{duration(row.until_ms - now_ms)} left"
    ),
    Column("device", lambda row: row.author, faces=Face.PIPE),
    Column("seed", lambda row: row.replicate, faces=Face.PIPE),
    Column("program", lambda row: row.source_digest, faces=Face.PIPE),
    Column(
        "by",
        lambda row: row.participant,
        PERSON,
        display=lambda row, _: "this node" if row.is_own else person(row.participant),
    ),
    Column("when", lambda row: row.time_ms, TIME, faces=Face.PEOPLE, optional=1),
)


def peer_state(peer: PeerView) -> str:
    """How it stands: blocked, shut out, relayed or connected (and who dialled), or offline."""
    if peer.blocked:
        return "blocked"
    if peer.shut_out:
        return "shut out"
    if not peer.connected:
        return "offline"
    return "relayed" if "/p2p-circuit" in peer.address else "called us" if peer.inbound else "direct"


def _banned(peer: PeerView, now_ms: int) -> str:
    until_ms = peer.banned_until_ms
    return f"banned until {moment(until_ms)}" if until_ms is not None and until_ms > now_ms else ""


def _same_records(peer: PeerView, now_ms: int) -> str:
    if not peer.exchanged_ms:
        return ""
    moved = [f"{sign}{count}" for sign, count in (("+", peer.records_in), ("−", peer.records_out)) if count]
    return " ".join([lately(peer.exchanged_ms, now_ms), *([f"({' '.join(moved)})"] if moved else [])])


def remarks(peer: PeerView, now_ms: int) -> str:
    """What a person should know of a peer, what is wrong first."""
    parts = [peer.shut_out] if peer.shut_out else []
    wrong = ", ".join(filter(None, (mark_words(peer.marks), _banned(peer, now_ms))))
    if wrong:
        parts.append(f"{wrong} → autoresearch network credit {peer.participant.short}")
    if peer.other_network:
        parts.append("is in another network")
    if abs(peer.clock_ahead_ms) > SKEW_MS:
        parts.append(
            f"its clock is {duration(abs(peer.clock_ahead_ms))} {'ahead' if peer.clock_ahead_ms > 0 else 'behind'}"
        )
    if peer.agent:
        parts.append(peer.agent)
    if peer.devices:
        parts.append(f"{counted(len(peer.devices), 'device')}: {', '.join(peer.devices)}")
    return "; ".join(parts)


def peer_columns(now_ms: int) -> Columns[PeerView]:
    """The peers of a node. A ban is one only until its end, so the time is needed for programs, too."""
    programs = Face.PIPE
    return (
        Column("state", peer_state),
        Column("peer", lambda peer: peer.peer, CODE, display=lambda peer, _: f"…{peer.peer[-PEER_CHARACTERS:]}"),
        Column("address", lambda peer: peer.address, late=2),
        Column("agent", lambda peer: peer.agent, faces=programs),
        Column("received", lambda peer: peer.bytes_in, SIZE, heading="received today"),
        Column("sent", lambda peer: peer.bytes_out, SIZE, heading="sent today"),
        Column("records in", lambda peer: peer.records_in, faces=programs),
        Column("records out", lambda peer: peer.records_out, faces=programs),
        Column("same records", lambda peer: peer.exchanged_ms, display=_same_records),
        Column(
            "seen",
            lambda peer: peer.seen_ms,
            TIME_MS,
            display=lambda peer, now: (
                "now" if peer.connected else lately(peer.seen_ms, now) if peer.seen_ms else "never"
            ),
        ),
        Column("participant", lambda peer: peer.participant, PERSON),
        Column("name", lambda peer: peer.participant.name, faces=programs),
        Column("marks", lambda peer: peer.marks, MARKS, faces=programs),
        Column("banned", lambda peer: _banned(peer, now_ms), faces=programs),
        Column("remarks", lambda _: "", display=remarks, faces=Face.PEOPLE, late=3),
    )
