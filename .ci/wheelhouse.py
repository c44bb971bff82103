"""Wheels of all that the program needs, for machines without a network: ``python .ci/wheelhouse.py FOLDER [EXTRA]…``.

The versions are those of this environment. Without torch, whose wheel depends on the machine and is large.
"""

import subprocess
import sys
from importlib.metadata import requires, version

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def main(folder: str, *extras: str) -> None:
    """Download the wheels into the folder."""
    needed: dict[str, str] = {}
    waiting = [("autoresearch-p2p", frozenset(extras))]
    while waiting:
        name, its_extras = waiting.pop()
        for line in requires(name) or []:
            need = Requirement(line)
            below = canonicalize_name(need.name)
            if below == "torch" or not any(
                need.marker is None or need.marker.evaluate({"extra": extra}) for extra in its_extras | {""}
            ):
                continue
            if below not in needed or need.extras:
                needed.setdefault(below, version(below))
                waiting.append((below, frozenset(need.extras)))
    needed.pop("autoresearch-p2p", None)
    pins = [f"{name}=={number}" for name, number in sorted(needed.items())]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, *pins], check=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
