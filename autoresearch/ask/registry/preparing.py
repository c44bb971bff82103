"""A folder or a file of one's own as a release: which files, which class, which requirements.

Also a whole registry as a file, as AgentOS had it in ``registry.yaml``. Nothing is imported.
"""

from __future__ import annotations

import ast
import configparser
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from autoresearch.ask.registry.git_source import HTTPS, check_url, fetch_files, head_of
from autoresearch.ask.registry.installing import read_requirements
from autoresearch.ask.requests import Description, PublishRequest
from autoresearch.beneath import LeadsOut, read_beneath
from autoresearch.errors import CannotRunHere, NotFound, Refused, UsageError
from autoresearch.record.kinds import BlobRef
from autoresearch.record.kinds import Release as ReleaseBody
from autoresearch.task import release
from autoresearch.task.program import form_fault
from autoresearch.task.source import EMPTY, parse_python, python_tree
from autoresearch.text import one_line, read_toml, unreadable

COMPONENT_INI = "component.ini"
REQUIREMENTS = ("requirements.txt", release.PYPROJECT)
_SECTION = "component"
_LISTS = ("needs", "interfaces")
_KEYS = ("type", "name", "version", "description", "class_name", "requirements_path", "license", *_LISTS)
_SKIPPED = ("__pycache__",)


@dataclass(frozen=True, slots=True)
class PreparedRelease:
    """A release that can be published: ``bundle`` are the bytes of its files. ``notes`` are for the publisher."""

    name: str
    version: str
    summary: str
    metadata: release.Metadata
    bundle: bytes
    notes: tuple[str, ...] = field(default=())

    def body(self, bundle: BlobRef) -> ReleaseBody:
        """The body of its record."""
        return ReleaseBody(
            name=self.name, version=self.version, summary=self.summary, bundle=bundle, metadata=self.metadata.plain()
        )


def prepare(place: Path, description: Description) -> PreparedRelease:
    """A folder or one file as a release. Of a git repository the committed files are taken, else all that are visible.

    Raises:
        NotFound: there is no such folder or file.
        UsageError: something is missing or can't be published, or ``component.ini`` says otherwise.
        Refused: the repository has changes that are not committed, or a file that is not allowed.
    """
    if not place.exists():
        raise NotFound(f"there is no {place}", hint="give the folder or the file of a component")
    if place.is_file():
        files, commit, url = (
            [release.File(place.name, _read(place.parent, place.name, release.BUNDLE_BYTES, links=False))],
            "",
            "",
        )
        notes: tuple[str, ...] = ()
    else:
        files, commit, url, notes = _of_folder(place)
    with suppress(CannotRunHere, Refused):
        check_url(url)
        return prepared(files, description, default_name=place.absolute().stem, git=url, commit=commit, notes=notes)
    if commit:
        notes = (*notes, "the repository has no https address as its origin: peers get the files from each other alone")
    return prepared(files, description, default_name=place.absolute().stem, notes=notes)


def fetch_prepared(
    url: str, commit: str, description: Description, *, protocols: Collection[str] = HTTPS
) -> PreparedRelease:
    """The same of a commit of a git repository. Raises what :func:`fetch_files` and :func:`prepare` raise."""
    try:
        files = fetch_files(url, commit, protocols=protocols)
    except release.BadBundle as error:
        raise UsageError(f"{url[:80]} can't be published: {error}", hint="name another commit") from error
    name = url.rstrip("/").rpartition("/")[2].removesuffix(".git")
    return prepared(files, description, default_name=name, git=url, commit=commit)


def prepared(
    files: Sequence[release.File],
    description: Description,
    *,
    default_name: str = "",
    git: str = "",
    commit: str = "",
    notes: Sequence[str] = (),
) -> PreparedRelease:
    """The same of files that are there already; those with names that tools obey are left out. Raises UsageError."""
    description = _with_ini(files, description)
    name, version = description.name or default_name, description.version or _version_in(files)
    for what, text, pattern, option in (
        ("type", description.type, release.TYPE, "--type policy"),
        ("name", name, release.NAME, "--name q_table"),
        ("version", version, release.VERSION, "--version 1.0.0"),
    ):
        if not pattern.fullmatch(text):
            sentence = f"“{text[:80]}” can't be the {what} of a component" if text else f"the component has no {what}"
            raise UsageError(sentence, hint=f"{option}, or {what} = … in {COMPONENT_INI}")
    class_name, file_path = _class(files, description.class_name)
    requirements_path = description.requirements_path or next(
        (path for path in REQUIREMENTS if any(file.path == path for file in files)), ""
    )
    required = next((file for file in files if file.path == requirements_path), None)
    if requirements_path and required is None:
        raise UsageError(f"the component has no file {requirements_path}", hint=", ".join(REQUIREMENTS))
    own = release.kept_files(files)
    if left := sorted({file.path for file in files} - {file.path for file in own} - {release.PYPROJECT}):
        if file_path in left:
            raise UsageError(f"{file_path} is a name of a kind that tools may obey", hint=form_fault(file_path) or "")
        notes = (*notes, f"left out, because tools obey files of such names: {', '.join(left)[:200]}")
        notes = (*notes, f"to keep {left[0]}: {form_fault(left[0])}")
    about = description.description.strip() or _docstring(files, class_name, file_path)
    first_line = about.partition("\n")[0][:300]
    try:
        bundle = release.pack(own)
        metadata = release.Metadata(
            type=description.type,
            tree=release.tree_hash(own),
            description=about,
            git=git,
            commit=commit if git else "",
            class_name=class_name,
            file_path=file_path,
            requirements_path=requirements_path,
            requirements=read_requirements(requirements_path, required.content) if required else [],
            needs=description.needs,
            interfaces=description.interfaces,
            license=description.license,
        )
        checked = msgspec.convert(metadata.plain(), release.Metadata)
    except release.BadBundle as error:
        raise UsageError(f"it can't be published: {error}", hint="remove that, then publish again") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"it can't be published: {error}", hint="make that shorter, or correct it") from error
    made = PreparedRelease(name, version, first_line, checked, bundle, tuple(notes))
    if release.component_of(made.body(BlobRef(sha256=bytes(32), size=len(bundle)))) is None:
        raise UsageError("it can't be published: others could not install it", hint="check names and paths")
    return made


def local_component(folder: Path, kind: str) -> tuple[Description, list[str]]:
    """What a component's own folder says of it: its ``component.ini``, and the packages that it asks for.

    Raises:
        UsageError: a file of these can't be read, or says another type.
    """
    named = [name for name in (COMPONENT_INI, *REQUIREMENTS) if os.path.lexists(folder / name)]
    files = [release.File(name, _read(folder, name, FILE_BYTES)) for name in named]
    description = _with_ini(files, Description())
    if description.type not in ("", kind):
        sentence = f"{COMPONENT_INI} in {folder} says that this is a component of type {description.type}, not {kind}"
        raise UsageError(sentence, hint=f"autoresearch install {description.type} {shlex.quote(str(folder))}")
    path = description.requirements_path
    if not path:
        listed = next((file for file in files if file.path in REQUIREMENTS), None)
        return description, read_requirements(listed.path, listed.content) if listed else []
    return description, read_requirements(path, _read(folder, path, FILE_BYTES))


def _docstring(files: Sequence[release.File], class_name: str, file_path: str) -> str:
    """What the code says of itself, in its first paragraph: the class, else its file."""
    content = next((file.content for file in files if file.path == file_path), b"")
    tree = python_tree(content) or EMPTY
    short = class_name.rpartition(":")[2]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == short]
    texts = [*(ast.get_docstring(node) for node in classes), ast.get_docstring(tree)]
    text = next(filter(None, texts), "")
    return " ".join(text.partition("\n\n")[0].split())[:300]


def _of_folder(place: Path) -> tuple[list[release.File], str, str, tuple[str, ...]]:
    try:
        head = head_of(place)
    except release.BadBundle as error:
        raise UsageError(f"it can't be published: {error}", hint="remove that, commit, then publish again") from error
    except CannotRunHere as error:
        if (place / ".git").is_dir():
            return list(_visible(place)), "", "", (f"{error}: the files are taken as they lie there, without a commit",)
        head = None
    if head is None:
        return list(_visible(place)), "", "", ()
    files, commit, url = head
    return files, commit, url, ()


def _visible(place: Path) -> Iterator[release.File]:
    """The files of a folder, without hidden ones and what Python compiled."""
    left = release.BUNDLE_BYTES
    for path in sorted(place.rglob("*")):
        parts = path.relative_to(place).parts
        if any(part.startswith(".") or part in _SKIPPED for part in parts):
            continue
        if path.is_symlink():
            target = one_line(os.path.realpath(path), 200)
            raise UsageError(f"{path} is a link, to {target}, and no plain file", hint="copy the file there")
        if not path.is_dir():
            content = _read(place, "/".join(parts), left)
            left -= len(content)
            yield release.File("/".join(parts), content, bool(path.stat().st_mode & 0o100))


def _read(folder: Path, name: str, most: int, *, links: bool = True) -> bytes:
    try:
        return read_beneath(folder, name, most, links=links)
    except LeadsOut as error:
        raise UsageError(f"{folder / name} can't be read: {error.strerror}", hint="copy the file there") from error
    except OSError as error:
        raise UsageError(f"{folder / name} can't be read: {error.strerror}", hint="check the file") from error


def _with_ini(files: Sequence[release.File], description: Description) -> Description:
    """The description with what ``component.ini`` says beside it. Raises UsageError where the two differ."""
    content = next((file.content for file in files if file.path == COMPONENT_INI), None)
    if content is None:
        return description
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(content.decode())
    except (configparser.Error, UnicodeDecodeError) as error:
        reason = unreadable(error) if isinstance(error, UnicodeDecodeError) else error
        raise UsageError(f"{COMPONENT_INI} can't be read: {reason}"[:300], hint="correct the file") from error
    if not parser.has_section(_SECTION):
        raise UsageError(f"{COMPONENT_INI} has no [{_SECTION}]", hint=f"its keys stand under [{_SECTION}]")
    written: Mapping[str, str] = parser[_SECTION]
    if unknown := sorted(set(written) - set(_KEYS)):
        raise UsageError(f"{COMPONENT_INI}: there is no key {unknown[0][:60]}", hint=", ".join(_KEYS))
    fields: dict[str, str | list[str]] = {
        key: text.replace(",", " ").split() if key in _LISTS else text for key, text in written.items()
    }
    for key, text in fields.items():
        if (option := getattr(description, key)) and option != text:
            sentence = f"{COMPONENT_INI} says {key} = {written[key][:80]}, and you say {option}"
            raise UsageError(sentence, hint=f"leave --{key.replace('_', '-')} out, or correct the file")
    return msgspec.structs.replace(description, **{key: text for key, text in fields.items() if text})


def _version_in(files: Sequence[release.File]) -> str:
    """The version in a ``pyproject.toml``; empty without one."""
    content = next((file.content for file in files if file.path == release.PYPROJECT), b"")
    with suppress(ValueError, AttributeError):
        return str(read_toml(content).get("project", {}).get("version", ""))
    return ""


def _class(files: Sequence[release.File], name: str) -> tuple[str, str]:
    """The class as ``module:Class``, and its file; both empty where a component has no Python file.

    The file is read, not executed. Raises UsageError where the class is not there, or not the only one.
    """
    modules = {
        file.path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file
        for file in files
        if file.path.endswith(".py")
    }
    if name:
        module, _, short = name.rpartition(":")
        if (file := modules.get(module)) is None:
            raise UsageError(f"the component has no module {module or name}", hint="--class main:MyClass")
        if short not in _class_names(file):
            raise UsageError(
                f"{file.path} has no class {short}", hint=f"it has: {', '.join(_class_names(file)) or 'none'}"
            )
        return name, file.path
    classes = [
        (module, file, short) for module, file in modules.items() for short in _class_names(file) if short[0] != "_"
    ]
    if len(classes) == 1:
        [(module, file, only)] = classes
        return f"{module}:{only}", file.path
    if not classes:
        return "", ""
    choices = ", ".join(f"{module}:{short}" for module, _, short in classes[:4])
    raise UsageError("the component has several classes, and nothing says which is meant", hint=f"--class: {choices}")


def _class_names(file: release.File) -> list[str]:
    try:
        tree = parse_python(file.content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{file.path} is not Python: {error}"[:200], hint="correct the file") from error
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef)]


FILE_BYTES = 1 << 20
RELEASES_MOST = 1000
_ENTRY_KEYS = "type, description, and releases with name, hash, github_url, class_name, requirements_path"


def read_registry(path: Path) -> list[PublishRequest]:
    """The releases in a registry file, in its order.

    Raises:
        UsageError: it can't be read, or an entry has another shape.
    """
    import yaml

    try:
        text = read_beneath(path.parent, path.name, FILE_BYTES, links=False).decode()
        # Texts only: a version 1.10 is no number, and no tag makes an object.
        document = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts alone
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {unreadable(error)}", hint="give a registry.yaml") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(
            f"{path} is not YAML: {' '.join(str(error).split())[:200]}", hint="correct the file"
        ) from error
    components = document.get("components", document) if isinstance(document, dict) else None
    if not isinstance(components, dict) or not components:
        raise UsageError(f"{path} has no components", hint=f"by name, each with {_ENTRY_KEYS}")
    entries: list[PublishRequest] = []
    for name, about in components.items():
        for entry in _entries(str(name), about, path):
            entries.append(entry)
            if len(entries) > RELEASES_MOST:
                raise UsageError(f"{path} has more than {RELEASES_MOST} releases", hint="split the file")
    return entries


def _entries(name: str, about: object, path: Path) -> Iterator[PublishRequest]:
    fields = _mapping(about, name, path)
    releases = fields.get("releases")
    if not isinstance(releases, list):
        raise UsageError(f"{path}: {name[:60]} has no list of releases", hint=_ENTRY_KEYS)
    for entry in releases:
        source = _mapping(entry, name, path)
        yield PublishRequest(
            git=_text(source, "github_url"),
            commit=_text(source, "hash").lower(),
            type=_text(fields, "type"),
            name=name,
            version=_text(source, "name"),
            description=_text(fields, "description"),
            class_name=_class_name(_text(source, "class_name"), _text(source, "file_path")),
            requirements_path=_text(source, "requirements_path").removeprefix("./"),
        )


def _class_name(name: str, file_path: str) -> str:
    """``main.Env`` or ``Env`` in the file ``main.py`` as ``main:Env``; empty where nothing is said."""
    if not name or ":" in name:
        return name
    module, _, last = name.rpartition(".")
    in_file = file_path.removeprefix("./").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"{in_file or module or 'main'}:{last}"


def _mapping(value: object, name: str, path: Path) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name[:60]} is no table", hint=_ENTRY_KEYS)
    return value


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key, "")
    return value if isinstance(value, str) else ""
