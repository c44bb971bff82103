"""``network hide``: what this machine shows nobody; ``network hidden``: the list of it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from autoresearch.ask import publishing, questions, requests
from autoresearch.ask.records import HideAnswer
from autoresearch.errors import UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.people import HIDDEN_COLUMNS, unhiding
from autoresearch.text import age, counted, one_line
from autoresearch_cli import home
from autoresearch_cli.catalogue import Answered, CommandApp, Json, complete_reference
from autoresearch_cli.rendering.output import confirm, paged, print_json, print_list, say

app = CommandApp()


@app.command(
    "network hide",
    ("autoresearch network hide 3fa9c2d1 --reason spam", "a participant: all that it wrote, and will write"),
    ("autoresearch network hide --words 'buy now'", "whatever has these words in a title, note or name"),
    ("autoresearch network hide --from 3fa9c2d1", "what another participant hides, by its newest list"),
    see="network hidden, network credit, show",
)
def hide(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A participant, a record or a task: its key, id or name. With --words: the words.",
            autocompletion=complete_reference,
        ),
    ] = "",
    *,
    words: Annotated[bool, typer.Option("--words", help="WHAT are words; small and capital letters are one.")] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for yourself.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Hide it no longer.")] = False,
    from_: Annotated[
        str, typer.Option("--from", metavar="PARTICIPANT", help="Hide what the newest list of a participant has.")
    ] = "",
    share: Annotated[bool, typer.Option("--share", help="Publish what you hide as a signed list.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    json: Json = False,
) -> None:
    """Hide a participant, a record or words on this machine: out of lists, search, prompts, charts and pages.

    Hidden records stay in the log, and count as before. `--hidden` shows them in a list, `show ID` shows one.
    """
    if (bool(what) + bool(from_) + share) != 1:
        raise UsageError("hide one thing: WHAT, --from PARTICIPANT or --share", hint="autoresearch network hide --help")
    if share:
        _share(reason, json=json)
        return
    if from_:
        if not undo:
            _show_list(from_, ask=not yes, json=json)
        answer = home.ask(publishing.take_hidden, requests.TakeHiddenRequest(participant=from_, undo=undo))
    else:
        answer = home.ask(publishing.hide, requests.HideRequest(what=what, words=words, reason=reason, undo=undo))
    if json:
        print_json(answer)
    elif from_:
        state = "hidden no longer" if undo else "hidden"
        say(f"{counted(answer.changed, 'thing')} of that list {'are' if answer.changed != 1 else 'is'} {state}")
        say("→ autoresearch network hidden" if undo else f"→ autoresearch network hide --from {from_} --undo")
    else:
        _report(answer)


def _report(answer: HideAnswer) -> None:
    first = answer.things[0]
    name = f"“{first.thing}”" if first.what == "words" else one_line(first.name or first.thing, 80)
    state = "hidden no longer" if answer.undo else "hidden" if answer.changed else "hidden, as before"
    say(f"{first.what} {name}: {state}, with {counted(first.records, 'record')} of this log")
    if not answer.undo:
        say(f"→ {unhiding(first)}, autoresearch network hidden")


def _show_list(participant: str, *, ask: bool, json: bool) -> None:
    """Say what a list has before it is taken over; a person at a terminal is asked."""
    answer = home.ask(questions.hidden_list, requests.HiddenListOf(participant=participant))
    if json:
        return
    when = age(answer.time_ms, home.now_ms())
    say(f"the list of {answer.participant.short}, {when}, note {short(answer.note)}: “{one_line(answer.text, 120)}”")
    print_list(HIDDEN_COLUMNS, answer.hidden, now_ms=home.now_ms())
    if answer.total > len(answer.hidden):
        say(f"and {answer.total - len(answer.hidden)} more")
    if answer.left_out:
        say(f"{counted(answer.left_out, 'thing')} of it would hide you or what you wrote: left out")
    if ask and sys.stdin.isatty():
        confirm(f"Hide {counted(answer.total, 'thing')}?")


def _share(text: str, *, json: bool) -> None:
    answer = home.ask(publishing.share_hidden, requests.ShareHiddenRequest(text=text))
    if json:
        print_json(answer)
        return
    say(f"{short(answer.note)} is published: {counted(answer.things, 'thing')} that you hide, for all to read")
    if answer.left_out:
        say(f"{answer.left_out} older ones are left out: a list has no more room")
    say(f"→ others: autoresearch network hide --from YOUR_KEY; you: autoresearch run withdraw {short(answer.note)}")


@app.command(
    "network hidden",
    ("autoresearch network hidden", "all that is hidden here, the newest first"),
    ("autoresearch network hidden --of 3fa9c2d1", "the newest list of another participant"),
    ("autoresearch network hidden --json", "the same for a program"),
    see="network hide, show",
)
def hidden(
    *,
    of: Annotated[str, typer.Option("--of", metavar="PARTICIPANT", help="What another participant's list has.")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100_000, help="How many.")] = 50,
) -> Answered:
    """What is hidden on this machine, and how many records that are here it hides."""
    if of:
        listing = home.ask(questions.hidden_list, requests.HiddenListOf(participant=of, limit=limit))
        yield listing
        print_list(HIDDEN_COLUMNS, listing.hidden, now_ms=home.now_ms())
        say(f"{counted(listing.total, 'thing')} in note {short(listing.note)} → autoresearch network hide --from {of}")
        return
    answer = home.ask(questions.hidden, requests.HiddenOf(limit=limit))
    yield answer
    with paged():
        print_list(HIDDEN_COLUMNS, answer.hidden, now_ms=home.now_ms())
    if not answer.total:
        say("→ nothing is hidden: autoresearch network hide WHAT")
        return
    say(f"{counted(answer.total, 'thing')} hidden, with {counted(answer.records, 'record')}")
    say("→ autoresearch network hide WHAT --undo")
