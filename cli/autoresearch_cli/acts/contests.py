"""Contests from the command line: the checks before one, its invites, its page, and the files of its end."""

from __future__ import annotations

import csv
import io
import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from autoresearch.ask.challenges.answers import ChallengeAnswer, ContestantView, SubmissionView
from autoresearch.ask.challenges.board import challenge_here, contest_words
from autoresearch.ask.challenges.founding import (
    JOIN_COMMAND,
    ContestKind,
    ContestPlan,
    found_contest,
    rules_for,
    unwritten_page,
    write_page,
)
from autoresearch.ask.challenges.rules import HTML, PageSection, as_html, as_markdown, joining
from autoresearch.ask.runs.diffs import blob_text
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound, Refused, UsageError
from autoresearch.face.columns.challenges import CONTESTANT_COLUMNS, SUBMISSION_HEAD, submission_cells
from autoresearch.face.columns.column import lines
from autoresearch.log.bundle_format import BundledBlobs
from autoresearch.log.standing.answers import NOBODY
from autoresearch.paths import put_folder, write_refusals, write_whole
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Contest
from autoresearch.record.record import DAY_MS
from autoresearch.task.folders import is_taken
from autoresearch.task.model import Task
from autoresearch.text import counted, json_text, moment
from autoresearch.trust.identity import DEVICE_FILE, load_identity
from autoresearch.trust.invite import DAYS_MAX, USES_MAX, Invitations, write_invite
from autoresearch.trust.keys import KeyPair
from autoresearch.words import MEASURED_BY, Result, RunState
from autoresearch_cli import home, local_log, starting
from autoresearch_cli.acts.checks import task_checks
from autoresearch_cli.acts.exports import write_pages
from autoresearch_cli.acts.joining import own_addresses, to_be_sent
from autoresearch_cli.models import ClosedChallengeAnswer, NewChallengeAnswer, TextAnswer
from autoresearch_cli.rendering.output import say

STARTING_SECONDS = 15.0
CODES = "codes.csv"
BOARD, MARKS, RESULT, PAGES, BUNDLE = "board.md", "marks.csv", "result.json", "pages", "log.car"
# What a program that opens a CSV file takes for the begin of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_invites(kind: ContestKind, uses: int, codes: int | None) -> int:
    """How many participants the invites of a contest admit together. Raises UsageError where that can't be."""
    if (kind == "class") != (codes is not None):
        raise UsageError(
            "--codes N goes with --for class: it makes a one-time code for each participant",
            hint="autoresearch challenge new DIR --ends 7d --for class --codes 30",
        )
    number = uses if codes is None else codes
    if not 1 <= number <= USES_MAX:
        option = "--uses N" if codes is None else "--codes N"
        raise UsageError(f"a contest invites 1 to {USES_MAX} participants, not {number}", hint=option)
    return number


def check_task(task: Task) -> None:
    """Refuse a task that does not run on this machine: by the checks of `node doctor task`. Raises CannotRunHere."""
    home.paths().create()
    for check in task_checks(str(task.folder)):
        if check.result == Result.FAILED:
            raise CannotRunHere(f"{task.name}: {check.detail}", hint=check.fix)
        if check.result == Result.WARNING:
            say(f"{check.name}: {check.detail}")


def locked_root() -> KeyPair | None:
    """The root key where it lies here under a passphrase, which is asked for; None where nothing has to be asked.

    Raises:
        Refused: the root key is on another machine: only there its participant founds networks.
    """
    if not (home.paths().keys / DEVICE_FILE).exists():
        return None
    mine = load_identity(home.paths().keys)
    if isinstance(mine.root, KeyPair):
        return None
    root = home.unlocked(mine).root
    return root if isinstance(root, KeyPair) else None


def found_network_of(plan: ContestPlan, *, signer: KeyPair | None, start: bool) -> None:
    """Found the contest, with the daemon down meanwhile; afterwards it runs in the new network, with ``start``."""
    was_running = starting.is_running()
    if was_running:
        starting.stop()
    try:
        left = found_contest(home.paths(), plan, home.now_ms(), signer=signer).left
    except BaseException:  # Ctrl-C too
        if was_running:
            starting.ensure_running()
        raise
    if left is not None:
        back = f"autoresearch network use {left.name} goes back"
        say(f"this node leaves the network {left.name}: it admits and verifies nobody there → {back}")
    if was_running or start:
        try:
            starting.ensure_running()
        except AutoresearchError as error:  # the contest is there, and its page is still to be written
            say(f"{error} → {error.hint}")


def invite(plan: ContestPlan, page: Path, number: int) -> NewChallengeAnswer:
    """Make the invites of the contest that was just founded, and write its page of rules."""
    manifest, paths, now_ms = home.manifest(), home.paths(), home.now_ms()
    addresses = own_addresses(patience_seconds=STARTING_SECONDS)
    sent = to_be_sent(manifest, addresses)
    days = min(math.ceil((plan.ends_ms - now_ms) / DAY_MS), DAYS_MAX)
    invitations = Invitations(paths.manifest, manifest.network)
    invitations.forget()  # those of a founding that was interrupted were given to nobody
    codes = [("", write_invite(sent))]
    if plan.kind == "class":
        width = len(str(number))
        names = [f"student-{each:0{width}}" for each in range(1, number + 1)]
        codes = [
            (name, write_invite(sent, invitations.make(now_ms, uses=1, days=days, alias=name)[1])) for name in names
        ]
    elif plan.kind != "open":
        codes = [("", write_invite(sent, invitations.make(now_ms, uses=number, days=days)[1]))]
    line = f"{JOIN_COMMAND} {'INVITE' if plan.kind == 'class' else codes[0][1]}"
    file = page / CODES if plan.kind == "class" else None
    if file is not None:
        rows = [("alias", "invite", "line"), *((name, code, f"{JOIN_COMMAND} {code}") for name, code in codes)]
        write_text(file, _as_csv(rows), private=True)
    with local_log.open_desk() as desk:
        record, task = challenge_here(desk.log)
        body = record.body_as(Contest)
        pages = write_page(page, rules_for(desk.log, body), joining(line, admits=not manifest.trust.attestors))
    unwritten_page(paths).unlink(missing_ok=True)
    return NewChallengeAnswer(
        network=manifest.network.name,
        network_id=manifest.network.id.hex(),
        task=task.digest.hex(),
        title=body.title or task.name,
        ends_ms=body.ends,
        pages=list(map(str, pages)),
        line=line,
        codes=str(file or ""),
        reachable=bool(sent.bootstrap),
    )


def say_contest(task: bytes) -> None:
    """Say it where the contest on a task has ended, or counts some runs alone."""
    with local_log.open_desk() as desk:
        if sentence := contest_words(desk.log, task, home.now_ms()):
            say(f"{sentence} → autoresearch challenge show")


def write_page_again(folder: Path, line: str) -> list[Path]:
    """Write the page of rules of the contest as it is now; ``line`` is what its earlier page has to join."""
    with local_log.open_desk() as desk:
        body = challenge_here(desk.log)[0].body_as(Contest)
        admits = not home.manifest().trust.attestors
        return write_page(folder, rules_for(desk.log, body), joining(line, admits=admits))


def signed_rules() -> TextAnswer:
    """The page of rules that the founder's word names. Raises NotFound where it is nowhere."""
    with local_log.open_desk() as desk:
        record, _ = challenge_here(desk.log)
        rules = record.body_as(Contest).rules
        if rules is None:
            raise NotFound("this contest has no page of rules", hint="autoresearch challenge show")
        text = local_log.with_blobs(lambda: blob_text(desk.log, desk.blobs, record.id, rules, "the page of rules"))
    return TextAnswer(id=format_id(record.id), what="rules", text=text)


def with_aliases(answer: ChallengeAnswer) -> ChallengeAnswer:
    """The same with the aliases that this machine gave with its invites; codes that nobody used stand last."""
    manifest = home.manifest()
    made = Invitations(home.paths().manifest, manifest.network).all()
    aliases = {invitation.token.hex(): invitation.alias for invitation in made if invitation.alias}
    contestants = [
        msgspec.structs.replace(each, alias=aliases.pop(each.token, "") if each.token else "")
        for each in answer.contestants
    ]
    unused = [
        ContestantView(participant=NOBODY, runs=0, counted=0, token=token, alias=alias)
        for token, alias in sorted(aliases.items(), key=lambda pair: pair[1])
    ]
    return msgspec.structs.replace(answer, contestants=contestants + unused)


def marks(answer: ChallengeAnswer) -> str:
    """The participants as comma-separated values, RFC 4180."""
    header = [column.name for column in CONTESTANT_COLUMNS]
    return _as_csv([header, *lines(CONTESTANT_COLUMNS, answer.contestants)])


def check_new_folder(folder: Path) -> None:
    """Raises Refused where a folder holds something, UsageError where it can't be made."""
    if is_taken(folder):
        raise Refused(f"{folder} holds something already", hint="name a new folder: -o FOLDER")
    if not folder.parent.is_dir():
        raise UsageError(f"there is no folder {folder.parent}", hint="make it, or name another: -o FOLDER")


def write_result(answer: ChallengeAnswer, folder: Path) -> ClosedChallengeAnswer:
    """Write the final board, the marks, the pages and the bundle; the folder appears when it is whole."""
    check_new_folder(folder)
    with write_refusals(folder.parent, "name another: -o FOLDER"):
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        place = beside / folder.name
        place.mkdir()
        board = board_of(answer)
        for name, text in (
            (BOARD, as_markdown(board)),
            (HTML, as_html(board)),
            (MARKS, marks(answer)),
            (RESULT, json_text(answer) + "\n"),
        ):
            write_text(place / name, text)
        write_pages(place / PAGES, answer.task.digest)
        local_log.write(place / BUNDLE, task="", carried=BundledBlobs.SOURCES)
        put_folder(place, folder)
    except OSError as error:
        raise Refused(f"{folder} can't be written: {error.strerror}", hint="name another: -o FOLDER") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return ClosedChallengeAnswer(
        folder=str(folder),
        board=str(folder / BOARD),
        marks=str(folder / MARKS),
        result=str(folder / RESULT),
        pages=str(folder / PAGES),
        bundle=str(folder / BUNDLE),
        placed=sum(bool(each.position) for each in answer.submissions),
        submissions=len(answer.submissions),
    )


def board_of(answer: ChallengeAnswer) -> list[PageSection]:
    """The final board in sentences: places, how the first differ, and a reason for every submission."""
    placed = sorted(
        (each for each in answer.submissions if each.position), key=lambda each: (each.position, each.last_position)
    )
    rest = [each for each in answer.submissions if not each.position]
    about = (
        f"A contest on the task {answer.task.name} ({answer.task.metric}, {answer.task.direction}), in the network "
        f"{answer.network}. It {'ended' if answer.ended else 'ends'} {moment(answer.ends_ms)}."
    )
    players = sum(bool(each.participant.key) for each in answer.contestants)  # not codes that nobody used
    total = f"{counted(len(answer.submissions), 'submission')} by {counted(players, 'participant')}."
    few = []
    if placed and all(each.outcome != RunState.CONFIRMED for each in placed):
        why = f": {answer.note}" if answer.note else ""
        few = [f"No place is confirmed, so the places go by reported values{why}."]
    task = answer.task
    measured = [f"Its number is self-reported: measured by {MEASURED_BY['stdout']}."] if task.self_reported else []
    attacked = f"The task was {task.attacked or 'not attacked by an attested participant'}."
    sections = [
        PageSection(f"{answer.title}: final board", [about, *measured, attacked, total, *few]),
        PageSection("Places", [] if placed else ["No submission took a place."], table=_table(placed)),
    ]
    if answer.comparisons:
        sections.append(
            PageSection(
                "How the first places differ",
                [
                    "Programs share a place where their intervals overlap; a difference may yet be beyond the noise.",
                    *(f"{fact.sentence}." for fact in answer.comparisons),
                ],
            )
        )
    if rest:
        sections.append(PageSection("Submissions without a place", [], table=_table(rest)))
    return sections


def _table(submissions: Sequence[SubmissionView]) -> list[Sequence[str]]:
    """A row of the board for each; those that all take no place have no column of places."""
    rows = [SUBMISSION_HEAD, *map(submission_cells, submissions)] if submissions else []
    return rows if any(each.position for each in submissions) else [row[1:] for row in rows]


def _as_csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\r\n").writerow
    for row in rows:
        write([f"'{cell}" if cell.startswith(_FORMULA) and not _is_number(cell) else cell for cell in row])
    return text.getvalue()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file as a whole, ``private`` for this user alone. Raises Refused."""
    with write_refusals(path, "check its permissions"):
        write_whole(path, text)
        if private:
            path.chmod(0o600)
