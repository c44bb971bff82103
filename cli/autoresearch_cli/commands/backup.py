"""``node backup`` and ``node restore``: the whole home as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import Refused
from autoresearch.paths import typed_path
from autoresearch.text import counted, size
from autoresearch_cli import home, starting
from autoresearch_cli.acts import home_backup
from autoresearch_cli.catalogue import Answered, CommandApp
from autoresearch_cli.models import HomeBackupAnswer
from autoresearch_cli.rendering.output import say

app = CommandApp()


@app.command(
    "node backup",
    ("autoresearch node backup ~/autoresearch.tar", "settings, keys, log and files, also while the daemon runs"),
    ("autoresearch node restore ~/autoresearch.tar", "put it back, on a machine without any"),
    ("autoresearch node backup /mnt/$(date +%F).tar", "one for each day"),
    see="node restore, node id backup, run export",
)
def backup(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; nothing is overwritten.")]) -> Answered:
    """Write all that this node keeps into one file. Your keys are in it: guard it like them."""
    file = typed_path(file)
    files, count = home_backup.back_up(home.paths(), file)
    yield HomeBackupAnswer(file=str(file), files=files, bytes=count)
    say(f"{file} has {counted(files, 'file')}, {size(count)}")
    say("Your keys are in it: without a passphrase, unless they have one here")
    say("→ to put it back on a machine without any: autoresearch node restore FILE")


@app.command(
    "node restore",
    ("autoresearch node restore ~/autoresearch.tar", "the same node on this machine"),
    ("AUTORESEARCH_HOME=/srv/node autoresearch node restore node.tar", "into another home"),
    ("autoresearch node restore node.tar && autoresearch node doctor log", "then check all hashes and signatures"),
    see="node backup, node doctor, node id restore",
)
def restore(file: Annotated[Path, typer.Argument(metavar="FILE", help="What `node backup` wrote.")]) -> Answered:
    """Make this empty home what it was at a backup. One node only may go on from it: two would fork its history.

    A backup is trusted as your own settings are: they can name commands that this machine runs. Restore your own alone.
    """
    if starting.daemon_status() is not None:
        raise Refused("The daemon runs.", hint="autoresearch down, then again")
    file = typed_path(file)
    files = home_backup.put_back(home.paths(), file)
    yield HomeBackupAnswer(file=str(file), files=files, bytes=file.stat().st_size)
    say(f"restored {counted(files, 'file')}. The machine that it came from must not go on as well")
    say("→ autoresearch up; it asks its peers first what this device signed since")
