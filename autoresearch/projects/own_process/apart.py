"""A component in a process of its own, with Python packages of its own: the process, and its beginning.

The other components of the project stay where they are; it reaches them as ever (``self.environment``).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoresearch.projects.inside.conversation import Conversation
from autoresearch.projects.model import Project
from autoresearch.projects.own_process.linking import Elsewhere, Link
from autoresearch.projects.own_process.members import Members, use
from autoresearch.projects.own_process.messages import Order, decode_run_order, encode

PR_SET_PDEATHSIG = 1
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from autoresearch.projects.own_process.apart import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)
_ROOT = Path(__file__).parents[3]


def started_apart(
    executable: str, project: Project, seed: int, owner: tuple[str, str], find: Callable[[str, str], Any]
) -> Elsewhere:
    """Start the process of a component. It is built there when it is first used, and ends with this process.

    ``find`` gives the components that it asks for.
    """
    (their_read, write), (read, their_write) = os.pipe(), os.pipe()
    subprocess.Popen(
        [executable, "-P", "-c", _START, str(_ROOT), str(their_read), str(their_write)],
        stdin=subprocess.DEVNULL,
        pass_fds=(their_read, their_write),
    )
    os.close(their_read)
    os.close(their_write)
    link = Link(Conversation(read, write), find)
    order = Order(project=project, mode="train", episodes=0, seed=seed, learned="", out="")
    link.talk.send([encode(order), *owner])
    return Elsewhere(link, *owner)


def main(read: int, write: int) -> None:
    """Be the process of the component that the first message names, until the other side ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    from autoresearch.projects import acr

    sys.modules["acr"] = acr
    talk = Conversation(read, write)
    told, kind, name = talk.receive()
    order = decode_run_order(told)
    sys.path.append(str(order.project.folder))
    members = _Apart(order.project, order.seed, (kind, name))
    members.link = Link(talk, members.get)
    use(members)
    members.link.serve()
    sys.stdout.flush()
    os._exit(0)  # a component's own threads must not hold it


class _Apart(Members):
    """The components as this one sees them: itself here, all others in the process that started this one."""

    link: Link

    def __init__(self, project: Project, seed: int, owner: tuple[str, str]) -> None:
        super().__init__(project, seed=seed, made=lambda _kind, _name, component: component)
        self._owner = owner

    def get(self, kind: str, name: str) -> Any:  # noqa: ANN401
        """The component of this name. Raises NotFound, and for the own one UsageError, ComponentFailed."""
        if (kind, name) == self._owner:
            return super().get(kind, name)
        if (kind, name) not in self.built:
            self.project.component(kind, name)
            self.built[kind, name] = Elsewhere(self.link, kind, name)
        return self.built[kind, name]
