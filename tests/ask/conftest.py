"""A fresh notebook, and one with a story in it."""

from dataclasses import replace
from shutil import copytree

import pytest

from tests.ask.notebook import Notebook, tell
from tests.log.standing.village import Village


@pytest.fixture
def notebook(tmp_path):
    with Notebook.at(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def written_story(tmp_path_factory):
    """The story, written once: every record waits for the disk."""
    folder = tmp_path_factory.mktemp("told")
    with Notebook.at(folder) as notebook:
        return folder, tell(notebook)


@pytest.fixture
def story(written_story, tmp_path):
    folder, written = written_story
    copytree(folder, tmp_path / "copy")
    keys = {"mine": written.notebook.mine, "other": written.notebook.other, "now_ms": written.notebook.now_ms}
    with Notebook.at(tmp_path / "copy", **keys) as notebook:
        yield replace(written, notebook=notebook)


@pytest.fixture
def village(tmp_path):
    made = Village.at(tmp_path)
    yield made
    made.log.close()
