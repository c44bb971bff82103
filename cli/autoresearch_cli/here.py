"""This machine as a command finds it: folders, settings, daemon. The one place that reads the environment."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.errors import not_running
from autoresearch.paths import Paths, typed_path
from autoresearch.settings import Settings, load_settings, named_devices

if TYPE_CHECKING:
    from autoresearch.client import Client
    from autoresearch.networks import Manifest


def environment() -> Mapping[str, str]:
    """The variables of this process."""
    return os.environ


def paths() -> Paths:
    """This user's folders."""
    return Paths.from_environment(environment())


def is_new() -> bool:
    """Whether nothing was ever kept on this machine: no log, no keys, no network."""
    return not paths().data.exists()


def settings() -> Settings:
    """The settings in force."""
    return load_settings(paths().settings, environment())[0]


def manifest() -> Manifest:
    """The network that the data folder belongs to. Raises UsageError when its file is damaged."""
    from autoresearch.networks import load_manifest

    return load_manifest(paths().manifest)


def now_ms() -> int:
    """Unix milliseconds now."""
    return time.time_ns() // 1_000_000


def client() -> Client:
    """The daemon's API. Raises DaemonNotRunning when there is no socket."""
    socket = paths().socket
    if not socket.exists():
        raise not_running()
    from autoresearch.client import Client

    return Client(socket)


def existing_folder(text: str) -> Path:
    """The absolute path of a folder that was typed.

    Raises:
        NotFound: there is no such folder.
        UsageError: it is no folder, or can be no path.
    """
    from autoresearch.errors import NotFound, UsageError

    folder = typed_path(text).absolute()
    if not folder.exists():
        raise NotFound(f"there is no folder {folder}", hint="autoresearch task new DIR makes a task folder")
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="give the folder that holds task.toml")
    return folder


def task_folder(text: str) -> Path:
    """The task folder that was typed; else the one in the settings; else the one that ships.

    Raises:
        NotFound: there is no such folder.
        UsageError: it is no folder.
    """
    chosen = text or settings().work.task
    if chosen:
        return existing_folder(chosen)
    from autoresearch.tasks import shipped_task

    return shipped_task().folder


def first_device() -> str:
    """The device of a run in this process: the first in the settings."""
    return named_devices(settings().work.device)[0]
