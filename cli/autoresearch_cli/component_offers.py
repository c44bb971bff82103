"""Components of the log as what a project installs. Other participants' code needs a sandbox, or a person's word."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.projects import Offer, Origin
from autoresearch.records import format_id
from autoresearch.registry import checked_release, resolve
from autoresearch.running import Level, detect_level
from autoresearch_cli.reading import fetch_blob, open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import say


def offer_from_log(
    kind: str,
    name: str,
    version: str,
    *,
    trust: bool,
    beside: Sequence[str] = (),
    isolated: bool = False,
    pinned: bytes | None = None,
) -> Offer | None:
    """The component that a name means among the releases of the log; None where there is none of this name.

    ``pinned`` is the release that a project names. The code of another participant runs in the sandbox, or with
    ``trust`` without one. Where no sandbox holds it is taken with ``trust`` alone. Its packages have to fit the lines
    ``beside``, which the project asks for besides; ``isolated``: it gets an environment of its own.

    Raises:
        AmbiguousName: several publishers have that name.
        Refused: it is another participant's and there is neither sandbox nor ``trust``, or its files are not what its
            record says.
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
        origin: Origin = "own" if choice.release.own else "trusted" if trust else "foreign"
        if origin == "foreign" and detect_level()[0] < Level.LANDLOCK:
            raise Refused(
                f"{kind} {name} ({shown}) is another participant's, and this machine has no sandbox that holds",
                hint=f"install bubblewrap; or read it (autoresearch show {shown}) and use --trust",
            )
        checked = checked_release(log, blobs, release, beside=() if isolated else beside, fetch=fetch_blob)
    for warning in choice.warnings:
        say(warning)
    about = checked.component
    if not about.metadata.class_name:
        raise UsageError(f"the release {shown} names no class", hint="ask its publisher for class_name")
    if isolated and not checked.packages:
        raise UsageError(
            f"{about.name} asks for no Python packages, so it needs no environment of its own",
            hint=f"autoresearch install {kind} {name}",
        )
    if origin == "foreign":
        say(f"{about.name} is another participant's: it runs in the sandbox")
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
        origin=origin,
        requirements=list(checked.requirements),
        packages=list(checked.packages),
        isolated=isolated,
    )
