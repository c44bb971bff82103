"""The patches of a task: known ideas of its field, as SEARCH/REPLACE edits of its program.

They are data, in ``changes.toml`` beside ``task.toml``. A patch is offered only where all its search texts occur
exactly once, so none is offered for a program that another hand rewrote there. Patches are applied in the order of
their names; every two of them fit together.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.errors import UsageError
from autoresearch.propose.program.edits import Block, EditError, apply_blocks
from autoresearch.task.folders import side_file
from autoresearch.task.loading import CHANGES
from autoresearch.task.model import Task

_Words = Annotated[str, Meta(min_length=1, max_length=280)]


class Patch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One structural idea: what it is called in a genome (``+muon``) and in titles, why it may help, what it edits."""

    name: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,47}\Z")]
    label: Annotated[str, Meta(min_length=1, max_length=40)]
    """Two or three words for the title of a run."""
    title: _Words
    rationale: _Words
    blocks: Annotated[tuple[Block, ...], Meta(min_length=1)] = msgspec.field(name="edit")


class Patches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The patches of a task. ``needs`` is a text without which a program has a text of a patch in it by chance."""

    needs: str = ""
    patches: Annotated[tuple[Patch, ...], Meta(max_length=64)] = msgspec.field(name="patch", default=())

    def find(self, name: str) -> Patch | None:
        """The patch of this name."""
        return next((patch for patch in self.patches if patch.name == name), None)

    def label(self, name: str) -> str:
        """How a title calls a patch: by its label, or by its name where it is none of these."""
        patch = self.find(name)
        return patch.label if patch else name

    def offered(self, source: str) -> list[str]:
        """The names of the patches that apply to this source and are not in it already, sorted."""
        if self.needs not in source:
            return []
        return sorted(patch.name for patch in self.patches if _applies(source, patch.blocks))

    def apply(self, source: str, names: Collection[str]) -> str:
        """The source with these patches.

        Raises:
            EditError: there is no such patch, or one does not apply.
        """
        for name in sorted(names):
            patch = self.find(name)
            if patch is None:
                raise EditError(f"there is no patch {name}")
            source = apply_blocks(source, patch.blocks)
        return source


NO_PATCHES = Patches()


def patches_of(task: Task) -> Patches:
    """The patches of a task, from its folder; none where it has no ``changes.toml``.

    Raises UsageError naming the file and the key where it can't be read.
    """
    return read_patches(side_file(CHANGES, task.definition(), task.folder), f"{task.folder / CHANGES}")


@lru_cache(maxsize=16)
def read_patches(content: bytes, path: str = CHANGES) -> Patches:
    """The patches in a ``changes.toml``; ``path`` names it in errors. Raises UsageError."""
    try:
        patches = msgspec.toml.decode(content, type=Patches)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", hint="correct it there, or move the file away") from error
    names = [patch.name for patch in patches.patches]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{path} has two patches named {double}", hint="rename one of them")
    return patches


def _applies(source: str, blocks: tuple[Block, ...]) -> bool:
    if all(block.replace in source for block in blocks):
        return False
    try:
        apply_blocks(source, blocks)
    except EditError:
        return False
    return True
