"""Components of the log as what a project installs. Other participants' code needs a person's word first."""

from __future__ import annotations

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.projects import Offer
from autoresearch.records import format_id
from autoresearch.registry import checked_release, resolve
from autoresearch_cli.reading import fetch_blob, open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import say


def offer_from_log(kind: str, name: str, version: str, *, trust: bool, pinned: bytes | None = None) -> Offer | None:
    """The component that a name means among the releases of the log; None where there is none of this name.

    ``pinned`` is the release that a project names. Runs of a project have no sandbox yet, so the code of another
    participant is taken with ``trust`` alone.

    Raises:
        AmbiguousName: several publishers have that name.
        Refused: it is another participant's and there is no ``trust``, or its files are not what its record says.
        CannotRunHere: its requirements do not fit.
        NotFound: its files are on no node that answers.
    """
    with open_notebook() as notebook:
        log, blobs = notebook.log, notebook.blobs
        try:
            choice = resolve(log, kind, f"{name}=={version}" if version else name, pinned=pinned, me=notebook.me)
        except NotFound:
            return None
        release = choice.release.row.id
        shown = short(format_id(release))
        if not (choice.release.own or trust):
            raise Refused(
                f"{kind} {name} ({shown}) is another participant's, and runs of a project have no sandbox yet",
                hint=f"read it first: autoresearch show {shown}; --trust installs it",
            )
        checked = checked_release(log, blobs, release, fetch=fetch_blob)
    for warning in choice.warnings:
        say(warning)
    about = checked.component
    if not about.metadata.class_name:
        raise UsageError(f"the release {shown} names no class", hint="ask its publisher for class_name")
    if checked.requirements:
        say(f"{about.name} needs {', '.join(checked.requirements)}; they are not installed with it")
    return Offer(
        type=kind,
        name=about.name,
        class_name=about.metadata.class_name,
        files={file.path: file.content for file in checked.files},
        description=about.metadata.description or about.summary,
        pins={
            "source": "log",
            "release": format_id(release),
            "version": about.version,
            "commit": about.metadata.commit,
            "tree": about.metadata.tree,
        },
    )
