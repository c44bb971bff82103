"""What the ``id`` commands do with the log: delegate, revoke, add a device. The root key is at hand where it signs."""

from __future__ import annotations

from contextlib import suppress

from autoresearch.api import NameRequest, operations
from autoresearch.errors import DaemonNotRunning
from autoresearch.identity import (
    Device,
    Identity,
    KeyPair,
    adopt_root,
    own_device,
    read_answer,
    read_request,
    write_answer,
    write_request,
)
from autoresearch.log import Log
from autoresearch.notebook import Notebook, check_name, own_devices
from autoresearch.records import Merge, format_id
from autoresearch.views import participant_with_key
from autoresearch_cli import here
from autoresearch_cli.models import EnrolAnswer, MergeAnswer
from autoresearch_cli.rendering.output import print_json, print_text, say

ALL_RUNS = 1_000_000


def rows(mine: Identity) -> list[Device]:
    """This participant's devices, as the log here has them."""
    with Log.open(here.paths().log, here.manifest().network, read_only=True) as log:
        return own_devices(log, mine.root.public, here.now_ms())


def name_of(mine: Identity) -> str:
    """What this participant calls itself, as the log here has it."""
    with Log.open(here.paths().log, here.manifest().network, read_only=True) as log:
        return participant_with_key(log, mine.root.public).name


def call(name: str) -> None:
    """Publish what this participant calls itself, empty: nothing any more; through the daemon where one runs."""
    check_name(name)
    with suppress(DaemonNotRunning):
        here.client().ask(operations.SET_NAME, NameRequest(name=name))
        return
    with Notebook(here.paths()) as notebook:
        notebook.publish_name(name, here.now_ms())


def renew(mine: Identity) -> None:
    """Delegate this device anew, whatever is left of the last time."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.delegate(mine.root, here.now_ms())
        notebook.publish_identity(here.now_ms())


def revoke(mine: Identity, device: bytes, reason: str) -> None:
    """Revoke a device."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.revoke(mine.root, device, here.now_ms(), reason=reason)


def merge(mine: Identity, device: bytes) -> MergeAnswer:
    """End the forks of a device of this participant."""
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        log = notebook.log
        held = [run for run in log.records.newest(kind="run", author=device, limit=ALL_RUNS) if log.devices.forked(run)]
        record = notebook.merge(mine.root, device, here.now_ms())
        assert isinstance(record.body, Merge)
        heads = [log.records.get(head) for head in record.body.heads]
        return MergeAnswer(
            device_key=device.hex(),
            id=format_id(record.id),
            heads=[format_id(head.id) for head in heads],
            seq=max(head.seq for head in heads),
            runs=sum(not log.devices.forked(run) for run in held),
        )


def request(*, json: bool) -> None:
    """On the new machine: its request."""
    device = own_device(here.paths().keys).public
    _print("request", device, write_request(device), json=json)
    if not json:
        say("→ on the machine with the root key: autoresearch id add-device and this text")


def approve(text: str, mine: Identity, *, json: bool) -> None:
    """Where the root key is: delegate the device that asks."""
    device = read_request(text)
    with Notebook(here.paths()) as notebook:
        assert isinstance(mine.root, KeyPair)
        notebook.publish_identity(here.now_ms())
        record = notebook.delegate(mine.root, here.now_ms(), device=device)
    _print("answer", device, write_answer(record), json=json)
    if not json:
        say("→ on the new machine: autoresearch id add-device and this text")


def adopt(text: str, *, json: bool) -> None:
    """On the new machine: keep the answer, and agree."""
    folder = here.paths().keys
    device = own_device(folder).public
    record = read_answer(text, device, here.manifest().network, now_ms=here.now_ms())
    adopt_root(folder, record.author)
    with Notebook(here.paths()) as notebook:
        notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=here.now_ms())
        notebook.publish_identity(here.now_ms())
    _print("done", device, "", json=json)
    if not json:
        say(f"this device speaks for {record.author.hex()} now → autoresearch up")


def _print(step: str, device: bytes, text: str, *, json: bool) -> None:
    if json:
        print_json(EnrolAnswer(step=step, device_key=device.hex(), text=text))
    elif text:
        print_text(text)
