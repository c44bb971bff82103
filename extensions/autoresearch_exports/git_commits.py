"""Runs as git commits: their order, what each says and holds, its note. Pure.

The note has what can change about a run: its state, what others measured, its participant.

A commit follows from the records alone, so all nodes make the same one. Its text therefore must not depend on the
version of Python and its Unicode tables: the harmful characters (those that steer a terminal, turn the direction of
writing or can't be seen) are a fixed list.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from autoresearch.ask.runs.telling import changes, headline
from autoresearch.errors import UsageError
from autoresearch.judging.states import Judgement
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.task.program import ENTRY, split_program
from autoresearch.text import INSTEAD
from autoresearch.words import RunStatus

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def line(text: str) -> str:
    """Text as one line with single spaces."""
    return re.sub(" +", " ", _harmless(text).replace("\n", " ")).strip(" ")


def lines(text: str) -> str:
    """Text with its lines, none of which ends in spaces, and no empty lines around it."""
    return "\n".join(each.rstrip(" ") for each in _harmless(text).split("\n")).strip("\n")


def _harmless(text: str) -> str:
    return _HARMFUL.sub(INSTEAD, text.replace("\r\n", "\n").replace("\t", " "))


Loaded = TypeVar("Loaded")


def parents_first(
    parents: Mapping[bytes, bytes | None], done: Container[bytes], load: Callable[[bytes], Loaded | None]
) -> Iterator[tuple[bytes, Loaded]]:
    """Runs with what ``load`` gives for them, each after its parent.

    ``parents`` has the parent of each run that is to come, None for one that has none. Left out are a run for which
    ``load`` gives None, a run whose parent is neither to come nor ``done``, and all that descend from them.
    """
    children: defaultdict[bytes, list[bytes]] = defaultdict(list)
    ready: deque[bytes] = deque()
    for run, parent in parents.items():
        if parent is None or parent in done:
            ready.append(run)
        else:
            children[parent].append(run)
    while ready:
        run = ready.popleft()
        loaded = load(run)
        if loaded is not None:
            yield run, loaded
            ready.extend(children.pop(run, ()))


Files = Mapping[str, bytes]
# A task's definition names no time and no author.
TASK_AUTHOR = "autoresearch <task@autoresearch.invalid>"
TASK_SECONDS = 0
# A record without a title gets one.
_UNTITLED = "Run {}"
_SEARCH = "search"
_OWN_SIGNS = str.maketrans("", "", "→−…")


class Commit(NamedTuple):
    """Author as git writes it, time in Unix seconds, message, files by name."""

    author: str
    seconds: int
    message: str
    files: Files


def program_files(source: bytes) -> Files:
    """The files of a program, by name; what is no program's text is one file."""
    try:
        return {name: content.encode() for name, content in split_program(source.decode()).items()}
    except (UnicodeDecodeError, UsageError):
        return {ENTRY: source}


def task_commit(name: str, digest: bytes, files: Files) -> Commit:
    """The first commit: the fixed files, before any run."""
    return Commit(TASK_AUTHOR, TASK_SECONDS, f"Task {name}\n\nTask: {digest.hex()}\n", files)


def run_commit(run: Record, parent: Record | None, source: bytes, task_files: Files) -> Commit:
    """The commit of a run; ``parent`` is the record of its parent run on the same task."""
    return Commit(
        author=author(run.author),
        seconds=run.time // 1000,
        message=message(run, parent),
        files={**program_files(source), **task_files},
    )


def author(device: bytes) -> str:
    """A device key as an author. It has the key, because names change."""
    return f"{device.hex()[:16]} <{address(device)}>"


def address(device: bytes) -> str:
    """The address of a device key in commits; nobody can write to it."""
    return f"{device.hex()}@autoresearch.invalid"


def message(run: Record, parent: Record | None) -> str:
    """Headline or title, hypothesis, and trailers with what the record fixes for ever."""
    body = run.body
    assert isinstance(body, Run)
    title = _headline(body, parent) or line(body.title) or _UNTITLED.format(short_id(run.id))
    hypothesis = lines(body.hypothesis)
    paragraph = "" if hypothesis in ("", title) else f"{hypothesis}\n\n"
    trailers = "".join(f"{name}: {text}\n" for name, text in _trailers(run, body, parent).items() if text)
    return f"{title}\n\n{paragraph}{trailers}"


def _headline(body: Run, parent: Record | None) -> str:
    """What a run of the search changed; empty where the two records alone do not say it, or say it in rare letters.

    The ranges of the task's program and earlier comparisons say more, but another version may read them otherwise.
    """
    before, by = parent.body if parent else None, body.proposer
    if by is None or by.name != _SEARCH or not isinstance(before, Run) or before.base != body.base:
        return ""
    changed = changes(before.genome, body.genome, {}, {})
    text = headline(changed, replicate=body.replicate, baseline=False, title="")
    return text if (changed or body.replicate) and text.translate(_OWN_SIGNS).isascii() else ""


def _trailers(run: Record, body: Run, parent: Record | None) -> dict[str, str]:
    before = parent.body.value if parent and isinstance(parent.body, Run) else None
    failed = body.status != RunStatus.OK
    return {
        "Reported": "" if body.value is None else f"{body.value:.8g}",
        "Change-reported": "" if body.value is None or before is None else f"{body.value - before:+.6g}",
        "Status": line(body.status) if failed else "",
        "Reason": line(body.reason) if failed else "",
        "Seed": str(body.seed),
        "Replicate": str(body.replicate),
        "Proposer": line(f"{body.proposer.name} {body.proposer.version}") if body.proposer else "",
        "Hardware": line(body.device),
        "Duration": f"{body.duration_ms / 1000:.1f} s" if body.duration_ms else "",
        "Record": format_id(run.id),
    }


def note(judgement: Judgement, margin: float | None, who: ParticipantView, *, withdrawn: bool) -> str:
    """The note of a run, a line for each thing. ``margin`` is half of the 95 % interval of the verified value."""
    rows = {
        "State": judgement.state.value,
        "Verified": _verified(judgement, margin),
        "Gain": _gain(judgement),
        "Participant": person(who),
        "Withdrawn": "yes" if withdrawn else "",
    }
    return "".join(f"{name}: {text}\n" for name, text in rows.items() if text)


def person(who: ParticipantView) -> str:
    """A participant as the commands show it: the key first, because anybody can choose any name."""
    return f"{who.short} “{who.name}”" if who.name else who.short


def mailmap(devices: Iterable[tuple[bytes, ParticipantView]]) -> str:
    """Git's table from the keys in commits to participants, one line a device."""
    return "".join(f"{_plain(person(who))} <{address(device)}>\n" for device, who in devices)


def blob_id(text: str) -> str:
    """The id that git gives to a file with this text."""
    content = text.encode()
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def _gain(judgement: Judgement) -> str:
    if judgement.improvement is None:
        return ""
    error = "" if judgement.improvement_margin is None else f" ± {judgement.improvement_margin:.2g}"
    return f"{judgement.improvement:+.6g}{error}"


def _verified(judgement: Judgement, margin: float | None) -> str:
    if judgement.value is None:
        return ""
    error = "" if margin is None else f" ± {margin:.2g}"
    return f"{judgement.value:.6g}{error} by {judgement.voters} verifier{'' if judgement.voters == 1 else 's'}"


def _plain(name: str) -> str:
    """A name without what separates names from addresses in the table."""
    return name.translate({ord(sign): None for sign in "<>"})
