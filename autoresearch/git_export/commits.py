"""What a commit says and holds. Pure: it follows from the records alone, so all nodes make the same commit.

Nothing that can change later stands here, such as a participant's name or the state of a run: see ``notes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.git_export.text import line, lines
from autoresearch.records import Record, Run, format_id, short_id
from autoresearch.tasks import ENTRY, split_program
from autoresearch.telling import changes, headline
from autoresearch.words import RunStatus

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
    said = "" if hypothesis in ("", title) else f"{hypothesis}\n\n"
    trailers = "".join(f"{name}: {text}\n" for name, text in _trailers(run, body, parent).items() if text)
    return f"{title}\n\n{said}{trailers}"


def _headline(body: Run, parent: Record | None) -> str:
    """What a run of the search changed; empty where the two records alone do not say it, or say it in rare letters.

    The ranges of the task's program and earlier comparisons say more, but another version may read them otherwise.
    """
    before, by = parent.body if parent else None, body.proposer
    if by is None or by.name != _SEARCH or not isinstance(before, Run) or before.base != body.base:
        return ""
    told = changes(before.genome, body.genome, {}, {})
    said = headline(told, replicate=body.replicate, baseline=False, title="")
    return said if (told or body.replicate) and said.translate(_OWN_SIGNS).isascii() else ""


def _trailers(run: Record, body: Run, parent: Record | None) -> dict[str, str]:
    before = parent.body.value if parent and isinstance(parent.body, Run) else None
    failed = body.status != RunStatus.OK
    return {
        "Value": "" if body.value is None else f"{body.value:.8g}",
        "Delta": "" if body.value is None or before is None else f"{body.value - before:+.6g}",
        "Status": line(body.status) if failed else "",
        "Reason": line(body.reason) if failed else "",
        "Seed": str(body.seed),
        "Replicate": str(body.replicate),
        "Proposer": line(f"{body.proposer.name} {body.proposer.version}") if body.proposer else "",
        "Hardware": line(body.device),
        "Duration": f"{body.duration_ms / 1000:.1f} s" if body.duration_ms else "",
        "Record": format_id(run.id),
    }
