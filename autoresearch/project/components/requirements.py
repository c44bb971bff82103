"""The Python packages that a project needs: asked for in ``requirements.in``, locked in ``requirements.txt``.

A line that an installed component asks for ends with its key, as ``numpy>=2  # policy.dqn``; others are the person's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autoresearch.errors import Refused, UsageError
from autoresearch.project.model import Project
from autoresearch.task.needs import LOCK, LOOSE, Package, parse_lock, parse_wanted, write_lock

_KEY = re.compile(r"\s#\s(\S+)$")
_HEADER = "# Locked for {loose} {digest}. After an edit of that file: autoresearch install\n"


def required(project: Project, *, besides: str = "") -> list[str]:
    """What the project asks for, without what the component of the key ``besides`` does.

    Raises:
        UsageError: a line is no package's name with or without versions.
    """
    return list(dict.fromkeys(line for line, key in required_by(project) if not besides or key != besides))


def required_by(project: Project) -> list[tuple[str, str]]:
    """Each line of what the project asks for, with the key of the component that does; empty for the person's own.

    Raises:
        UsageError: a line is no package's name with or without versions.
    """
    text = _text(project.folder / LOOSE)
    parse_wanted(text, LOOSE)  # an error names the line of the file
    lines = text.splitlines()
    return [(wanted, _key(line)) for line in lines for wanted in parse_wanted(line, LOOSE)]


def locked_packages(project: Project) -> list[Package]:
    """The packages that fit what the project asks for.

    Raises:
        UsageError: they are not locked, or not for the list as it is now.
    """
    if is_unlocked(project):
        raise UsageError(f"{LOCK} does not fit {LOOSE}", hint="autoresearch install locks it anew")
    return parse_lock(_text(project.folder / LOCK), LOCK)


def is_unlocked(project: Project) -> bool:
    """Whether ``requirements.in`` is another one than that which ``requirements.txt`` was locked for."""
    if not required(project):
        return False
    head, _, _ = _text(project.folder / LOCK).partition("\n")
    return f"{head}\n" != _header(_text(project.folder / LOOSE))


def refuse_other_list(project: Project) -> None:
    """Raises Refused where ``requirements.txt`` is the person's own list, which nothing is written over."""
    text = _text(project.folder / LOCK)
    if text and not text.startswith(_HEADER.partition("{")[0]):
        raise Refused(
            f"{project.folder / LOCK} is a list of your own, and the packages of components are locked in that file",
            hint=f"rename it to {LOOSE}, then: autoresearch install",
        )


def note_locked(project: Project, packages: Sequence[Package]) -> None:
    """Write the packages that fit ``requirements.in``.

    Raises:
        Refused: ``requirements.txt`` is a list of the person's own.
    """
    refuse_other_list(project)
    _write(project.folder / LOCK, _header(_text(project.folder / LOOSE)) + write_lock(list(packages)))


def package_files(lines: Mapping[str, str], packages: Sequence[Package]) -> dict[str, bytes]:
    """``requirements.in`` and ``requirements.txt``, by their names: lines with who asks for each, packages that fit."""
    loose = "".join(f"{line}  # {key}\n" if key else f"{line}\n" for line, key in lines.items())
    return {LOOSE: loose.encode(), LOCK: (_header(loose) + write_lock(list(packages))).encode()}


def isolated_packages(project: Project) -> dict[str, list[Package]]:
    """The locked packages of each component that has an environment of its own, by its key.

    Raises:
        UsageError: a list is missing or damaged.
    """
    found: dict[str, list[Package]] = {}
    for each in project.all():
        if each.pins.get("isolated") == "yes":
            path = _isolated(project, each.key)
            found[each.key] = parse_lock(_text(path), path.name)
            if not found[each.key]:
                hint = f"autoresearch install {each.type} {each.name} --isolated"
                raise UsageError(f"{each.origin}: the packages of {each.key} are not locked", hint=hint)
    return found


def note_isolated(project: Project, key: str, packages: Sequence[Package]) -> None:
    """Write the packages of a component's own environment; none where it has none."""
    path = _isolated(project, key)
    if packages:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, write_lock(list(packages)))
    else:
        path.unlink(missing_ok=True)


def _isolated(project: Project, key: str) -> Path:
    return project.hidden / "isolated" / f"{key}.lock"


def note_required(project: Project, key: str, lines: Sequence[str], packages: Sequence[Package] | None) -> None:
    """Write what a component asks for, and the packages that fit the whole list; None: those of before fit, too.

    Raises:
        Refused: ``requirements.txt`` is a list of the person's own.
    """
    before = _text(project.folder / LOOSE)
    kept = [line for line in before.splitlines() if _key(line) != key]
    text = "".join(f"{line}\n" for line in [*kept, *(f"{line}  # {key}" for line in lines)])
    if text == before and packages is None:
        return
    refuse_other_list(project)
    if not parse_wanted(text, LOOSE):
        for name in (LOOSE, LOCK):
            (project.folder / name).unlink(missing_ok=True)
        return
    fitting = parse_lock(_text(project.folder / LOCK), LOCK) if packages is None else list(packages)
    _write(project.folder / LOCK, _header(text) + write_lock(fitting))
    _write(project.folder / LOOSE, text)


def _key(line: str) -> str:
    match = _KEY.search(line)
    return match[1] if match else ""


def _header(loose: str) -> str:
    digest = hashlib.sha256("\n".join(parse_wanted(loose, LOOSE)).encode()).hexdigest()[:16]
    return _HEADER.format(loose=LOOSE, digest=digest)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {error}", hint="check the file") from None


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)
