"""What a node is to verify is made ready, whatever strangers put in their records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from autoresearch_daemon.duties import Duties

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
