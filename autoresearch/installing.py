"""How this installation gets what it lacks: from where it came itself, never from a package of the same name."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import unquote, urlsplit

PACKAGE = "autoresearch-p2p"
# What an extra needs besides, to be built where there is no wheel.
_NEEDS = {"network": "apt install gcc python3-dev libgmp-dev; "}


def install_command(extra: str) -> str:
    """The command that adds an extra (``network``, ``attest``, ``demo``, ``mcp``) to this installation."""
    try:
        text = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    return _NEEDS.get(extra, "") + command_for(extra, text)


def command_for(extra: str, origin: str | None) -> str:
    """The same for an installation that came from ``origin``: PEP 610's JSON, None for one from an index."""
    if origin is None:
        return f'pip install "{PACKAGE}[{extra}]"'
    found = json.loads(origin)
    url = urlsplit(found["url"])
    if url.scheme == "file":
        editable = "-e " if found.get("dir_info", {}).get("editable") else ""
        return f'pip install {editable}"{unquote(url.path)}[{extra}]"'
    vcs = f"{found['vcs_info']['vcs']}+" if "vcs_info" in found else ""
    return f'pip install "{PACKAGE}[{extra}] @ {vcs}{found["url"]}"'
