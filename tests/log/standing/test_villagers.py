"""Five nodes that research and tell each other, a thief among them who dates back; nobody measures anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.participants import track_records
from autoresearch.log.standing.queries import board
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.record import Network, Record
from autoresearch.run.experiment import Plan, abandoned, plan_as_it_stands
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.trust.identity import create_identity
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import Mark, RunStatus
from tests.daemon.toy import write_toy_task
from tests.log.standing.village import settled
from tests.record.making import NOW_MS

HOUR_MS = 3_600_000


class Villagers:
    """Notebooks of participants who trust each other; who is ``away`` hears nothing and is not heard."""

    def __init__(self, notebooks: list[Notebook], task: Task) -> None:
        self.notebooks, self.task, self.now_ms = notebooks, task, NOW_MS
        self.absent: set[int] = set()
        self._said: list[tuple[int, Record]] = []
        for number, notebook in enumerate(notebooks):
            notebook.announce = lambda record, number=number: self._said.append((number, record))
            notebook.publish_identity(NOW_MS)
        notebooks[0].publish_task(task, NOW_MS)
        self.tell()

    def tell(self) -> None:
        """Everybody hears what was said, in the order in which it was."""
        for speaker, record in self._said:
            for number, notebook in enumerate(self.notebooks):
                if not {number, speaker} & self.absent:
                    notebook.log.writer.ingest([(record.raw, record.signature)], now_ms=self.now_ms)

    def run(self, number: int, x: float, *, parent: Record | None = None, earlier_ms: int = 0) -> Record:
        """One publishes a claim and a run, as a node does."""
        self.now_ms += 60_000
        at_ms = self.now_ms - earlier_ms
        plan = self.plan(x, parent)
        if not earlier_ms:  # whoever copies had no idea of its own
            self.notebooks[number].publish_claim(plan, at_ms - 50_000, seconds=60)
        ended = msgspec.structs.replace(abandoned(""), status=RunStatus.OK, value=x)
        record = self.notebooks[number].publish_run(plan, ended, at_ms).record
        self.tell()
        return record

    def plan(self, x: float, parent: Record | None) -> Plan:
        return plan_as_it_stands(self.task, f"X = {x}\n", title=str(x), parent=parent.id if parent else None)

    def boards(self) -> list[list[tuple[str, str]]]:
        """Run and author, the best first, as each of them sees it."""
        return [
            [
                (row.id, row.author)
                for row in board(notebook.log, self.task.digest, trust_context(notebook.log), limit=9)
            ]
            for notebook in self.notebooks
        ]

    def marked(self) -> list[list[tuple[Mark, bytes]]]:
        """Marks and the records that they are for, as each sees them."""
        results = [track_records(settled(notebook.log)).values() for notebook in self.notebooks]
        return [[(mark.mark, mark.record) for track in tracks for mark in track.marks] for tracks in results]


@pytest.fixture
def villagers(tmp_path: Path) -> Iterator[Villagers]:
    homes = [Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / str(number))}) for number in range(5)]
    for home in homes:
        home.create()
    trust = Trust(participants=frozenset(create_identity(home.keys).root.public for home in homes))
    with ExitStack() as opened:
        for home in homes:
            save_manifest(home.manifest, NetworkManifest(Network(name="villagers"), trust=trust))
        notebooks = [opened.enter_context(Notebook(home)) for home in homes]
        yield Villagers(notebooks, load_task(write_toy_task(tmp_path / "task")))


@pytest.mark.slow
def test_name_and_place_are_the_honest_authors_within_the_length_of_a_run(villagers: Villagers) -> None:
    base = villagers.run(0, 0.9)
    villagers.now_ms += 3 * HOUR_MS
    honest = villagers.run(1, 0.2, parent=base)
    copy = villagers.run(4, 0.2, parent=base, earlier_ms=HOUR_MS)
    first = [(format_id(honest.id), honest.author.hex())]
    assert all(each[:1] != first for each in villagers.boards())
    own = [villagers.run(number, 0.9 - number / 10, parent=base) for number in (2, 3)]
    assert [honest.id in run.links and copy.id not in run.links for run in own] == [True, True]
    assert [each[:1] for each in villagers.boards()] == [first] * 5
    assert villagers.marked() == [[(Mark.COPIER, copy.id)]] * 5
    assert not any(notebook.log.records.count("commitment") for notebook in villagers.notebooks)


@pytest.mark.slow
def test_who_was_away_and_tells_late_is_marked_by_nobody(villagers: Villagers) -> None:
    base = villagers.run(0, 0.9)
    villagers.absent = {1}
    villagers.run(1, 0.2, parent=base)
    result = villagers.run(2, 0.2, parent=base)
    for number in (3, 4):
        villagers.run(number, 0.9 - number / 10, parent=base)
    villagers.absent = set()
    villagers.tell()
    assert [each[0] for each in villagers.boards()] == [(format_id(result.id), result.author.hex())] * 5
    assert villagers.marked() == [[]] * 5
