"""What a node is to verify is made ready, whatever strangers put in their records."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import msgspec
from autoresearch_daemon.duties import AGAIN_MS, Duties

from autoresearch.errors import NotFound
from autoresearch.records import BlobRef
from tests.daemon.test_revealing import AUTHOR, LATER_MS, Place
from tests.records.making import run_body


def test_a_source_that_is_no_text_is_handed_to_the_worker_and_stops_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    source = place.notebook.blobs.put(b"\xff\xfe no text")
    body = msgspec.structs.replace(run_body(1.1, source=b"other"), source=source)
    place.comes(AUTHOR, body, "run", seq=4)

    async def fetch(_: BlobRef) -> None:
        return None

    duties = Duties(place.notebook, fetch)
    found = asyncio.run(duties.find(body.task, LATER_MS))

    assert found is not None
    check = duties.check(found[0])
    assert check is not None
    assert check.source.endswith(" no text")


def test_what_cannot_be_had_is_tried_more_and_more_seldom(tmp_path: Path) -> None:
    place = Place(tmp_path)
    asked: list[int] = []
    now_ms = LATER_MS

    async def fetch(_: BlobRef) -> None:
        asked.append(now_ms)
        raise NotFound("nobody has it")

    duties = Duties(place.notebook, fetch)
    for _ in range(60):
        now_ms += AGAIN_MS // 2
        assert asyncio.run(duties.find(place.run.body.task, now_ms)) is None  # type: ignore[union-attr]

    waits = [after - before for before, after in pairwise(asked)]
    assert waits == [AGAIN_MS * 2**times for times in range(len(waits))]
    assert len(waits) == 4
