"""Structural patches for the shipped ``train.py``: known ideas of the field, as SEARCH/REPLACE edits.

A patch is offered only where all its search texts occur exactly once, so none is offered for a program that
another hand rewrote there. Patches are applied in the order of their names; every two of them fit together.
"""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.proposers.edits import Block, EditError, apply_blocks
from autoresearch.proposers.patch_texts import PATCHES, Patch

__all__ = ["PATCHES", "Patch", "apply", "offered"]

# The harness of the shipped task: a program without it has a text of a patch in it by chance.
_HARNESS = "prepare.Budget()"


def offered(source: str) -> list[str]:
    """The names of the patches that apply to this source and are not in it already, sorted."""
    if _HARNESS not in source:
        return []
    return [name for name in sorted(PATCHES) if _applies(source, PATCHES[name].blocks)]


def apply(source: str, names: Collection[str]) -> str:
    """The source with these patches.

    Raises:
        EditError: there is no such patch, or one does not apply.
    """
    for name in sorted(names):
        if name not in PATCHES:
            raise EditError(f"there is no patch {name}")
        source = apply_blocks(source, PATCHES[name].blocks)
    return source


def _applies(source: str, blocks: tuple[Block, ...]) -> bool:
    if all(block.replace in source for block in blocks):
        return False
    try:
        apply_blocks(source, blocks)
    except EditError:
        return False
    return True
