"""What a participant publishes by hand, each as one function: of the daemon, or of a command that finds none.

As in `autoresearch.ask.questions`, what is heavy is loaded by the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from autoresearch.ask import requests
from autoresearch.ask.challenges.answers import ChallengeAnswer
from autoresearch.ask.discussion import NoteAnswer
from autoresearch.ask.node import BroughtAnswer, HistoryAnswer, TaskStatus
from autoresearch.ask.operation import operation
from autoresearch.ask.records import BeliefAnswer, HideAnswer, SharedHiddenAnswer, WithdrawnAnswer
from autoresearch.ask.registry.components import YankedAnswer

if TYPE_CHECKING:
    from autoresearch.ask.acts.notebook import Notebook

# Checkpoints are copied, and each record is on the disk before the next one.
BRING_SECONDS = 150.0
# Words are looked for in all that is here.
HIDE_SECONDS = 150.0


@operation("POST /v1/notes")
def note(notebook: Notebook, request: requests.NoteRequest) -> NoteAnswer:
    """Publish a note: what runs show, or what is worth trying. It may replace an own one that no run cites."""
    from autoresearch.ask.notes import note_on, note_view
    from autoresearch.record.encoding import short_id

    body, evidence, before = note_on(notebook.log, request, author=notebook.author, archived=notebook.archived())
    record = notebook.publish_note(body, notebook.now_ms(), links=evidence)
    if before is not None:
        notebook.withdraw(before, notebook.now_ms(), reason=f"in its place: {short_id(record.id)}")
    return NoteAnswer(note=note_view(notebook.log, record))


@operation("POST /v1/withdraw")
def withdraw(notebook: Notebook, request: requests.WithdrawRecordRequest) -> WithdrawnAnswer:
    """Withdraw a run or a note of this node: it stays in the log and ranks nowhere; 409 for another's."""
    from autoresearch.ask.people.claims import own_record
    from autoresearch.record.encoding import format_id

    record = own_record(notebook.log, request.record, notebook.author, archived=notebook.archived())
    withdrawal = notebook.withdraw(record, notebook.now_ms(), reason=request.reason)
    withdrawn, by = format_id(record.id), format_id(withdrawal.id)
    return WithdrawnAnswer(id=withdrawn, kind=record.kind, withdrawal=by, reason=request.reason)


@operation("POST /v1/beliefs")
def believe(notebook: Notebook, request: requests.BelieveRequest) -> BeliefAnswer:
    """Believe the value of a run whose program measures itself, on this machine; 409 past its task's floor."""
    from autoresearch.ask.people.claims import believed_run
    from autoresearch.log.derive.driver import believe_run
    from autoresearch.record.encoding import format_id

    run = believed_run(notebook.log, request, notebook.author, archived=notebook.archived())
    changed, state, others = believe_run(notebook.log, run, believed=request.believed)
    return BeliefAnswer(
        id=format_id(run.id), believed=request.believed, changed=changed, state=state.value, others=others
    )


@operation("POST /v1/hidden", seconds=HIDE_SECONDS)
def hide(notebook: Notebook, request: requests.HideRequest) -> HideAnswer:
    """Hide a participant, a record, a task or words on this machine, or no longer; 409 for oneself."""
    from autoresearch.ask.people.hiding import hide_named

    return hide_named(notebook.log, request, notebook.author, now_ms=notebook.now_ms(), archived=notebook.archived())


@operation("POST /v1/hidden/lists", seconds=HIDE_SECONDS)
def take_hidden(notebook: Notebook, request: requests.TakeHiddenRequest) -> HideAnswer:
    """Hide what the newest list of a participant has, or no longer; 409 for the list of one who is hidden."""
    from autoresearch.ask.people.hiding import take_list

    return take_list(notebook.log, request, notebook.author, now_ms=notebook.now_ms())


@operation("POST /v1/hidden/share")
def share_hidden(notebook: Notebook, request: requests.ShareHiddenRequest) -> SharedHiddenAnswer:
    """Publish what this participant hides as a signed list, so that others can take it over."""
    from autoresearch.ask.people.hiding import list_notes
    from autoresearch.record.encoding import format_id

    parts, head, left_out = list_notes(notebook.log, request.text)
    links = tuple(notebook.publish_note(part, notebook.now_ms()).id for part in parts)
    record = notebook.publish_note(head, notebook.now_ms(), links=links)
    things = sum(len(note.hides or ()) + len(note.hides_words) for note in (*parts, head))
    return SharedHiddenAnswer(note=format_id(record.id), things=things, left_out=left_out)


@operation("POST /v1/yanks")
def yank(notebook: Notebook, request: requests.YankRequest) -> YankedAnswer:
    """Advise against an own release: it stays in the log and is no default any more; 409 for another's."""
    from autoresearch.ask.registry.releases import own_release, yanked_answer

    release = own_release(notebook.log, request.release, notebook.author)
    return yanked_answer(release, notebook.yank(release, notebook.now_ms(), reason=request.reason))


@operation("POST /v1/tasks")
def publish_task(notebook: Notebook, request: requests.PublishTaskRequest) -> TaskStatus:
    """Publish the task of a folder, with its fixed files and its baseline; nothing where it is published.

    With ``attacked`` the report of attacks in the folder is published beside it.
    """
    from autoresearch.ask.acts.attack_reports import publish_report
    from autoresearch.ask.lookup import task_of
    from autoresearch.ask.runs.boards import task_status
    from autoresearch.task.loading import folder_of_task, load_task

    task = load_task(folder_of_task(request.task))
    notebook.publish_task(task, notebook.now_ms())
    if request.attacked:
        publish_report(notebook, task, notebook.now_ms())
    published = task_of(notebook.log, task.digest)
    assert published is not None, "it was just published"
    return task_status(notebook.log, published, author=notebook.author)


@operation("POST /v1/challenge")
def set_challenge_end(notebook: Notebook, request: requests.ChallengeEndRequest) -> ChallengeAnswer:
    """As a founder, give the contest of this network another end; 409 for others."""
    from autoresearch.ask.challenges.board import challenge_answer
    from autoresearch.ask.challenges.founding import set_end

    now_ms = notebook.now_ms()
    set_end(notebook, request.ends_ms or now_ms, now_ms)
    return challenge_answer(notebook.log, notebook.blobs, now_ms=notebook.now_ms(), me=notebook.author)


@operation("POST /v1/history", seconds=BRING_SECONDS)
def import_history(notebook: Notebook, request: requests.HistoryRequest) -> HistoryAnswer:
    """Publish notes about past work, such as the rows of a results.tsv; what was published before is left alone."""
    from autoresearch.record.kinds import Note

    notes = [
        Note(
            topic="history",
            task=bytes.fromhex(note.task),
            text=note.text,
            origin=note.origin,
            metrics=note.metrics,
            status=note.status,
        )
        for note in request.notes
    ]
    return HistoryAnswer(added=notebook.publish_history(notes, notebook.now_ms()))


@operation("POST /v1/bring", seconds=BRING_SECONDS)
def bring(notebook: Notebook, request: requests.BringRequest) -> BroughtAnswer:
    """Publish this participant's finished runs of another network of this home in the one in use, each once."""
    from autoresearch.ask.acts.networks import bring_runs, find_home_network
    from autoresearch.errors import Refused

    origin = find_home_network(notebook.paths, request.network)
    if origin.in_use:
        raise Refused(f"{origin.name} is the network in use: its runs are here", hint="autoresearch network list")
    brought = bring_runs(origin, notebook, notebook.now_ms, most=request.most)
    return msgspec.convert(brought, BroughtAnswer, from_attributes=True)
