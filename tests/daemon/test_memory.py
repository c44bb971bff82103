"""What a search is told of the log: everybody's runs, and how far each may be built upon."""

import pytest
from autoresearch_daemon.workers.memory import recall

from autoresearch.identity import Trust
from autoresearch.log import BlobStore
from autoresearch.records import Task
from autoresearch.tasks import shipped_task
from tests.records.making import BLOB
from tests.views.village import ANN, AUTHOR, BEN, ROOTS, STRANGER, Village


def test_the_search_hears_who_stands_behind_what(tmp_path):
    village = Village.at(tmp_path)
    task = shipped_task()
    fields = {"task": task.digest, "budget": task.budget.amount}
    village.baseline = None  # it is on another task, and a run's parent never is
    start = village.run(2.0, "start", **fields)
    good = village.run(1.2, "good", parent=start, **fields)
    village.run(1.1, "mine", parent=start, by=BEN, **fields)
    village.run(1.0, "said", parent=start, by=ANN, **fields)
    village.run(0.9, "stranger", parent=start, by=STRANGER, **fields)
    false = village.run(0.8, "false", parent=start, by=ANN, **fields)
    definition = task.definition()
    published = Task(digest=task.digest, name=task.name, definition=definition, baseline=BLOB, harness={})
    village.append(AUTHOR, "task", published)
    village.confirm(good, 2.0, 1.3)
    village.refute(false, 1.9)
    with BlobStore(tmp_path / "blobs") as blobs:
        _, runs, _ = recall(village.log, blobs, task, village.now_ms, me=BEN.public, sources_by=None)
    village.log.close()
    heard = [(run.value, run.tier, run.believed) for run in runs]
    assert heard == [
        (2.0, 3, True),
        (pytest.approx(1.305), 0, True),
        (1.1, 2, True),
        (1.0, 3, True),
        (0.9, 4, False),
        (0.8, None, False),
    ]


@pytest.mark.parametrize(("named", "heard"), [(2, [True, False]), (0, [True, True])])
def test_a_stranger_teaches_the_search_nothing_also_where_too_few_are_attested_to_verify(tmp_path, named, heard):
    village = Village.at(tmp_path, Trust(participants=frozenset(root.public for root in ROOTS[:named])))
    task = shipped_task()
    fields = {"task": task.digest, "budget": task.budget.amount}
    village.baseline = None
    village.run(1.0, "said", by=ANN, **fields)
    village.run(5.0, "said", by=STRANGER, **fields)
    with BlobStore(tmp_path / "blobs") as blobs:
        _, runs, _ = recall(village.log, blobs, task, village.now_ms, me=BEN.public, sources_by=None)
    village.log.close()
    assert [run.believed for run in runs] == heard
