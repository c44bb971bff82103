"""Screenshots of the local pages for the documents: what the daemon of this home serves, in Debian's Chromium.

``python docs/pictures/pages.py`` writes ``progress.png`` and ``run.png`` beside itself. It needs a daemon with a few
runs: set ``AUTORESEARCH_HOME``, then ``autoresearch up`` and ``autoresearch work --runs 15``. It also needs Chromium
(``apt install chromium``) and the extra ``test``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Error, sync_playwright

HERE = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
WIDTH, HEIGHT = 1200, 820
SHOWN = {"progress": "", "run": "run/@"}


def answer(*words: str) -> dict[str, str]:
    """What a command answers as JSON. Raises RuntimeError when it fails."""
    command = [sys.executable, "-m", "autoresearch_cli", *words, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(f"“autoresearch {' '.join(words)}” failed: {ran.stderr.strip()}")
    return dict(json.loads(ran.stdout))


def take(address: str, into: Path) -> None:
    """Write the screenshots."""
    with sync_playwright() as playwright:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        for name, path in SHOWN.items():
            page.goto(address + path)
            page.wait_for_timeout(1000)  # the chart is drawn, parts are loaded
            page.screenshot(path=into / f"{name}.png")
        browser.close()


def main() -> int:
    """Write the screenshots; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=HERE, metavar="DIR", help="where they are written")
    given = parser.parse_args()
    try:
        take(answer("open")["address"], given.into)
    except (RuntimeError, Error) as error:
        print(error, file=sys.stderr)  # noqa: T201 - for who asked for them
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
