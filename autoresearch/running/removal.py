"""Removes what a stranger's program left on disk, however it is nested or protected."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def remove_tree(folder: Path) -> None:
    """Removes a folder with all in it. Links are not followed; what can't be removed stays, without an error."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):  # closed folders, or thousands of them inside each other
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], stderr=subprocess.DEVNULL, check=False)
