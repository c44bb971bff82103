"""Components and releases as lines."""

from __future__ import annotations

from autoresearch.api import ComponentView, ReleaseView, SearchAnswer
from autoresearch.figures import lately, moment, size
from autoresearch.sanitise import one_line
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.names import person
from autoresearch_cli.rendering.output import is_rich, print_rows, print_table

SUMMARY_CHARACTERS = 240
# `show ID --json` has all of them.
VERSIONS_SHOWN = 8
EQUIVOCAL = "its publisher signed two different releases of this version: neither is taken by its name"


def print_components(answer: SearchAnswer, *, now_ms: int) -> None:
    """Components, the best fit first; whole for a program."""
    if not is_rich():
        print_rows(
            (
                *(one.id, one.type, one.name, one.version, one.publisher.key, one.publisher.name, standing(one)),
                *(moment(one.time_ms), one.releases, one.summary),
            )
            for one in answer.components
        )
        return
    rows = [
        (
            one.type,
            one.name,
            one.version,
            short(one.id),
            person(one.publisher),
            lately(one.time_ms, now_ms),
            standing(one),
            one_line(one.summary, SUMMARY_CHARACTERS),
        )
        for one in answer.components
    ]
    columns = ("type", "name", "version", "id", "by", "when", "note", "what")
    print_table(columns, rows, optional=("when", "by"))


def standing(one: ComponentView) -> str:
    """What a person should know before installing it; empty where all is well."""
    marks = (
        "yours" if one.own else "",
        "" if one.attested or one.own else "unattested",
        "yanked" if one.yanked else "",
        "two contents" if one.equivocal else "",
    )
    return ", ".join(filter(None, marks))


def release_lines(release: ReleaseView) -> list[tuple[str, str]]:
    """What a release of a component says, and what its publisher says of it."""
    versions = [
        f"{one.version} {short(one.id)}{' yanked' if one.yanked else ''}{' two contents' if one.equivocal else ''}"
        for one in release.versions
    ]
    more = len(versions) - VERSIONS_SHOWN
    known = [
        ("component", f"{release.type} {release.name} {release.version}"),
        ("about", one_line(release.description or release.summary, SUMMARY_CHARACTERS)),
        ("class", f"{release.class_name} in {release.file_path}" if release.class_name else ""),
        ("packages", ", ".join(release.requirements)),
        ("needs", ", ".join(release.needs)),
        ("license", release.license),
        ("git", f"{release.git} at {release.commit}" if release.git else ""),
        ("files", f"{release.tree}, {size(release.bundle_bytes)}"),
        ("versions", ", ".join(versions[:VERSIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")),
    ]
    lines = [(label, text) for label, text in known if text]
    if release.yank:
        why = f": “{release.yank_reason}”" if release.yank_reason else ""
        lines.append(("!", f"its publisher yanked it{why}; it is installed by its id or version alone"))
    if release.equivocal:
        lines.append(("!", EQUIVOCAL))
    if not release.attested:
        lines.append(("!", "its publisher is unattested: its name alone does not install it"))
    return lines
