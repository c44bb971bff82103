"""pip and uv as they are on this machine: which is there, where they take packages from, and one call of them.

The person's own settings hold: PIP_INDEX_URL and its like, pip.conf, UV_INDEX_URL.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from autoresearch.errors import AutoresearchError, CannotRunHere, TimedOut

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
    found = _pip_settings()
    index = [] if found.get("no-index", "").lower() in ("1", "true", "yes", "on") else [found.get("index-url", PYPI)]
    further = " ".join(found.get(key, "") for key in ("extra-index-url", "find-links")).replace("\\n", " ").split()
    return ", ".join(re.sub(r"//[^/@]*@", "//", each) for each in (*index, *further)) or PYPI


def is_usual_source() -> bool:
    """Whether pip takes packages from PyPI alone, so that uv takes the same."""
    return not _pip_settings()


def _pip_settings() -> dict[str, str]:
    if not has_pip():
        return {}
    said = subprocess.run(pip("config", "list"), capture_output=True, text=True, check=False, env=_environment())
    lines = sorted(said.stdout.splitlines(), key=lambda line: line.startswith(":env:"))  # a variable wins over a file
    return {match[1]: match[2] for line in lines if (match := _SETTING.fullmatch(line))}


def call(
    command: Sequence[str],
    what: str,
    *,
    seconds: float,
    cwd: Path | None = None,
    held: Sequence[int] = (),
    cancelled: Callable[[], bool] | None = None,
) -> str:
    """Run a command and return what it printed. ``held`` are descriptors that stay open until all of it has ended.

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
        env=_environment(),
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
    kept = {name: text for name, text in os.environ.items() if name not in _NOT_PASSED_ON}
    # Without a retry pip doesn't say that there is no network, and with its usual five it takes long to say so.
    return {"PIP_TIMEOUT": "15", **kept, "PIP_RETRIES": "2", "PYTHONNOUSERSITE": "1"}


def _failure(what: str, errors: str) -> CannotRunHere:
    if _NO_NETWORK.search(errors):
        return CannotRunHere(
            f"{what}: the package index can't be reached, so this machine seems to be offline",
            hint="connect it once: the packages are kept; or name another index in pip's settings",
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    # uv draws its reason over several lines.
    reason = next((number for number, line in enumerate(lines) if "No solution found" in line), len(lines) - 1)
    said = said or [line.strip("×╰─▶ ") for line in lines[max(reason, 0) :]]
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        sentence = f"{what}: a file has another hash than the lock says, so nothing was installed"
        return CannotRunHere(sentence, hint="somebody changed the file on the index; ask the task's author")
    return CannotRunHere(f"{what}: {' '.join(said)[:500] or 'pip failed'}", hint="correct the list, or pip's settings")
