"""What can change about a run, as the text of its note: its state, what others measured, its participant. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from autoresearch.api import ParticipantView
from autoresearch.git_export.commits import address
from autoresearch.verification import Judgement


def note(found: Judgement, margin: float | None, who: ParticipantView, *, withdrawn: bool) -> str:
    """The note of a run, a line for each thing; ``margin`` is half of the 95 % interval of the measured value."""
    rows = {
        "State": found.state.value,
        "Measured": _measured(found, margin),
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


def _measured(found: Judgement, margin: float | None) -> str:
    if found.value is None:
        return ""
    error = "" if margin is None else f" ± {margin:.2g}"
    return f"{found.value:.6g}{error} by {found.voters} verifier{'' if found.voters == 1 else 's'}"


def _plain(name: str) -> str:
    """A name without what separates names from addresses in the table."""
    return name.translate({ord(sign): None for sign in "<>"})
