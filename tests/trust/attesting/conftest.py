"""A post office of this machine, and a town whose attestors send their mails through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trust.attesting.postoffice import PostOffice, post_office
from tests.trust.attesting.town import Town, town


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostOffice]:
    with post_office(tmp_path_factory.mktemp("office")) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, office: PostOffice) -> Iterator[Town]:
    office.mails.clear()
    office.senders.clear()
    office.refused.clear()
    with town(tmp_path, office) as made:
        yield made
