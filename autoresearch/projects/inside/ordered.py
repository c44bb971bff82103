"""``order``: does the order in ``order.json`` with the code of ``project.zip``, and leaves ``learned.zip``.

How it ends is told by marked lines in the log. It goes on from ``begin.zip`` where that lies in the folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import traceback
import zipfile
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.projects.exchange.learned import BEGIN, LEARNED, pack_learned, unpack_learned
from autoresearch.projects.inside.telling import Teller
from autoresearch.projects.own_process.episodes import Session, checked
from autoresearch.projects.own_process.messages import Failed, Message, Order, decode_run_order, marked

ORDER = "order.json"
CODE = "project.zip"


def main() -> None:
    """Do the order. A component's error is told, and is no error here."""
    here = Path.cwd()
    order = decode_run_order((here / ORDER).read_bytes())
    with tempfile.TemporaryDirectory(dir=here) as scratch:
        code, begin, out = (Path(scratch, name) for name in ("code", "begin", "out"))
        out.mkdir()
        with zipfile.ZipFile(here / CODE) as file:
            file.extractall(code)
        if (here / BEGIN).exists():
            unpack_learned(here / BEGIN, begin)
        order = _placed(order, code, learned=begin if begin.exists() else None, out=out)
        order.project.folder.mkdir(parents=True, exist_ok=True)
        os.chdir(order.project.folder)
        sys.path.append(str(order.project.folder))
        try:
            if order.episodes:
                told: list[Message] = [Session(order, Teller(order.episodes).figures, _stop().is_set).run()]
                pack_learned(out, here / LEARNED)
            else:
                told = [*checked(order)]
        except AutoresearchError as error:
            traceback.print_exc()
            told = [Failed(str(error), error.hint, error.exit_status)]
        except Exception as error:  # noqa: BLE001 - whatever a stranger's code does becomes a sentence
            traceback.print_exc()
            told = [Failed(f"{type(error).__name__}: {error}", "", 1)]
        os.chdir(here)
    sys.stdout.flush()
    for message in told:
        sys.stderr.write(marked(message).decode())


def _stop() -> threading.Event:
    """Set as soon as the other side lets go of the descriptor that this process was started with."""
    descriptor, asked = int(os.environ["AUTORESEARCH_TALK_READ"]), threading.Event()

    def listen() -> None:
        while os.read(descriptor, 1):
            pass
        asked.set()

    threading.Thread(target=listen, daemon=True).start()
    return asked


def _placed(order: Order, code: Path, *, learned: Path | None, out: Path) -> Order:
    """The order with the paths of this machine, as it looks in here."""
    project = order.project
    components = {
        kind: {name: msgspec.structs.replace(each, file=str(code / each.file)) for name, each in members.items()}
        for kind, members in project.components.items()
    }
    project = msgspec.structs.replace(
        project, folder=code / project.folder, ini=code / project.ini, components=components
    )
    return msgspec.structs.replace(order, project=project, learned=str(learned or ""), out=str(out))
