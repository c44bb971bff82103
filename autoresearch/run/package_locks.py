"""Makes a locked list of packages from a loose one with pip or uv, and pins it in ``task.toml``.

Also whether this Python, or that of every node, has what a list asks for. The person's own settings hold: PIP_INDEX_URL
and its like, pip.conf, UV_INDEX_URL.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from autoresearch.beneath import text_beneath
from autoresearch.errors import AutoresearchError, CannotRunHere, TimedOut, UsageError
from autoresearch.run.sandbox.scratch import scratch_folder
from autoresearch.task.folder_state import replace_file
from autoresearch.task.loading import MANIFEST, load_task
from autoresearch.task.model import Task
from autoresearch.task.needs import LOCK, Package, parse_lock, parse_wanted, write_lock
from autoresearch.task.program import PLAIN_NAME
from autoresearch.text import unreadable

PYPI = "https://pypi.org/simple"
# Settings of pip that would put packages elsewhere, or lay more conditions on them than the lock does.
_NOT_PASSED_ON = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIREMENT", "PIP_CONSTRAINT", "PIP_PYTHON"}
_SETTING = re.compile(r"(?:global|install|:env:)\.(index-url|extra-index-url|find-links|no-index)='(.*)'")
_NO_NETWORK = re.compile(
    r"NewConnectionError|name resolution|Network is unreachable|ConnectTimeout|Connection refused|Could not connect"
    r"|dns error|error sending request|Failed to fetch",
    re.IGNORECASE,
)
_LOOK_SECONDS = 0.1


def has_pip() -> bool:
    """Whether this process's Python has pip."""
    return find_spec("pip") is not None


def uv() -> str | None:
    """Where uv is, if it is installed."""
    return shutil.which("uv")


def pip(*words: str) -> list[str]:
    """A command of this Python's pip; no module of the working folder takes the place of one of pip's (``-I``).

    Raises:
        CannotRunHere: it has none.
    """
    if not has_pip():
        raise CannotRunHere("pip is not here to get packages", hint=f"{sys.executable} -m ensurepip")
    return [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", *words]


def package_source() -> str:
    """Where pip takes packages from, as words: the index, further ones, folders. Without names and passwords."""
    settings = _pip_settings()
    index = (
        [] if settings.get("no-index", "").lower() in ("1", "true", "yes", "on") else [settings.get("index-url", PYPI)]
    )
    further = " ".join(settings.get(key, "") for key in ("extra-index-url", "find-links")).replace("\\n", " ").split()
    return ", ".join(re.sub(r"//[^/@]*@", "//", each) for each in (*index, *further)) or PYPI


def _pip_settings() -> dict[str, str]:
    if not has_pip():
        return {}
    listing = subprocess.run(pip("config", "list"), capture_output=True, text=True, check=False, env=_environment())
    lines = sorted(
        listing.stdout.splitlines(), key=lambda line: line.startswith(":env:")
    )  # a variable wins over a file
    return {match[1]: match[2] for line in lines if (match := _SETTING.fullmatch(line))}


def call(
    command: Sequence[str],
    what: str,
    *,
    seconds: float,
    cwd: Path | None = None,
    held: Sequence[int] = (),
    cancelled: Callable[[], bool] | None = None,
    temporary: Path | None = None,
) -> str:
    """Run a command and return what it printed. ``held`` are descriptors that stay open until all of it has ended.

    ``temporary`` is a folder for its temporary files.

    Raises:
        CannotRunHere: the command failed, or there is no network; ``what`` says in the sentence what did not work.
        TimedOut: it took longer than ``seconds``.
        AutoresearchError: it was cancelled.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment() | ({"TMPDIR": str(temporary)} if temporary else {}),
        cwd=cwd,
        pass_fds=held,
        start_new_session=True,
        umask=0o022,  # a run has another user id where root starts it, and must read what is made here
    )
    deadline = time.monotonic() + seconds
    try:
        while True:
            try:
                output, errors = process.communicate(timeout=_LOOK_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if cancelled is not None and cancelled():
                    raise AutoresearchError(f"{what}: stopped on request") from None
                if time.monotonic() > deadline:
                    raise TimedOut(f"{what}: it took more than {seconds:g} s", hint="try again later") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        raise _failure(what, errors)
    return output


def _environment() -> dict[str, str]:
    variables = {name: text for name, text in os.environ.items() if name not in _NOT_PASSED_ON}
    # Without a retry pip doesn't say that there is no network, and with its usual five it takes long to say so.
    return {"PIP_TIMEOUT": "15", **variables, "PIP_RETRIES": "2", "PYTHONNOUSERSITE": "1"}


def _failure(what: str, errors: str) -> CannotRunHere:
    if _NO_NETWORK.search(errors):
        return CannotRunHere(
            f"{what}: the package index can't be reached, so this machine seems to be offline",
            hint="connect it once: the packages are kept; or name another index in pip's settings",
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    reasons = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    # uv draws its reason over several lines.
    reason = next((number for number, line in enumerate(lines) if "No solution found" in line), len(lines) - 1)
    reasons = reasons or [line.strip("×╰─▶ ") for line in lines[max(reason, 0) :]]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        sentence = f"{what}: a file has another hash than the lock says, so nothing was installed"
        return CannotRunHere(sentence, hint="somebody changed the file on the index; ask the task's author")
    return CannotRunHere(
        f"{what}: {' '.join(reasons)[:500] or 'pip failed'}", hint="correct the list, or pip's settings"
    )


_OWN = "autoresearch-p2p"


def has_packages(lines: Sequence[str]) -> bool:
    """Whether lines such as ``numpy>=2`` are met by the packages of this Python. One with extras counts as not met."""
    return all(map(_is_met, lines))


def every_node_has(line: str) -> bool:
    """Whether a line is met here by a package that comes with this program, also by what projects need of it."""
    try:
        own = {canonicalize_name(Requirement(each).name) for each in requires(_OWN) or []}
        return canonicalize_name(Requirement(line).name) in own and has_packages([line])
    except (InvalidRequirement, PackageNotFoundError):
        return False


def lock_meets(lines: Sequence[str], packages: Sequence[Package]) -> bool:
    """Whether lines such as ``numpy>=2`` are met by a locked list."""
    versions = {canonicalize_name(each.name): each.version for each in packages}
    requirements = map(Requirement, lines)
    return all(
        each.specifier.contains(versions[name], prereleases=True)
        if (name := canonicalize_name(each.name)) in versions
        else False
        for each in requirements
    )


def _is_met(line: str) -> bool:
    try:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate():
            return True
        return not requirement.extras and requirement.specifier.contains(version(requirement.name), prereleases=True)
    except (InvalidRequirement, PackageNotFoundError):
        return False


LOCK_SECONDS = 600.0
_LIST_BYTES = 8 << 20
_LIST = "wanted.txt"
_HEADER = "# The packages of this task. Edit {loose}, then: autoresearch task lock DIR\n"


@dataclass(frozen=True, slots=True)
class LockedFolder:
    """What was locked: the task as it is now, its packages, the loose list (None: there is none), and the tool."""

    task: Task
    loose: Path | None
    tool: str


def lock_folder(folder: Path) -> LockedFolder:
    """Lock the packages of a task folder and pin the list in its ``task.toml``: another list makes another task.

    The loose list is ``requirements.in``; where there is none, ``requirements.txt`` is moved there.

    Raises:
        UsageError: there is no list or no ``task.toml``, or something on the list can't be locked.
        CannotRunHere: no tool or no network is here, or no versions fit together.
    """
    import tomlkit  # the command line starts without it

    path = folder / MANIFEST
    try:
        document = tomlkit.parse(_text(folder, MANIFEST, hint=f"autoresearch task new {shlex.quote(str(folder))}"))
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="correct the file at that place") from error
    section = document.get("python", {})
    if not isinstance(section, dict) or not isinstance(document.get("harness", {}), dict):
        raise UsageError(f"{path}: [python] and [harness] are tables", hint="correct the file at that place")
    if section.get("venv"):
        hint = "remove venv under [python] first, or the whole table"
        raise UsageError(f"{path} names an environment of this machine, which has no list to lock", hint=hint)
    name = str(section.get("requirements") or LOCK)
    if not PLAIN_NAME.fullmatch(name) or not name.endswith(".txt"):
        raise UsageError(f"{path}: python.requirements is {name!r}", hint=f'requirements = "{LOCK}"')
    place, loose = folder / name, (folder / name).with_suffix(".in")
    has_loose = os.path.lexists(loose)
    if has_loose:
        text = _text(folder, loose.name, hint="")
    else:
        text = _text(folder, name, hint=f"write one package a line into {loose}")
        if packages := _locked(text, name):
            _pin(folder, document, name, text)
            return LockedFolder(load_task(folder), None, "")
    packages, tool = _resolved(text, loose if has_loose else place)
    if not has_loose:
        replace_file(folder, loose.name, text.encode())
    _pin(folder, document, name, _HEADER.format(loose=loose.name) + write_lock(packages))
    return LockedFolder(load_task(folder), loose, tool)


def _locked(text: str, name: str) -> list[Package]:
    try:
        return parse_lock(text, name)
    except UsageError:
        return []


def _resolved(text: str, where: Path) -> tuple[list[Package], str]:
    """The packages that fit a loose list and each other, and which tool found them."""
    lines = parse_wanted(text, str(where))
    if not lines:
        raise UsageError(f"{where} names no package", hint="write one a line: numpy>=2")
    return resolve_packages(lines, what=f"{where} can't be locked")


def resolve_packages(lines: Sequence[str], *, what: str) -> tuple[list[Package], str]:
    """The packages that fit lines such as ``numpy>=2`` and each other, with their hashes; and which tool found them.

    Only wheels are looked at, so that nothing of a package runs. ``what`` begins the sentence of an error.

    Raises:
        CannotRunHere: no versions fit together, with the tool's own words; or no tool or no network is here.
        TimedOut: it took too long.
    """
    with scratch_folder() as scratch:  # nothing of the folder that they come from is read by the tool
        (scratch.folder / _LIST).write_text("".join(f"{line}\n" for line in lines))
        tool = uv()
        if tool and not (_pip_settings() and has_pip()):  # uv doesn't know where else pip looks for packages
            words = ["--quiet", "--generate-hashes", "--no-build", "--no-header", "--no-annotate", "--universal"]
            command = [tool, "pip", "compile", *words, "--python", sys.executable, _LIST]
            output = call(command, what, seconds=LOCK_SECONDS, cwd=scratch.folder)
            return parse_lock(output, "what uv says"), "uv"
        words = ["install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "-"]
        command = pip(*words, "--requirement", _LIST)
        output = call(command, what, seconds=LOCK_SECONDS, cwd=scratch.folder)
    return sorted(map(_reported, json.loads(output)["install"])), "pip"


def _reported(item: dict[str, Any]) -> Package:
    metadata, archive = item["metadata"], item["download_info"]["archive_info"]
    return Package(metadata["name"], metadata["version"], (archive["hashes"]["sha256"],))


def _pin(folder: Path, document: Any, name: str, text: str) -> None:  # noqa: ANN401 - tomlkit's own types
    """Write a list of packages and pin it in ``task.toml``."""
    import tomlkit

    replace_file(folder, name, text.encode())

    if "python" not in document:
        document.add("python", tomlkit.table())
    document["python"]["requirements"] = name
    if "harness" not in document:
        document.add("harness", tomlkit.table())
    document["harness"][name] = hashlib.sha256(text.encode()).hexdigest()
    replace_file(folder, MANIFEST, tomlkit.dumps(document).encode())


def _text(folder: Path, name: str, *, hint: str) -> str:
    try:
        return text_beneath(folder, name, _LIST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder / name} can't be read: {unreadable(error)}", hint=hint) from error
