import pytest

from tests.log.bundles.nodes import node


@pytest.fixture
def here(tmp_path):
    with node(tmp_path / "here") as opened:
        yield opened


@pytest.fixture
def there(tmp_path):
    with node(tmp_path / "there") as opened:
        yield opened
