"""What participants found when they attacked a task, counted by participant.

A report is a note that names a file. Its counts stand in the note's numbers, so that nothing has to be fetched for a
sentence; who reads the file (``acts/attack_reports.py``) sees whether both say the same.
"""

from __future__ import annotations

from autoresearch.ask.discussion import AttacksAnswer, AttackView
from autoresearch.ask.lookup import FoundTask
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached
from autoresearch.log.standing.context import participant_of, trust_context, trusted_authors, whose
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.run.attack.target import ATTACKS_VERSION, HOLE_SENTENCES
from autoresearch.text import counted

# The newest reports of so many devices are read, and of so many strange ones; a report counts at most so many attacks.
_REPORTS_MOST, _STRANGERS_MOST, _ATTACKS_MOST = 500, 50, 10_000
_SENTENCES: dict[str, str] = {hole.value: sentence for hole, sentence in HOLE_SENTENCES.items()}


def counts_of(body: Note) -> dict[str, int] | None:
    """The numbers of a report's record: ``attacks``, ``quick``, ``tried``, ``held``, and one for each hole.

    None where they can't be those of a report, as 500 held of 5.
    """
    counts = {name: number for name, number in body.metrics.items() if isinstance(number, int) and number >= 0}
    if (
        body.attack is None
        or len(counts) < len(body.metrics)
        or not {"attacks", "quick", "tried", "held"} <= set(counts)
    ):
        return None
    through = sum(number for name, number in counts.items() if name not in ("attacks", "quick", "tried", "held"))
    is_sound = 0 < counts["tried"] <= _ATTACKS_MOST and counts["held"] + through == counts["tried"]
    return counts if is_sound and counts["quick"] <= 1 else None


def attacks_answer(log: Log, task: FoundTask) -> AttacksAnswer:
    """The newest sound report of each participant, attested ones first, and what they come to."""
    return cached(log, ("attacks", task.digest), lambda: _attacks(log, task))


def _attacks(log: Log, task: FoundTask) -> AttacksAnswer:
    trust, views = trust_context(log), dict[str, AttackView]()
    authors = trusted_authors(trust, None)
    others = log.texts.attack_reports(task.digest, limit=_STRANGERS_MOST)
    trusted = [note for note in others if authors is None or note.author in authors]
    if len(others) == _STRANGERS_MOST:
        trusted = log.texts.attack_reports(task.digest, limit=_REPORTS_MOST, authors=authors)
    for note in dict.fromkeys([*trusted, *others]):
        body, participant = log.records.get(note.id).body_as(Note), participant_of(log, note.author, note.time)
        counts = counts_of(body)
        if counts is None or body.attack is None or participant.key in views:
            continue
        attacks, quick, tried, held = (counts.pop(name) for name in ("attacks", "quick", "tried", "held"))
        views[participant.key] = AttackView(
            id=format_id(note.id),
            time_ms=note.time,
            participant=participant,
            attested=trust.naming and whose(note.author, note.time, trust).attested,
            attacks=attacks,
            quick=bool(quick),
            tried=tried,
            held=held,
            holes=dict(
                sorted(((name, number) for name, number in counts.items() if number), key=lambda hole: -hole[1])
            ),
            report=body.attack.sha256.hex(),
        )
    reports = sorted(views.values(), key=lambda view: not view.attested)
    counting = [view for view in reports if view.attested or not trust.naming]
    return AttacksAnswer(
        task=task.name,
        digest=task.digest.hex(),
        self_reported=log.tasks.stated(task.digest, "metric", "source") == "stdout",
        sentence=_sentence(counting, "" if trust.naming else " of a network that attests nobody"),
        reports=reports,
    )


def _sentence(reports: list[AttackView], where: str) -> str:
    """What the reports that count come to: that with most attacks through, else that with most tried, and how many."""
    if not reports:
        return ""
    first = max(reports, key=lambda view: (view.tried - view.held, view.tried))
    alike = [view for view in reports if bool(view.holes) == bool(first.holes)]
    quick = " (quick half)" if first.quick else ""
    listed = "" if first.attacks == ATTACKS_VERSION else f", with list {first.attacks} of attacks"
    parts = [
        f"attacked: {first.held} of {first.tried} held{quick}, by {counted(len(alike), 'participant')}{where}{listed}",
        *dict.fromkeys(_SENTENCES.get(hole, "a hole that this version has no words for") for hole in first.holes),
        *([f"all held by {counted(len(reports) - len(alike), 'other')}"] if len(alike) < len(reports) else []),
    ]
    return "; ".join(parts)
