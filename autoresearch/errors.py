"""Every error that a person may see, with its sentence, a hint and an exit status.

Also how this installation gets what it lacks: from where it came itself, never from a package of the same name.

AutoresearchError            1  something failed
├── UsageError               2  the command or a file's content is wrong
├── DaemonNotRunning         3
├── NotFound                 4  no such run, task, blob
│   └── NoTaskYet               the log has no task yet
├── AmbiguousId              5  a prefix matches several
├── Refused                  6  a rule, a limit or a missing permission says no
│   ├── LogBehind               the log is older than this device's last signed record
│   ├── CannotRunHere           this machine lacks what a task needs
│   └── Locked                  another process holds this device key
├── TimedOut                 7
├── AmbiguousName            9  a component's name can mean several releases
└── ServiceError             1  a service on this or another machine (autoresearch.services)
    ├── NoAnswer             7  no server there, or it did not answer in time
    ├── ServiceFailed           the server's own code raised an error
    ├── ServiceRefused       6  the server says no: an unknown name, another configuration, no room
    └── BadMessage              a value that cannot be sent, or bytes that are no message
"""

from __future__ import annotations

import shlex
from pathlib import Path


class AutoresearchError(Exception):
    """Something failed. ``str(error)`` is the sentence; ``hint`` says what to do next, or is empty."""

    exit_status = 1

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.hint = hint

    @property
    def with_hint(self) -> str:
        """The sentence, and what to do next."""
        return f"{self} → {self.hint}" if self.hint else str(self)


class UsageError(AutoresearchError):
    """The command, an option or a file's content is wrong."""

    exit_status = 2


class DaemonNotRunning(AutoresearchError):
    """The command needs the daemon, and none answers."""

    exit_status = 3


def not_running() -> DaemonNotRunning:
    """The error where nobody listens on the daemon's socket."""
    return DaemonNotRunning("the daemon is not running", hint="autoresearch up")


class NotFound(AutoresearchError):
    """No such run, task, record or blob here."""

    exit_status = 4


# The hint where nothing is measured yet; a face that knows what the node does says that instead.
BEGIN = "autoresearch work"


class NoTaskYet(NotFound):
    """The log has no task, so there is nothing to rank."""

    def __init__(self) -> None:
        super().__init__("There is no run in this log yet.", hint=BEGIN)


class AmbiguousId(AutoresearchError):
    """A prefix matches several ids; ``candidates`` lists them in text form."""

    exit_status = 5

    def __init__(self, sentence: str, candidates: list[str], *, hint: str = "") -> None:
        super().__init__(sentence, hint=hint or "type more characters: " + ", ".join(candidates))
        self.candidates = candidates


class Refused(AutoresearchError):
    """A rule, a limit or a missing permission says no."""

    exit_status = 6


class LogBehind(Refused):
    """The log here is older than the last record that this device key signed."""


class CannotRunHere(Refused):
    """This machine lacks what a task needs: a card, a package, data, memory. No fault of any program."""


class Locked(Refused):
    """Another process works with this device key."""


class TimedOut(AutoresearchError):
    """It took longer than it may."""

    exit_status = 7


class AmbiguousName(AutoresearchError):
    """A component's name can mean several releases, and nothing says which; ``candidates`` lists them by id."""

    exit_status = 9

    def __init__(self, sentence: str, candidates: list[str], *, hint: str = "") -> None:
        super().__init__(sentence, hint=hint)
        self.candidates = candidates


class ServiceError(AutoresearchError):
    """A service did not do what it was asked for."""


class NoAnswer(ServiceError):
    """No server is there, or it did not answer in time."""

    exit_status = 7


class ServiceFailed(ServiceError):
    """The server's own code raised an error; the sentence names it."""


class ServiceRefused(ServiceError):
    """The server says no: an unknown name, another configuration, no room in a store."""

    exit_status = 6


class BadMessage(ServiceError):
    """A value that cannot be sent, or bytes that are no message."""


PACKAGE = "autoresearch-p2p"
PIP_INSTALL = "pip install "
# libp2p and all that it needs, installed as it stands: what libp2p itself asks for has no wheel.
_NETWORK = Path(__file__).with_name("network.txt")


def install_command(extra: str) -> str:
    """The command that adds an extra (``network``, ``attest``, ``demo``, ``mcp``) to this installation."""
    if extra == "network":
        return f"{PIP_INSTALL}--no-deps --requirement {shlex.quote(str(_NETWORK))}"
    # To import it takes a tenth of a command's time.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    return command_for(extra, text)


def command_for(extra: str, origin: str | None) -> str:
    """The same for an installation that came from ``origin``: PEP 610's JSON, None for one from an index."""
    if origin is None:
        return f'pip install "{PACKAGE}[{extra}]"'
    import json
    from urllib.parse import unquote, urlsplit

    source = json.loads(origin)
    url = urlsplit(source["url"])
    if url.scheme == "file":
        editable = "-e " if source.get("dir_info", {}).get("editable") else ""
        return f'pip install {editable}"{unquote(url.path)}[{extra}]"'
    vcs = f"{source['vcs_info']['vcs']}+" if "vcs_info" in source else ""
    return f'pip install "{PACKAGE}[{extra}] @ {vcs}{source["url"]}"'
