"""Which Python packages a program asks for: by its imports, and by the lists that lie beside it. Runs nothing.

The lists are ``[project] dependencies`` of pyproject.toml, ``uv.lock``, ``requirements*.txt``, and the header of a
script (PEP 723). Groups that are optional or for development are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from autoresearch.beneath import open_beneath
from autoresearch.task.loading import MAX_FILE_BYTES
from autoresearch.task.source import EMPTY, python_tree
from autoresearch.text import read_toml

# Packages that are imported by another name than they are installed by.
_PACKAGES = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "Bio": "biopython",
    "box": "python-box",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "google": "protobuf",
    "hydra": "hydra-core",
    "imblearn": "imbalanced-learn",
    "jwt": "PyJWT",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "open_clip": "open-clip-torch",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "pkg_resources": "setuptools",
    "pptx": "python-pptx",
    "pylab": "matplotlib",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "skopt": "scikit-optimize",
    "slugify": "python-slugify",
    "speech_recognition": "SpeechRecognition",
    "umap": "umap-learn",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}
# Other packages that have one of these: a list with one of them needs no other.
_INSTEAD = {
    "cv2": ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless"),
    "faiss": ("faiss-gpu", "faiss-gpu-cu12"),
    "google": ("google-genai", "google-generativeai", "google-cloud-storage"),
    "tensorflow": ("tensorflow-cpu", "tensorflow-gpu"),
}
_SCRIPT = re.compile(r"^# /// script *\n((?:#(?: .*)?\n)+?)# /// *$", re.MULTILINE)
_INCLUDED = re.compile(r"(?:-r|--requirement)[ =]*(\S+)")
# Lists for those who develop it.
_FOR_DEVELOPERS = re.compile(r"dev|test|doc|lint|ci\b|optional", re.IGNORECASE)
_MOST_LISTS = 16


def package_of(module: str) -> str:
    """The package that an import's first name most likely comes from: ``scikit-learn`` for ``sklearn``."""
    return _PACKAGES.get(module, module)


def packages_with(module: str) -> tuple[str, ...]:
    """All packages that an import's first name may come from, the likeliest first, by their plain names."""
    return tuple(map(canonicalize_name, (package_of(module), module, *_INSTEAD.get(module, ()))))


def imported_packages(sources: Mapping[str, str], own: Collection[str] = ()) -> set[str]:
    """The first names of what Python files import, and that is neither Python's nor in ``own`` nor one of these files.

    Left out is what a program can do without: imports in a ``try``, or for the checker of types alone.
    """
    names = {part.removesuffix(".py") for name in (*sources, *own) for part in name.split("/")}
    imported: set[str] = set()
    for name, source in sources.items():
        if name.endswith(".py"):
            imported |= _imports(source)
    return imported - names - sys.stdlib_module_names


def _imports(source: str) -> set[str]:
    pending: list[ast.AST] = [python_tree(source) or EMPTY]
    imported: set[str] = set()
    while pending:
        match pending.pop():
            case ast.Import(names=names):
                imported |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), level=0):
                imported.add(module.partition(".")[0])
            case ast.Try() | ast.TryStar():
                pass
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                pass
            case node:
                pending += ast.iter_child_nodes(node)
    return imported


def declared_packages(folder: Path, sources: Mapping[str, str]) -> dict[str, str]:
    """The packages that the lists in a folder and the headers of ``sources`` name: their lines by their plain names.

    Of one that several lists name the line of the first holds: pyproject.toml, headers, requirements.txt, uv.lock.
    What is no name with or without versions, such as an address, is left out.
    """
    packages: dict[str, str] = {}
    for line in _lines(folder, sources):
        try:
            requirement = Requirement(line)
            if requirement.url is None and (requirement.marker is None or requirement.marker.evaluate()):
                requirement.marker = None
                packages.setdefault(canonicalize_name(requirement.name), str(requirement))
        except (InvalidRequirement, ValueError, KeyError):
            continue
    project = _table(folder, "pyproject.toml").get("project")
    own = str(project.get("name", "")) if isinstance(project, dict) else ""
    packages.pop(canonicalize_name(own), None)
    return packages


def _lines(folder: Path, sources: Mapping[str, str]) -> Iterator[str]:
    table = _table(folder, "pyproject.toml")
    yield from _texts(_inner(table, "project", "dependencies"))
    poetry = _inner(table, "tool", "poetry", "dependencies")
    if isinstance(poetry, dict):
        yield from (name for name, version in poetry.items() if name != "python" and not _is_optional(version))
    for source in sources.values():
        if match := _SCRIPT.search(source):
            header = "".join(comment[2:] for comment in match[1].splitlines(keepends=True))
            yield from _texts(_loaded(header).get("dependencies"))
    loose = [PurePath(each.name) for each in sorted(folder.glob("requirements*.in"))]
    others = (PurePath(each.name) for each in sorted(folder.glob("requirements*.txt")))
    locked = (each for each in others if each.with_suffix(".in") not in loose)
    lists = [each for each in (*loose, *locked) if not _FOR_DEVELOPERS.search(each.stem)]
    for name in lists[:_MOST_LISTS]:
        yield from _of_list(folder, name, depth=0)
    packages = _table(folder, "uv.lock").get("package")
    for package in packages if isinstance(packages, list) else []:
        origin = package.get("source") if isinstance(package, dict) else None
        if isinstance(origin, dict) and "." in (origin.get("editable"), origin.get("virtual")):
            dependencies = package.get("dependencies")
            named = dependencies if isinstance(dependencies, list) else []
            yield from (str(each["name"]) for each in named if isinstance(each, dict) and "name" in each)


def _of_list(folder: Path, name: PurePath, *, depth: int) -> Iterator[str]:
    for line in _text(folder, str(name)).replace("\\\n", " ").splitlines()[:2000]:
        plain = re.sub(r"(?:^|\s)#.*$|\s--hash=\S+", "", line).strip()
        if match := _INCLUDED.match(plain):
            if depth < 4:
                yield from _of_list(folder, name.parent / match[1], depth=depth + 1)
        elif plain and not plain.startswith("-"):
            yield plain


def _is_optional(version: object) -> bool:
    return isinstance(version, dict) and bool(version.get("optional") or version.get("git") or version.get("path"))


def _inner(table: Mapping[str, Any], *keys: str) -> object:
    value: object = table
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _table(folder: Path, name: str) -> dict[str, Any]:
    return _loaded(_text(folder, name))


def _loaded(text: str) -> dict[str, Any]:
    try:
        return read_toml(text)
    except ValueError:
        return {}


def _text(folder: Path, name: str) -> str:
    """A list; nothing of what can't be read. The lock of a large project has many megabytes."""
    try:
        with open_beneath(folder, name) as file:
            return file.read(8 * MAX_FILE_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""
