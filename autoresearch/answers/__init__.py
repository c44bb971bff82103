"""What fills the answers of `autoresearch.api` from the log and the blobs."""

from __future__ import annotations

from autoresearch.answers.admissions import named_participant, voters_answer, with_voter
from autoresearch.answers.asking import ask_answer
from autoresearch.answers.attestation import attest_answer, confirmation_subject, confirmations
from autoresearch.answers.claims import claims_answer
from autoresearch.answers.conditions import parse_conditions
from autoresearch.answers.credit import credit_answer
from autoresearch.answers.diffs import (
    diff_answer,
    lineage_answer,
    open_checkpoint,
    run_checkpoint,
    run_log,
    run_source,
)
from autoresearch.answers.effects import effects_answer
from autoresearch.answers.evidence import evidence_list_answer
from autoresearch.answers.evidence_check import evidence_answer, measured_evidence, stated
from autoresearch.answers.headlines import with_headlines
from autoresearch.answers.leaderboards import best_answer, task_status, tasks_answer, top_answer
from autoresearch.answers.manual_verification import check_asked, check_new, will_count
from autoresearch.answers.notes import heard_authors, note_on, note_view, notes_answer
from autoresearch.answers.own_verifications import verifying_status
from autoresearch.answers.peers import with_participants
from autoresearch.answers.published_tasks import published_task
from autoresearch.answers.records import log_answer, record_view, show_answer
from autoresearch.answers.references import resolve_reference
from autoresearch.answers.releases import (
    check_new_release,
    own_release,
    prepared_for,
    release_answer,
    release_view,
    search_answer,
    yanked_answer,
)
from autoresearch.answers.services import service_view, services_answer
from autoresearch.answers.task_lookup import FoundTask, find_task, task_of
from autoresearch.answers.teller import Described, Teller, Told, described, headline_of, teller_of
from autoresearch.answers.unrevealed import Untold, untold, waiting
from autoresearch.answers.verification_queue import verifications_answer
from autoresearch.answers.voters import nothing_to_verify, too_few, way_to_count
from autoresearch.answers.withdrawal import own_record, withdrawn_answer

__all__ = [
    "Described",
    "FoundTask",
    "Teller",
    "Told",
    "Untold",
    "ask_answer",
    "attest_answer",
    "best_answer",
    "check_asked",
    "check_new",
    "check_new_release",
    "claims_answer",
    "confirmation_subject",
    "confirmations",
    "credit_answer",
    "described",
    "diff_answer",
    "effects_answer",
    "evidence_answer",
    "evidence_list_answer",
    "find_task",
    "headline_of",
    "heard_authors",
    "lineage_answer",
    "log_answer",
    "measured_evidence",
    "named_participant",
    "note_on",
    "note_view",
    "notes_answer",
    "nothing_to_verify",
    "open_checkpoint",
    "own_record",
    "own_release",
    "parse_conditions",
    "prepared_for",
    "published_task",
    "record_view",
    "release_answer",
    "release_view",
    "resolve_reference",
    "run_checkpoint",
    "run_log",
    "run_source",
    "search_answer",
    "service_view",
    "services_answer",
    "show_answer",
    "stated",
    "task_of",
    "task_status",
    "tasks_answer",
    "teller_of",
    "too_few",
    "top_answer",
    "untold",
    "verifications_answer",
    "verifying_status",
    "voters_answer",
    "waiting",
    "way_to_count",
    "will_count",
    "with_headlines",
    "with_participants",
    "with_voter",
    "withdrawn_answer",
    "yanked_answer",
]
