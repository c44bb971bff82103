"""Which runs of a project are published: those that came by ``get`` say it themselves, one's own stand in a file."""

from __future__ import annotations

import msgspec
import yaml

from autoresearch.projects.model import Project
from autoresearch.projects.runs.kept import Run, ancestors

PUBLISHED = "published.yaml"


def record_of(project: Project, run: Run) -> str:
    """The id of the record that a run was published as, or came from; empty for none."""
    return run.data.record or _published(project).get(run.id, "")


def published_ancestors(project: Project, run: Run) -> list[str]:
    """The records of the runs that a run went on from, the nearest first. The run itself is left out."""
    known = _published(project)
    records = (above.data.record or known.get(above.id, "") for above in ancestors(project, run))
    return [record for record in records if record]


def remember_published(project: Project, run: Run, record: str) -> None:
    """Note as which record a run was published."""
    file = project.hidden / PUBLISHED
    fresh = file.with_name(f"{PUBLISHED}.new")
    fresh.write_text(yaml.safe_dump({**_published(project), run.id: record}), "utf-8")
    fresh.replace(file)


def _published(project: Project) -> dict[str, str]:
    try:
        found = yaml.safe_load((project.hidden / PUBLISHED).read_bytes())
        return msgspec.convert(found, dict[str, str])
    except (OSError, yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError):
        return {}
