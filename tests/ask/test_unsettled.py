"""Each answer that follows from what is judged of runs says how many are still to be judged."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from autoresearch.ask import questions
from autoresearch.ask.desk import Desk
from autoresearch.ask.operation import declared, operation_of
from autoresearch.log.blobs import BlobStore
from autoresearch.log.standing.answers import Judged
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, Village, settled

JUDGED = [name for name, each in declared(questions).items() if issubclass(operation_of(each).answers, Judged)]


def desk(village: Village, folder: Path) -> Desk:
    choices = folder / "local.sqlite"
    return Desk(village.log, BlobStore(folder / "blobs"), ANN.public, bytes(ANN.key), choices, lambda: village.now_ms)


def test_the_answers_about_runs_and_participants_do() -> None:
    assert {"best", "top", "runs", "progress", "lineage", "effects", "tasks", "credit"} <= set(JUDGED)


@pytest.mark.parametrize("name", [name for name in JUDGED if name != "challenge"])  # the village holds none
def test_an_answer_tells_the_number_and_nothing_once_all_is_settled(tmp_path: Path, name: str) -> None:
    village = Village.at(tmp_path)
    question, remote = declared(questions)[name], desk(village, tmp_path)
    named = {"id": "@", "participant": "me"}
    arguments = {name: named[name] for name in operation_of(question).in_path}
    arguments |= {"setting": ["LR"]} if name == "groups" else {}
    request = msgspec.convert(arguments, operation_of(question).takes)

    def unsettled() -> int:
        return question(remote, request).unsettled

    with village.log, remote.blobs:
        assert unsettled() == 0
        village.log.trust = Trust(participants=frozenset({ANN.public}))  # which the rows do not know yet
        village.run(1.5, "one")
        village.run(1.4, "two")
        assert unsettled() == 2
        settled(village.log)
        assert unsettled() == 0
