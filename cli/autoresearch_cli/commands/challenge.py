"""``challenge``: contests on a task. Found one, look at its board, set another end, close it, grade participants."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.ask import publishing, questions
from autoresearch.ask.challenges.answers import ChallengeAnswer
from autoresearch.ask.challenges.founding import (
    ContestKind,
    ContestPlan,
    check_plan,
    joining_line,
    parse_end,
    unfinished_contest,
)
from autoresearch.ask.challenges.rules import HTML
from autoresearch.ask.requests import ChallengeEndRequest, ChallengeOf
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.errors import Refused
from autoresearch.face.columns.challenges import CONTESTANT_COLUMNS
from autoresearch.face.columns.runs import attacked_words
from autoresearch.paths import output_path, typed_path
from autoresearch.task.loading import load_task
from autoresearch.text import counted, ending, moment, unsettled
from autoresearch.trust.manifest import parse_key
from autoresearch.trust.roster import Trust
from autoresearch.words import MEASURED_BY
from autoresearch_cli import home
from autoresearch_cli.acts import contests
from autoresearch_cli.acts.attacks import attacked_before
from autoresearch_cli.catalogue import Answered, Attacked, CommandApp
from autoresearch_cli.models import GradesAnswer
from autoresearch_cli.rendering.boards import print_top
from autoresearch_cli.rendering.output import paged, print_exactly, print_labelled, print_list, print_text, say

app = CommandApp()
# How many an invite of a contest admits where nobody says.
USES = 20


@app.command(
    "challenge new",
    ("autoresearch challenge new ~/my-task --ends 7d --for friends", "seven days, for whoever has the invite"),
    ("autoresearch challenge new . --ends 2026-12-24 --for class --codes 30 --runs 50", "a code for each of thirty"),
    ("autoresearch challenge new . --ends 36h --for lab --title 'one night' -o ~/night", "with its page in ~/night"),
    see="challenge show, task new, network invite",
)
def new(  # noqa: PLR0913 - what a person may say of a contest
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of its task.")],
    *,
    ends: Annotated[str, typer.Option("--ends", metavar="WHEN", help="A length of time like 7d, or a date.")],
    kind: Annotated[
        ContestKind,
        typer.Option("--for", help="lab: one team; friends; class: a code for each; open: attested by mail."),
    ],
    title: Annotated[str, typer.Option("--title", help="What it is called. Left out: as the task.")] = "",
    name: Annotated[str, typer.Option("--name", help="The network's name. Left out: as the task.")] = "",
    runs: Annotated[
        int, typer.Option("--runs", min=0, max=10**6, help="Of each participant so many runs count; 0: all.")
    ] = 0,
    uses: Annotated[int, typer.Option("--uses", help="How many participants the invite admits.")] = USES,
    codes: Annotated[
        int | None, typer.Option("--codes", metavar="N", help="With --for class: so many invites, one for each.")
    ] = None,
    attestor: Annotated[
        list[str] | None, typer.Option(help="With --for open: the root key of an attestor; may be repeated.")
    ] = None,
    needed: Annotated[int, typer.Option(help="With --for open: how many attestors it takes.")] = Trust().needed,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="Of the page of rules; DIR-challenge if left out.")
    ] = "",
    attack: Attacked = True,
    start: Annotated[
        bool, typer.Option("--up/--no-up", help="Start the daemon, so that the invite has an address.")
    ] = True,
) -> Answered:
    """Found a contest on a task: its own network, an end that all participants read, an invite and a page of rules.

    The task is checked first: its baseline runs here, and the quick half of `task attack` within a minute. Its report
    is published beside the task. A running daemon begins again in the new network.
    """
    task = load_task(home.existing_folder(folder).resolve())
    page = typed_path(output or f"{task.folder}-challenge").absolute()
    plan = ContestPlan(
        task=task,
        kind=kind,
        ends_ms=parse_end(ends, home.now_ms()),
        name=name,
        title=title,
        runs=runs,
        attestors=tuple(dict.fromkeys(map(parse_key, attestor or ()))),
        needed=needed,
    )
    number = contests.check_invites(kind, uses, codes)
    begun, lacking = unfinished_contest(home.paths(), task), ""
    if begun is None:
        check_plan(plan, page)
    signer = contests.locked_root()
    if begun is None:
        contests.check_task(task)
        lacking = attacked_before(task, try_it=attack)
        plan = msgspec.structs.replace(plan, attacked=not lacking)
    else:
        say(f"the contest {begun.name} was founded, and interrupted before its page was written: it goes on as founded")
    contests.found_network_of(plan, signer=signer, start=start)
    answer = contests.invite(plan, page, number)
    yield answer
    say(f"the contest {answer.title} is founded, in the network {answer.network}; it ends {moment(answer.ends_ms)}")
    say(f"the page of rules: {page / HTML}")
    if lacking:
        attack_it = f"autoresearch task attack {shlex.quote(str(task.folder))} --publish"
        say(f"no report of attacks stands beside it: {lacking} → {attack_it}")
    if answer.codes:
        say(f"a code for each participant, with an alias: {answer.codes}")
    if not answer.reachable:
        way = "found it again without --no-up" if answer.codes else "autoresearch up, then autoresearch network invite"
        say(f"{'its codes hold' if answer.codes else 'the invite holds'} no address of this node yet: {way}")
    if not answer.codes:
        print_text(answer.line)
    each = "each participant a line of that file, and the page"
    what = each if answer.codes else "that line and the page to the participants"
    say(f"→ send {what}; your daemon has to run, so that it admits them")


@app.command(
    "challenge show",
    ("autoresearch challenge show", "when it ends, the board, the participants"),
    ("autoresearch challenge show --rules", "the page of rules, as a founder signed it"),
    ("autoresearch challenge show --json | jq .ends_ms", "its end for a program"),
    see="challenge close, top, network show",
)
def show(
    *, rules: Annotated[bool, typer.Option("--rules", help="Print the page of rules, and nothing else.")] = False
) -> Answered:
    """The contest of this network: its task, its end, the board so far, and who takes part."""
    if rules:
        text = contests.signed_rules()
        yield text
        print_exactly(text.text)
        return
    answer = contests.with_aliases(home.ask(questions.challenge, ChallengeOf()))
    yield answer
    now_ms = home.now_ms()
    print_labelled(_head(answer, now_ms))
    with paged():
        print_top(TopAnswer(task=answer.task, programs=answer.programs), now_ms=now_ms)
        print_list(CONTESTANT_COLUMNS, answer.contestants, now_ms=now_ms)
    for line in filter(None, (answer.note, unsettled(answer.unsettled))):
        say(line)
    if not answer.programs:
        say(f"nothing is measured yet → autoresearch work {answer.task.name}")
    say("→ autoresearch challenge close" if answer.ended else f"→ autoresearch work {answer.task.name}")


@app.command(
    "challenge extend",
    ("autoresearch challenge extend --ends 9d", "it ends in nine days from now"),
    ("autoresearch challenge extend --ends 2026-12-24T18:00", "at a time of this machine's clock"),
    ("autoresearch challenge extend --ends 9d -o ~/my-task-challenge", "and write its page of rules anew"),
    see="challenge show, challenge close, network invite",
)
def extend(
    *,
    ends: Annotated[str, typer.Option("--ends", metavar="WHEN", help="A length of time from now, or a date.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder of its page, to write it anew.")
    ] = "",
) -> Answered:
    """As a founder, give the contest a later end. It reaches every participant; the last one holds."""
    ends_ms = parse_end(ends, home.now_ms())
    folder = typed_path(output).absolute() if output else None
    line = joining_line(folder) if folder else ""
    answer = home.ask(publishing.set_challenge_end, ChallengeEndRequest(ends_ms=ends_ms))
    pages = contests.write_page_again(folder, line) if folder else []
    yield contests.with_aliases(answer)
    say(f"the contest {answer.title} ends {moment(answer.ends_ms)} now")
    say(f"its page is written anew: {pages[-1]}" if pages else "its page of rules names the earlier end: add -o FOLDER")
    say("→ autoresearch challenge show")


@app.command(
    "challenge close",
    ("autoresearch challenge close", "after its end: the final board in a new folder"),
    ("autoresearch challenge close -o ~/result", "in a folder of another name"),
    ("autoresearch challenge close --now", "as a founder, end it at once"),
    see="challenge show, challenge grade, task export",
)
def close(
    *,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="A new folder; NAME-result here if left out.")
    ] = "",
    now: Annotated[bool, typer.Option("--now", help="As a founder, end the contest at once.")] = False,
) -> Answered:
    """Write the final board with a reason for every submission, its pages, and the signed records as a bundle.

    Every participant can do so after the end, and gets the same board from the same records.
    """
    before = home.ask(questions.challenge, ChallengeOf())
    folder = typed_path(output or f"{before.network}-result").absolute()
    contests.check_new_folder(folder)
    if not before.ended:
        if not now:
            raise Refused(
                f"the contest {before.title} {ending(before.ends_ms, home.now_ms())}",
                hint="wait, or as its founder: autoresearch challenge close --now",
            )
        home.ask(publishing.set_challenge_end, ChallengeEndRequest())
    answer = contests.with_aliases(home.ask(questions.challenge, ChallengeOf(every=True)))
    if answer.unsettled:
        raise Refused(f"{unsettled(answer.unsettled)}: the board is not final", hint="the same again in a moment")
    closed = contests.write_result(answer, folder)
    yield closed
    for path in (closed.board, closed.marks, closed.result, closed.pages, closed.bundle):
        print_text(path)
    placed = f"{counted(closed.placed, 'submission')} of {closed.submissions}" if closed.placed else "no submission"
    say(f"{placed} took a place; each of the others has its reason in {Path(closed.board).name}")
    if answer.waiting:
        say(f"{counted(answer.waiting, 'submission')} still waited for verifiers: closing again later may differ")
    say(f"→ open {shlex.quote(str(folder / HTML))} in a browser")


@app.command(
    "challenge grade",
    ("autoresearch challenge grade", "a line for each participant"),
    ("autoresearch challenge grade --csv > marks.csv", "the same for a spreadsheet"),
    ("autoresearch challenge grade -o marks.csv", "into a file, replaced as a whole"),
    see="challenge close, challenge show, network credit",
)
def grade(
    *,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values with a header.")] = False,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Write them to a file.")] = "",
) -> Answered:
    """A line for each participant: alias, runs, the best value that verifiers measured, gain, place and reason."""
    answer = contests.with_aliases(home.ask(questions.challenge, ChallengeOf()))
    text = contests.marks(answer)
    if output:
        contests.write_text(output_path(output), text)
    yield GradesAnswer(title=answer.title, ended=answer.ended, file=output, contestants=answer.contestants)
    if as_csv and not output:
        print_exactly(text)
        return
    if output:
        say(f"{counted(len(answer.contestants), 'participant')} written to {output}")
    else:
        print_list(CONTESTANT_COLUMNS, answer.contestants, now_ms=home.now_ms())
    if answer.unsettled:
        say(f"{unsettled(answer.unsettled)}: places may change")
    elif not answer.ended:
        say(f"the contest {ending(answer.ends_ms, home.now_ms())}: places may change")
    elif answer.waiting:
        say(f"{counted(answer.waiting, 'submission')} still wait for verifiers: places may change")


def _head(answer: ChallengeAnswer, now_ms: int) -> list[tuple[str, str]]:
    participants = f"{sum(each.runs > 0 for each in answer.contestants)} with a run"
    quota = f"the first {answer.runs_each} of each participant count" if answer.runs_each else ""
    return [
        ("contest", answer.title),
        ("task", f"{answer.task.name}: {answer.task.metric}, {answer.task.direction}"),
        *([("metric", f"measured by {MEASURED_BY['stdout']}")] if answer.task.self_reported else []),
        ("attacked", attacked_words(answer.task)),
        ("end", f"{ending(answer.ends_ms, now_ms)}, {moment(answer.ends_ms)}"),
        ("network", answer.network),
        ("participants", participants),
        *([("runs", quota)] if quota else []),
        ("waiting", f"{counted(answer.waiting, 'submission')} for verifiers" if answer.waiting else "none"),
    ]
