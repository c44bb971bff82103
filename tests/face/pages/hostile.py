"""A log in which strangers wrote markup, escapes and endless lines into everything that they can write."""

from __future__ import annotations

from contextlib import contextmanager

from autoresearch.record.kinds import Note, Proposer
from tests.face.pages.every_state import empty_world
from tests.log.standing.village import ANN, BEN, STRANGER
from tests.nasty import NASTY

# What no page says of its own: not a count, a year or an age in days.
PRODUCT = str(7411 * 6883)
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>&lt;{{ 7411 * 6883 }}</b>"
EVIL = f"{MARKUP} {NASTY}"


@contextmanager
def hostile_world(folder):
    """The world, a run, and a child run of it by which everything else is long."""
    with empty_world(folder) as world:
        text = f"DEPTH = 1  # {EVIL}\n# " + "x" * 1_000_000 + "\n"
        run_fields = {
            "reason": EVIL,
            "device": EVIL[:110],
            "proposer": Proposer(name=MARKUP[:40]),
            "hypothesis": (EVIL * 5)[:1000],
            "environment": {MARKUP[:40]: EVIL[:110], "nasty": NASTY},
            "metrics": {MARKUP[:40]: 1.5},
            "genome": {MARKUP[:40]: EVIL[:60], "DEPTH": 1, "LR": "y" * 120},
        }
        first = world.publish(1.9, EVIL[:110], by=STRANGER, source="DEPTH = 2\n", **run_fields)
        run = world.publish(
            1.8,
            "z" * 120,
            by=ANN,
            parent=first,
            source=text,
            log=(EVIL + "\n" + "w" * 1_000_000).encode(),
            **run_fields,
        )
        world.village.append(BEN, "note", Note(topic="insight", text=EVIL, task=world.village.task), [run.id])
        world.village.evaluate(run, 1.2, BEN)
        yield world, first, run
