"""What ``task new`` and ``run`` make of small folders as one finds them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from benchmarks.corpus import PARTS, Verdict
from benchmarks.corpus_folders import (
    StrangerFolder,
    judge_folder,
    scratch_folder,
    stranger_folders,
)
from tests.warm import COMMAND, PRELOADED, warm


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A home for all."""
    with scratch_folder() as folder:
        yield folder


def test_the_corpus_says_what_is_right_of_each_folder(tmp_path: Path) -> None:
    folders = [folder for part in PARTS for folder in stranger_folders(part)]
    assert len(folders) >= 30
    for folder in folders:
        assert bool(folder.hint) != bool(folder.results), folder.name
        assert all(result.names and result.values and result.directions for result in folder.results), folder.name
        place = folder.write(tmp_path / folder.part / folder.name)
        assert {str(path.relative_to(place)) for path in place.rglob("*")} >= set(folder.files)


@pytest.mark.slow
@pytest.mark.parametrize("folder", stranger_folders("seen"), ids=str)
def test_a_folder_becomes_a_task_or_is_refused_with_what_to_do(folder: StrangerFolder, scratch: Path) -> None:
    if missing := folder.missing():
        pytest.skip(f"this machine has no {' and no '.join(missing)}")
    judgement = judge_folder(folder, scratch, partial(warm(PRELOADED).run, COMMAND))
    assert judgement.verdict is Verdict.RIGHT, judgement.reason
