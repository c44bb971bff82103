"""Commits, files and notes in the language of git's fast-import. Pure.

Commits are written on branches of their own. Other references move once git has kept everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from autoresearch.git_export.commits import Commit

IMPORT_BRANCH = "refs/autoresearch/import"
NOTES_BRANCH = "refs/autoresearch/notes"
EXPORTER = "autoresearch <export@autoresearch.invalid>"
END = b"done\n"


class Stream:
    """Encodes objects one after the other. Each gets a mark, such as ``:7``, by which later ones name it."""

    def __init__(self) -> None:
        self._last = 0
        self._blobs: dict[bytes, str] = {}

    def blob(self, content: bytes) -> tuple[bytes, str]:
        """The bytes of a file and its mark; no bytes for one that was written before."""
        digest = hashlib.sha256(content).digest()
        if known := self._blobs.get(digest):
            return b"", known
        mark = self._blobs[digest] = self._mark()
        return b"blob\nmark %s\n%s" % (mark.encode(), _data(content)), mark

    def commit(self, commit: Commit, parent: str | None) -> tuple[bytes, str]:
        """The bytes of a commit with its files, and its mark. ``parent`` is a mark or an id."""
        out: list[bytes] = []
        entries: list[str] = []
        for name, content in sorted(commit.files.items()):
            data, blob = self.blob(content)
            out.append(data)
            entries.append(f"M 100644 {blob} {name}\n")
        mark = self._mark()
        out.append(_head(IMPORT_BRANCH, mark, commit.author, commit.seconds, commit.message))
        out.append("".join([f"from {parent}\n" if parent else "", "deleteall\n", *entries, "\n"]).encode())
        return b"".join(out), mark

    def notes(self, texts: Mapping[str, str], parent: str | None, seconds: int) -> tuple[bytes, str]:
        """The bytes of a commit with these notes by mark or id of what they are about, and its mark."""
        out: list[bytes] = []
        entries: list[str] = []
        for about, text in texts.items():
            data, blob = self.blob(text.encode())
            out.append(data)
            entries.append(f"N {blob} {about}\n")
        mark = self._mark()
        out.append(_head(NOTES_BRANCH, mark, EXPORTER, seconds, "States of runs\n"))
        out.append("".join([f"from {parent}\n" if parent else "", *entries, "\n"]).encode())
        return b"".join(out), mark

    def _mark(self) -> str:
        self._last += 1
        return f":{self._last}"


def read_marks(text: str) -> dict[str, str]:
    """The id of each mark, from the file that git writes."""
    return dict(entry.split(" ", 1) for entry in text.splitlines())


def _head(branch: str, mark: str, author: str, seconds: int, message: str) -> bytes:
    who = f"{author} {seconds} +0000"
    head = f"commit {branch}\nmark {mark}\nauthor {who}\ncommitter {who}\n"
    return head.encode() + _data(message.encode())


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
