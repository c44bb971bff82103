import pytest

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from tests.record.making import NETWORK


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "log.sqlite", NETWORK) as opened:
        yield opened


@pytest.fixture
def blobs(tmp_path):
    with BlobStore(tmp_path / "blobs") as opened:
        yield opened
