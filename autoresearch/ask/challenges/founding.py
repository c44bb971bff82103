"""Founding a contest: a network, its task and the signed word on its end, all or nothing. Also another end for it."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Literal

import msgspec

from autoresearch.ask.acts.attack_reports import publish_report
from autoresearch.ask.acts.joining import Membership, NamedNetwork, join, own_root
from autoresearch.ask.acts.networks import HomeNetwork, found_network, home_networks
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.attacks import attacks_answer
from autoresearch.ask.challenges.board import challenge_here
from autoresearch.ask.challenges.rules import HTML, PageSection, as_html, as_markdown, rules_of
from autoresearch.ask.lookup import task_of
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.log import Log
from autoresearch.paths import Paths, write_refusals, write_whole
from autoresearch.record.kinds import TITLE_CHARACTERS, Contest
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.record.record import Record
from autoresearch.task.folders import is_taken
from autoresearch.task.model import Task
from autoresearch.text import UNIT_MS, is_harmful, moment, parse_duration
from autoresearch.trust import manifest as manifests
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust

ContestKind = Literal["lab", "friends", "class", "open"]
# A class is a network of friends with an invite of its own for each.
PRESETS: dict[ContestKind, manifests.PresetName] = {
    "lab": "lab",
    "friends": "friends",
    "class": "friends",
    "open": "open",
}
# What a participant types, before its invite.
JOIN_COMMAND = "autoresearch join"
_PAGE_CHARACTERS = 100_000
MARKDOWN = "rules.md"
_LONGEST_MS = 3650 * UNIT_MS["d"]
_NO_NAME = re.compile(r"[^0-9A-Za-z._-]+")
_NAME_CHARACTERS = 40


class ContestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of a new contest. ``runs`` is how many runs of each participant count, 0: all.

    ``attacked``: the report of attacks in the task's folder is published beside the task.
    """

    task: Task
    kind: ContestKind
    ends_ms: int
    name: str = ""
    title: str = ""
    runs: int = 0
    attestors: tuple[bytes, ...] = ()
    needed: int = Trust().needed
    attacked: bool = False


def parse_end(text: str, now_ms: int) -> int:
    """Unix milliseconds of an end: a length of time from now, ``7d``, or a date, ``2026-12-24`` or with a time of day.

    A date alone means its last moment. What names no time zone is the local time of this machine.

    Raises:
        UsageError: it is neither, has passed, or is more than ten years away.
    """
    hint = "write a length of time like 7d or 36h, or a date like 2026-12-24 or 2026-12-24T18:00"
    if re.match(r"\d{4}-", text.strip()):
        try:
            end = datetime.fromisoformat(text.strip())
        except ValueError:
            raise UsageError(f"{text[:80]!r} is no date", hint=hint) from None
        if len(text.strip()) == len("2026-12-24"):
            end = datetime.combine(end.date(), time(23, 59, 59))
        try:
            ends_ms = int(end.timestamp() * 1000)
        except (OverflowError, ValueError):
            raise UsageError(f"{text[:80]!r} is no date that a clock here can show", hint=hint) from None
    else:
        try:
            ends_ms = now_ms + parse_duration(text)
        except UsageError as error:
            raise UsageError(str(error), hint=hint) from error
    if not now_ms < ends_ms <= now_ms + _LONGEST_MS:
        when = "has passed" if ends_ms <= now_ms else "is more than ten years away"
        raise UsageError(f"{text[:80]!r} {when}", hint=hint)
    return ends_ms


def check_plan(plan: ContestPlan, folder: Path) -> None:
    """Refuse, before anything is written, a plan that makes no contest; ``folder`` is where its page goes.

    Raises:
        UsageError: a name or a number is out of bounds, an open contest names too few attestors.
        Refused: the task pins no baseline, or the folder holds something.
    """
    if not plan.task.is_pinned:
        sentence = f"{plan.task.folder}/task.toml pins no baseline, so that an edit would be another task"
        raise Refused(sentence, hint=f"autoresearch task pin {plan.task.folder}")
    if len(plan.title) > TITLE_CHARACTERS or any(map(is_harmful, plan.title)):
        raise UsageError(f"a title has at most {TITLE_CHARACTERS} characters, in one line", hint="--title TEXT")
    if plan.kind == "open" and len(plan.attestors) < plan.needed:
        sentence = f"an open contest takes {plan.needed} attestors of mailboxes, and {len(plan.attestors)} are named"
        raise UsageError(sentence, hint="--attestor KEY for each; or --for class, with one-time codes in place of mail")
    if plan.kind != "open" and plan.attestors:
        raise UsageError("attestors go with --for open", hint="leave out --attestor: who has your invite counts")
    if is_taken(folder):
        raise Refused(f"{folder} holds something already", hint="name a new folder for the page of rules: -o DIR")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{folder.parent} is no folder that can be written", hint="make it, or name another: -o DIR")
    manifests.new_manifest(_name(plan), b"", manifests.PRESETS[PRESETS[plan.kind]], Trust())


def _name(plan: ContestPlan) -> str:
    """The name of the network: the one that was typed, else what of the task's name may be one."""
    return plan.name or _NO_NAME.sub("-", plan.task.name).strip(".-_")[:_NAME_CHARACTERS] or "contest"


def unfinished_contest(paths: Paths, task: Task) -> HomeNetwork | None:
    """The network of a contest on this task whose founding was interrupted before its page of rules was written."""
    begun = (network for network in home_networks(paths) if unwritten_page(network.paths).exists())
    return next((network for network in begun if network.manifest.tasks == (task.digest,)), None)


def unwritten_page(paths: Paths) -> Path:
    """A file that lies beside a network from its founding as a contest until the page of rules is written."""
    return paths.manifest.with_name("contest-without-page")


def found_contest(paths: Paths, plan: ContestPlan, now_ms: int, *, signer: KeyPair | None = None) -> Membership:
    """Make the network of a contest, publish its task and its end in it, and make it the network in use.

    ``signer`` is the root key where it lies here under a passphrase: it lets this device speak for it.

    A process that is killed leaves the home as it was, or with the whole network. No daemon may run meanwhile. A
    contest on this task that has no page yet is taken up as it is.

    Raises:
        Refused: something can't be written, or this device may not sign.
    """
    if begun := unfinished_contest(paths, plan.task):
        return join(paths, NamedNetwork(begun.manifest, by_word=False))
    root = own_root(paths)
    manifest = manifests.new_manifest(
        _name(plan),
        secrets.token_bytes(manifests.NONCE_BYTES),
        manifests.PRESETS[PRESETS[plan.kind]],
        Trust(frozenset(plan.attestors), plan.needed, founders=frozenset({root})),
        tasks=[plan.task.digest],
    )

    def fill(place: Paths) -> None:
        with Notebook(place) as notebook:
            if signer is not None:
                notebook.delegate(signer, now_ms)
            notebook.publish_identity(now_ms)
            notebook.publish_task(plan.task, now_ms)
            if plan.attacked:
                publish_report(notebook, plan.task, now_ms)
            body = Contest(task=plan.task.digest, title=plan.title, begins=now_ms, ends=plan.ends_ms, runs=plan.runs)
            publish(notebook, body, now_ms)
        write_whole(unwritten_page(place), "")

    found_network(paths, manifest, fill)
    return join(paths, NamedNetwork(manifest, by_word=False))


def publish(notebook: Notebook, body: Contest, now_ms: int, *, links: Sequence[bytes] = ()) -> Record:
    """Publish a contest with its page of rules. Raises Refused where this participant is no founder."""
    page = as_markdown(rules_for(notebook.log, body))
    rules = notebook.blobs.put(page.encode())
    return notebook.publish_challenge(msgspec.structs.replace(body, rules=rules), now_ms, links=links)


def rules_for(log: Log, body: Contest) -> list[PageSection]:
    """The page of rules of a contest. Raises NotFound where its task is not here, or is none that can be read."""
    row = log.tasks.find(body.task)
    task = log.records.get(row.id).body_as(TaskBody) if row else None
    try:
        if task is not None:
            published = task_of(log, body.task)
            attacked = attacks_answer(log, published).sentence if published else ""
            return rules_of(task.name, task.summary, task.definition, body, log.network, attacked=attacked)
    except msgspec.ValidationError:
        pass
    raise NotFound(
        "the task of this contest is not here in a form that this version reads", hint="autoresearch task list"
    )


def joining_line(folder: Path) -> str:
    """The line to type to join, as an earlier page in a folder has it. Raises NotFound where there is none."""
    try:
        text = (folder / MARKDOWN).read_text("utf-8")[:_PAGE_CHARACTERS]
    except (OSError, UnicodeDecodeError):
        text = ""
    match = re.search(rf"^\$ ({JOIN_COMMAND} \S+)$", text, re.MULTILINE)
    if match is None:
        raise NotFound(f"{folder / MARKDOWN} is no page of rules", hint="name the folder that challenge new wrote")
    return match[1]


def set_end(notebook: Notebook, ends_ms: int, now_ms: int) -> Record:
    """As a founder, give the contest of this network another end; the page of rules is written anew.

    Raises:
        NotFound: there is no contest.
        Refused: this participant is no founder.
        UsageError: the end does not lie behind the begin; or it is to come, and earlier than the end before.
    """
    before, _ = challenge_here(notebook.log)
    body = before.body_as(Contest)
    if ends_ms <= body.begins:
        sentence = f"the contest begins {moment(body.begins)}, so it can't end {moment(ends_ms)}"
        raise UsageError(sentence, hint="give a later end")
    if now_ms < ends_ms < body.ends:
        sentence = f"the contest ends {moment(body.ends)}, and {moment(ends_ms)} is earlier"
        raise UsageError(sentence, hint="give a later end; or end it at once: autoresearch challenge close --now")
    return publish(notebook, msgspec.structs.replace(body, ends=ends_ms), now_ms, links=[before.id])


def write_page(folder: Path, rules: Sequence[PageSection], join_section: PageSection) -> list[Path]:
    """Write the page of rules as Markdown and as HTML; each file is whole or as it was. Raises Refused."""
    sections = [*rules, join_section]
    files = {folder / MARKDOWN: as_markdown(sections), folder / HTML: as_html(sections)}
    with write_refusals(folder, "check its permissions"):
        for path, text in files.items():
            write_whole(path, text)
    return list(files)
