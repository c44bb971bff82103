import pytest

from tests.log.bundles.nodes import node


@pytest.fixture
def sender(tmp_path):
    with node(tmp_path / "here") as opened:
        yield opened


@pytest.fixture
def receiver(tmp_path):
    with node(tmp_path / "there") as opened:
        yield opened
