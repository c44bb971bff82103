"""A log that has a run in every state, notes, several participants and a program of two files, for the pages."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import msgspec

from autoresearch.ask.people.voters import voters_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.log.standing.context import participant_of
from autoresearch.record.kinds import BlobRef, Note, Proposer, Withdrawal
from autoresearch.record.record import Record
from autoresearch.task.program import join_files
from tests.daemon.api.conftest import SmallNode
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, DOT, EVE, PEOPLE, STRANGER, Village
from tests.record.making import run_body

TRAIN = "DEPTH = {depth}\nLR = {lr}\n\n\n" + "".join(f"# line {number}\n" for number in range(20)) + "print(DEPTH)\n"
LOG = "step 1 loss 2.0\rstep 1 loss 1.9\n\x1b[31mred\x1b[0m <b>bold</b>\nval_bpb: 1.9\n"


@dataclass
class World:
    """The runs by their state, and the node that serves them."""

    village: Village
    blobs: BlobStore
    runs: dict[str, Record]
    node: SmallNode
    made: int = 0

    def publish(self, value, title, *, by=AUTHOR, parent=None, source=None, log=b"", has_source=True, **fields):
        """A run with everything that a page shows."""
        village = self.village
        self.made += 1
        depth, above = 4 + self.made, parent or village.baseline
        text = (source or TRAIN.format(depth=depth, lr=0.1)).encode()
        run_fields = {
            "curve": [4.0, 2.0, 1.5, 1.2],
            "environment": {"python": "3.11.9"},
            "device": f"card of {title}"[:60],
        }
        run_fields |= {"proposer": Proposer(name="search"), "hypothesis": f"why {title}", "duration_ms": 26_000}
        run_fields |= {"genome": {"DEPTH": depth, "LR": 0.1}, "cpu_ms": 51_000, "peak_memory_bytes": 1 << 20} | fields
        body = run_body(
            value,
            source=text,
            title=title,
            parent=above.id,
            task=village.task,
            budget=village.definition["budget"]["amount"],
        )
        log_ref = self.blobs.put(log) if log else None
        source_ref = self.blobs.put(text) if has_source else BlobRef(sha256=b"?" * 32, size=5)
        body = msgspec.structs.replace(body, source=source_ref, log=log_ref, **run_fields)
        record = village.append(by, "run", body, [above.id])
        self.runs[title] = record
        return record


class VillageNode(SmallNode):
    """A node of the village's author."""

    def status(self):
        log, now_ms = self.log, self.notebook.now_ms
        me = {"participant": participant_of(log, AUTHOR.public, now_ms), "device_key": AUTHOR.public.hex()}
        return msgspec.structs.replace(super().status(), **me)

    def voters(self):
        return voters_answer(self.log, AUTHOR.public, self.notebook.now_ms)


@contextmanager
def empty_world(folder, **options):
    """The village with nothing but its baseline."""
    village, blobs = Village.at(folder, **options), BlobStore(folder / "blobs")
    book = SimpleNamespace(log=village.log, blobs=blobs, mine=AUTHOR, now_ms=village.now_ms)
    node = VillageNode(book, folder / "local.sqlite")
    try:
        yield World(village, blobs, {}, node)
    finally:
        node.local.close()
        blobs.close()
        village.log.close()


@contextmanager
def every_state(folder):
    """A run in every state; the confirmed ones one upon the other."""
    with empty_world(folder) as world:
        tell(world)
        world.node.notebook.now_ms = world.village.now_ms
        yield world


def tell(world: World) -> None:
    """Publish and verify."""
    village = world.village
    first = world.publish(1.9, "first", by=ANN)
    village.confirm(first, 2.0, 1.89)
    two_files = join_files({"train.py": TRAIN.format(depth=9, lr=0.1), "model.py": "WIDTH = 2\n"})
    confirmed = world.publish(1.7, "confirmed", parent=first, source=two_files, log=LOG.encode())
    village.confirm(confirmed, 1.89, 1.71)
    refuted = world.publish(0.5, "refuted", by=BEN, parent=confirmed)
    refute(world, refuted, 1.9)
    disputed = world.publish(1.6, "disputed", by=CEM, parent=confirmed)
    village.evaluate(disputed, 1.95, ANN)
    missed = world.publish(1.69, "not replicated", by=CEM, parent=confirmed)
    village.evaluate(missed, 1.69, ANN, BEN, DOT)
    village.replicate(missed, 1.71, 1.9, ANN, BEN, DOT, EVE)
    provisional = world.publish(1.66, "provisional", by=EVE, parent=confirmed)
    village.evaluate(provisional, 1.66, ANN, BEN, CEM)
    world.publish(1.65, "reported", parent=provisional)
    withheld = world.publish(1.62, "unavailable", by=EVE, parent=provisional)
    village.fails(withheld, "unavailable", ANN, BEN, DOT)
    world.publish(None, "crashed", parent=confirmed, status="crashed", reason="division by zero")
    world.publish(1.64, "stranger", by=STRANGER, parent=confirmed)
    world.runs["fraud"] = village.run(1.5, "fraud", by=DOT, parent=confirmed, seed=7)
    withdrawn = world.publish(1.63, "withdrawn", parent=confirmed)
    village.append(AUTHOR, "withdrawal", Withdrawal(reason="a slip"), [withdrawn.id])
    note = Note(topic="insight", text="depth helps\nup to nine", task=village.task)
    village.append(ANN, "note", note, [confirmed.id])


def refute(world: World, run: Record, value: float) -> None:
    """Verifiers come to another value, and so does the larger committee."""
    world.village.refute(run, value)


__all__ = ["PEOPLE", "World", "empty_world", "every_state"]
