"""The branch main of an exported repository and the files beside it: moved only where nobody has changed them."""

from __future__ import annotations

from collections.abc import Collection
from shlex import quote

from autoresearch.errors import Refused
from autoresearch.git_export.repository import MAIN, Repository


def place_main(git: Repository, target: str, made: Collection[str], before: str | None) -> None:
    """Move main to a commit, and its files where it is checked out.

    ``made`` are the commits that export made. ``before`` is where main was going the last time: that move may have been
    interrupted, with some files there already.

    Raises:
        Refused: main has somebody's own commits, or a file has edits. Both stay as they are.
    """
    at, place = git.references(MAIN).get(MAIN), quote(str(git.folder))
    if at is not None and at not in made:
        hint = f"git -C {place} branch -m main mine"
        raise Refused(f"main in {git.folder} stays where it is: it has commits that export did not make", hint=hint)
    if at == target:
        return
    if git.is_bare or git.head() != MAIN:
        git.run("update-ref", MAIN, target)
        return
    is_first = not (git.git_dir / "index").exists()
    changed = set() if is_first else _changed(git, at or target) | _changed(git, "--cached", at or target)
    # What an interrupted move wrote is as one of the two commits has it.
    edited = changed and changed & _changed(git, target) & (_changed(git, before) if before else changed)
    if edited:
        hint = f"git -C {place} switch -c mine"
        raise Refused(f"main in {git.folder} stays where it is: {min(edited)} has edits", hint=hint)
    # Unlike --hard, --keep overwrites no file that git does not know.
    git.run("reset", "--quiet", "--hard" if changed or at is None else "--keep", target)


def _changed(git: Repository, *against: str) -> set[str]:
    """The files that are not as a commit has them."""
    out = git.run("diff", "--name-only", "--no-ext-diff", "--no-renames", "-z", *against)
    return set(out.split("\0")) - {""}
