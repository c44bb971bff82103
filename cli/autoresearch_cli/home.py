"""The home of this node as a command finds it: folders, settings, daemon, keys. Only this module reads the environment.

Passphrases come from a variable, a file descriptor, or a person at a terminal; never from an argument.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from autoresearch.errors import (
    BEGIN,
    AmbiguousId,
    AutoresearchError,
    DaemonNotRunning,
    NotFound,
    UsageError,
    not_running,
)
from autoresearch.paths import Paths, typed_path

if TYPE_CHECKING:
    import msgspec

    from autoresearch.ask.client import Client
    from autoresearch.ask.operation import Text
    from autoresearch.log.standing.answers import Answer
    from autoresearch.settings import Settings
    from autoresearch.trust.identity import OwnKeys
    from autoresearch.trust.keys import KeyPair
    from autoresearch.trust.manifest import NetworkManifest

A = TypeVar("A", bound="Answer | Text")


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
    from autoresearch.settings import load_settings

    return load_settings(paths().settings, environment())[0]


def manifest() -> NetworkManifest:
    """The network that the data folder belongs to. Raises UsageError when its file is damaged."""
    from autoresearch.trust.manifest_file import load_manifest

    return load_manifest(paths().manifest)


def now_ms() -> int:
    """Unix milliseconds now."""
    return time.time_ns() // 1_000_000


def client() -> Client:
    """The daemon's API. Raises DaemonNotRunning when there is no socket."""
    socket = paths().socket
    if not socket.exists():
        raise not_running()
    from autoresearch.ask.client import Client

    return Client(socket)


def ask(question: Callable[..., A], request: msgspec.Struct, api: Callable[[], Client] = client) -> A:
    """The answer to a question, or what was published: by the daemon that runs, else by this process, on the log here.

    Raises DaemonNotRunning where only a daemon can do it, and what the question raises.
    """
    from autoresearch.ask.operation import operation_of

    operation = operation_of(question)
    try:
        return api().ask(question, request)
    except NotFound as error:
        if error.hint != BEGIN:
            raise
        raise NotFound(f"{error}", hint=next_run()) from None
    except DaemonNotRunning:
        if not (operation.reads or operation.writes):
            raise
    operation.check(request)
    if operation.writes:
        from autoresearch.ask.acts.notebook import Notebook

        with Notebook(paths()) as notebook:
            notebook.publish_identity(now_ms())
            return question(notebook, request)
    # What reads a log takes longer to load than all the rest.
    from autoresearch_cli.local_log import open_desk, with_blobs

    with open_desk() as desk:
        return with_blobs(lambda: question(desk, request))


def next_run() -> str:
    """What brings the next run: what the daemon does now, else what to type."""
    from autoresearch.ask.node_acts import Node
    from autoresearch_cli.rendering.status import meanwhile

    try:
        return meanwhile(client().ask(Node.status))
    except DaemonNotRunning:
        return BEGIN


def own_device() -> KeyPair | None:
    """This machine's key, or None when it has none that can be read."""
    from autoresearch.trust.identity import load_identity

    try:
        return load_identity(paths().keys).device
    except AutoresearchError:
        return None


def existing_folder(text: str) -> Path:
    """The absolute path of a folder that was typed.

    Raises:
        NotFound: there is no such folder.
        UsageError: it is no folder, or can be no path.
    """
    from autoresearch.errors import NotFound, UsageError

    folder = typed_path(text).absolute()
    if not folder.exists():
        from autoresearch.task.loading import shipped_by_name

        hint = "autoresearch task new DIR makes the program in DIR a task; autoresearch task get TASK writes another"
        if shipped_by_name(text):
            hint = f"autoresearch work {text} works on the task; autoresearch task get {text} writes it as a folder"
        raise NotFound(f"there is no folder {folder}", hint=hint)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint=f"give its folder: {folder.parent}")
    return folder


def folder_here() -> str:
    """The folder that this process is in, where it is a task's; else nothing."""
    return str(Path.cwd()) if Path("task.toml").is_file() else ""


def task_meant(named: str, *references: str) -> str | None:
    """The task that was named; else that of the task folder here; else None: the one worked on last.

    Where all ``references`` are ids, these alone say which runs are meant.

    On a terminal the folder's is named where it is not the one worked on last.

    Raises:
        NotFound: nothing was run on the task of this folder.
        UsageError: the folder can't be read as a task.
    """
    if named or not folder_here() or (references and not any(text[:1] in ("@", "#") for text in references)):
        return named or None
    from autoresearch.ask import questions
    from autoresearch.ask.requests import OfTask
    from autoresearch.task.loading import load_task
    from autoresearch_cli.rendering.output import is_terminal, say

    other = "another task: --task NAME"
    try:
        task = load_task(Path.cwd(), program=b"")  # the program may be broken: it is being edited
        task = task if task.is_pinned else load_task(Path.cwd())
    except UsageError as error:
        raise UsageError(f"{error}", hint="; ".join(filter(None, (error.hint, other)))) from error
    digest = ""
    # Where no baseline is pinned, an edit of it makes another task of the same name.
    for text in (task.digest.hex(),) if task.is_pinned else (task.digest.hex(), task.name):
        with suppress(NotFound, AmbiguousId):
            digest = digest or ask(questions.attacks, OfTask(task=text)).digest
    if not digest:
        with suppress(NotFound, AmbiguousId):
            before = ask(questions.attacks, OfTask(task=task.name)).digest[:12]
            other = f"as it was before task.toml changed: --task {before}"
        raise NotFound(
            f"no run on {task.name}, the task of this folder, is here yet", hint=f"autoresearch run; {other}"
        )
    if is_terminal():
        with suppress(NotFound):  # the others are archived
            last = ask(questions.attacks, OfTask())
            if last.digest != digest:
                name = last.task if last.task != task.name else last.digest[:12]
                say(f"on {task.name}, the task of this folder; the one worked on last: --task {name}")
    return digest


def task_folder(text: str) -> Path:
    """The task folder that was typed; else the one here; else that of the settings; else the default.

    Raises:
        NotFound: there is no such folder.
        UsageError: it is no folder.
    """
    chosen = text or folder_here() or settings().work.task
    if chosen:
        return existing_folder(chosen)
    from autoresearch.task.loading import default_task

    return default_task().folder


def first_device() -> str:
    """The device of a run in this process: the first in the settings."""
    from autoresearch.run.sandbox.cards import named_devices

    return named_devices(settings().work.device)[0]


VARIABLE = "AUTORESEARCH_PASSPHRASE"
DESCRIPTOR = "AUTORESEARCH_PASSPHRASE_FD"
_BYTES_MAX = 1024
# A new one with fewer is guessed in seconds.
LEAST_CHARACTERS = 8


def passphrase(what: str, *, confirm: bool = False, instead: str = "") -> str:
    """The passphrase for ``what``. ``confirm``: it is a new one. ``instead`` is what else a person may do.

    Raises:
        UsageError: nobody can be asked and none is given, or a new one is too short.
    """
    secret = _passphrase_from_environment() or _prompt_for_passphrase(what, confirm=confirm, instead=instead)
    if confirm and len(secret) < LEAST_CHARACTERS:
        raise UsageError(
            f"the passphrase has less than {LEAST_CHARACTERS} characters", hint="several words are easy to remember"
        )
    return secret


def _prompt_for_passphrase(what: str, *, confirm: bool, instead: str) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"the passphrase {what} is needed, and there is no terminal to ask at",
            hint="; ".join(filter(None, (f"set {VARIABLE}, or {DESCRIPTOR} to an open file descriptor", instead))),
        )
    return str(typer.prompt(f"Passphrase {what}", hide_input=True, confirmation_prompt=confirm, err=True))


def _passphrase_from_environment() -> str:
    number = environment().get(DESCRIPTOR)
    if not number:
        return environment().get(VARIABLE, "")
    try:
        with os.fdopen(int(number), "rb", closefd=False) as file:
            return file.readline(_BYTES_MAX).decode().rstrip("\r\n")
    except (ValueError, OSError) as error:
        raise UsageError(f"{DESCRIPTOR} names no file that can be read: {error}", hint=f"set {VARIABLE}") from error


def loaded() -> OwnKeys:
    """The keys. Raises NotFound when there are none yet."""
    from autoresearch.trust.identity import ROOT_FILE, load_identity

    try:
        return load_identity(paths().keys)
    except NotFound as error:
        if paths().keys.joinpath(ROOT_FILE).exists():
            sentence = "the device key of this machine is missing; the daemon makes a new one for the root key"
            raise NotFound(sentence, hint="put the old one back, or: autoresearch up") from error
        raise NotFound("there are no keys yet", hint="autoresearch node id new, or start the daemon") from error


def unlocked(mine: OwnKeys) -> OwnKeys:
    """With the root key at hand; asks for the passphrase where it needs one. Raises Refused, UsageError."""
    from autoresearch.trust.identity import unlock
    from autoresearch.trust.keys import KeyPair

    if isinstance(mine.root, KeyPair):
        return mine
    return unlock(paths().keys, mine, passphrase("of the root key") if mine.root.is_local else "")
