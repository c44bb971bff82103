"""Pictures of the terminal for the documents, as SVG: what commands print about the log of this home, in colour.

``python docs/pictures/make.py`` writes ``best.svg``, ``top.svg`` and ``status.svg`` beside itself. It needs a log with
a few runs: set ``AUTORESEARCH_HOME``, then ``autoresearch up`` and ``autoresearch work --runs 5``.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COMMANDS = ("best", "top", "status")
COLUMNS = 100
HERE = Path(__file__).parent


def printed(command: str, columns: int) -> str:
    """What a command prints on a terminal of so many columns, with its colours.

    Raises RuntimeError when the command fails.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "autoresearch_cli", "--color", "always", command],
        env=os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"“autoresearch {command}” failed: {ran.stderr.strip()}")
    return ran.stdout


def picture(command: str, columns: int = COLUMNS) -> str:
    """The picture of a command and what it prints."""
    console = Console(record=True, file=io.StringIO(), width=columns, force_terminal=True, highlight=False)
    console.print(f"[bold green]$[/] autoresearch {command}")
    console.print(Text.from_ansi(printed(command, columns).rstrip() + "\n"))
    drawn = console.export_svg(title="autoresearch", theme=MONOKAI, unique_id=command)
    # A picture that somebody looks at fetches no font: the viewer's own is used.
    return re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)


def main() -> int:
    """Write the pictures that are asked for; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", default=COMMANDS, metavar="COMMAND", help="best, top, status if none")
    parser.add_argument("--into", type=Path, default=HERE, metavar="DIR", help="where the pictures are written")
    parser.add_argument("--columns", type=int, default=COLUMNS, metavar="N", help="of the terminal, 100 if not given")
    given = parser.parse_args()
    try:
        drawn = {command: picture(command, given.columns) for command in given.commands}
        given.into.mkdir(parents=True, exist_ok=True)
        for command, svg in drawn.items():
            (given.into / f"{command}.svg").write_text(svg, encoding="utf-8")
    except (RuntimeError, OSError) as error:
        sys.stderr.write(f"no picture was written: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
