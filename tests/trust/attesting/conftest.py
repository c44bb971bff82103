"""A post office of this machine, and a town whose attestors send their mails through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.trust.attesting.postoffice import PostOffice
    from tests.trust.attesting.town import Town


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostOffice]:
    from tests.trust.attesting.postoffice import post_office  # of an extra, which not all tests of this folder need

    with post_office(tmp_path_factory.mktemp("office")) as made:
        yield made


@pytest.fixture
def place(tmp_path: Path, office: PostOffice) -> Iterator[Town]:
    from tests.trust.attesting.town import town

    office.mails.clear()
    office.senders.clear()
    office.refused.clear()
    with town(tmp_path, office) as made:
        yield made
