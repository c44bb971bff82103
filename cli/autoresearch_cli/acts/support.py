"""A file to send to somebody who helps: what ails this machine, with what is private left out."""

from __future__ import annotations

import getpass
import ipaddress
import os
import platform
import re
import socket
import zipfile
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path

import msgspec

from autoresearch.ask.acts.settings import settings_answer
from autoresearch.ask.node import Setting
from autoresearch.errors import AutoresearchError, Refused
from autoresearch.paths import Paths
from autoresearch.version import __version__
from autoresearch_cli.models import DoctorAnswer

LOG_BYTES = 512 << 10
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE", re.IGNORECASE)
# A shorter value of such a variable is a word like "1" that stands everywhere.
SECRET_CHARACTERS = 6
# Texts among the settings that tell nothing of a person or of other machines.
OPEN_SETTINGS = frozenset({"work.device", "work.hours", "network.listen", "notify.events"})
MAIL = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+")
NAMED = re.compile(r"(/dns(?:4|6|addr)?/)[^/\s\"]+")
URL = re.compile(r"(https?://)[^\s\"<>]+")
NUMBERS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")


def write_bundle(
    file: Path, answer: DoctorAnswer, status: object, paths: Paths, environment: Mapping[str, str]
) -> list[str]:
    """Write the file, and return what is in it. ``status`` is the daemon's answer; None: no daemon runs.

    Raises:
        Refused: there is such a file, or it can't be written.
    """
    private = _private(paths, environment)
    parts = {
        "doctor.json": _json(answer),
        "settings.txt": _settings(paths, environment),
        "machine.txt": _machine(),
        "status.json": _json(status) if status is not None else "",
        "daemon.log": _end_of(paths.daemon_log),
    }
    contents = {name: without_private(text, private) for name, text in parts.items() if text}
    try:
        with (
            open(file, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as out,
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle,
        ):
            for name, text in contents.items():
                bundle.writestr(name, text)
    except FileExistsError as error:
        raise Refused(f"{file} exists already.", hint="name another file") from error
    except OSError as error:
        raise Refused(f"{file} can't be written: {error.strerror}.", hint="name another file") from error
    return list(contents)


def without_private(text: str, private: Mapping[str, str]) -> str:
    """A text without addresses of machines and people, and without the values that ``private`` replaces."""
    for value, word in private.items():
        text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", word, text)
    text = URL.sub(r"\1ADDRESS", text)
    text = MAIL.sub("MAIL", text)
    text = NAMED.sub(r"\1NAME", text)
    return NUMBERS.sub(lambda match: match[0] if _is_harmless(match[0]) else "ADDRESS", text)


def _is_harmless(address: str) -> bool:
    try:
        read = ipaddress.ip_address(address)
    except ValueError:  # a time, a version
        return True
    return read.is_loopback or read.is_unspecified


def _private(paths: Paths, environment: Mapping[str, str]) -> dict[str, str]:
    """What stands for what, the longest first."""
    replacements = {value: "SECRET" for name, value in environment.items() if SECRET.search(name)}
    if paths.api_token.exists():
        replacements[paths.api_token.read_text().strip()] = "SECRET"
    replacements = {value: word for value, word in replacements.items() if len(value) >= SECRET_CHARACTERS}
    replacements |= {str(Path.home()): "~", socket.gethostname(): "HOST"}
    user = getpass.getuser()
    if user != "root":  # a word that stands in other places
        replacements[user] = "USER"
    return dict(
        sorted(((value, word) for value, word in replacements.items() if value), key=lambda item: -len(item[0]))
    )


def _json(answer: object) -> str:
    return msgspec.json.format(msgspec.json.encode(answer)).decode()


def _settings(paths: Paths, environment: Mapping[str, str]) -> str:
    try:
        answer = settings_answer(paths.settings, environment)
    except AutoresearchError as error:
        return f"{error}\n"
    changed = [setting for setting in answer.settings if setting.origin != "default"]
    return "".join(f"{setting.name} = {_setting_text(setting)}  ({setting.origin})\n" for setting in changed)


def _setting_text(setting: Setting) -> str:
    if isinstance(setting.value, str) and setting.value and setting.name not in OPEN_SETTINGS:
        return "(set)"
    return setting.text


def _machine() -> str:
    packages = sorted(f"{distribution.metadata['Name']} {distribution.version}" for distribution in distributions())
    lines = (
        f"autoresearch {__version__}",
        f"Python {platform.python_version()}",
        f"{platform.platform()}, {os.cpu_count()} processors",
        *packages,
    )
    return "\n".join(lines) + "\n"


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
