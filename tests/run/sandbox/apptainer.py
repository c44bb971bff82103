"""A stand-in for Apptainer, started as one: what the words of its command mean, carried out by bubblewrap.

A word that it does not know ends it. Its image is shown read only, so a mount point that is not there is an error, as
with Apptainer's underlay switched off.
"""

from __future__ import annotations

import os
import sys

FLAGS = {"--silent", "--containall", "--no-init", "--no-eval", "--no-home", "--no-privs"}
BUBBLEWRAP = "/usr/bin/bwrap"


def main() -> None:
    words = iter(sys.argv[1:])
    parts = [BUBBLEWRAP, "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
    binds, seen = [], set()
    for word in words:
        if word in FLAGS:
            seen.add(word)
        elif word == "--bind":
            source, target, *options = next(words).split(":")
            binds += ["--ro-bind" if options == ["ro"] else "--dev-bind", source, target]
        elif word == "--hostname":
            parts += ["--hostname", next(words)]
        elif word == "--no-mount":
            assert "sys" in next(words).split(",")
        elif word == "--add-caps":
            for capability in next(words).split(","):
                parts += ["--cap-add", capability]
        elif word == "--pwd":
            parts += ["--chdir", next(words)]
        elif word != "exec":
            image = word
            break
    assert seen == FLAGS, seen
    parts += ["--ro-bind", image, "/", "--proc", "/proc", "--dev", "/dev", *binds, "--remount-ro", "/dev"]
    os.execv(BUBBLEWRAP, [*parts, "--", *words])


if __name__ == "__main__":
    main()
