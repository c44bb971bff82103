"""Style sheets and scripts that ship with the pages; nothing is loaded from elsewhere.

``vendor/`` has files of others, unchanged, each with its licence: htmx and its extension for server-sent events
(https://htmx.org, 0BSD), uPlot (https://github.com/leeoniya/uPlot, MIT).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDERS = (Path(__file__).parent / "static", Path(__file__).parent / "vendor")
MEDIA = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
TAG_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class Asset:
    """One file: its content, its media type, and a tag that changes with the content."""

    content: bytes
    media: str
    tag: str


@cache
def _assets() -> dict[str, Asset]:
    return {file.name: _read(file) for folder in FOLDERS for file in sorted(folder.iterdir()) if file.suffix in MEDIA}


def _read(file: Path) -> Asset:
    content = file.read_bytes()
    return Asset(content, MEDIA[file.suffix], hashlib.sha256(content).hexdigest()[:TAG_CHARACTERS])


def asset(name: str) -> Asset | None:
    """The file of that name, or None."""
    return _assets().get(name)


def asset_names() -> list[str]:
    """All of them."""
    return list(_assets())
