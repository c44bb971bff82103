"""One search over everything: each kind of thing is found by its words, and by nothing else."""

import msgspec
import pytest

from autoresearch.ask.desk import Desk
from autoresearch.ask.questions import search
from autoresearch.ask.requests import SearchOf
from autoresearch.errors import NotFound
from autoresearch.record.encoding import format_id, short_id
from tests.nasty import NASTY


@pytest.fixture
def find(story, tmp_path):
    notebook = story.notebook
    desk = Desk(notebook.log, notebook.blobs, notebook.mine.public, None, tmp_path / "choices", lambda: 0)
    return lambda query="", **options: search(desk, SearchOf(query=query, **options))


def kinds(answer):
    """What was found, without the kinds of which nothing was."""
    lists = ("commands", "settings", "participants", "components", "notes", "runs")
    return {name for name in lists if getattr(answer, name)}


def test_a_word_finds_whatever_has_it(story, find):
    depth = find("depth")
    assert kinds(depth) == {"settings", "notes", "runs"}
    assert (depth.task, depth.settings, depth.total) == ("grammar", ["DEPTH"], 1)
    assert [run.id for run in depth.runs] == [format_id(story.deeper)]
    assert [note.text for note in depth.notes] == ["depth helps"]
    key = story.notebook.other.public.hex()
    assert [participant.key for participant in find(key[:12]).participants] == [key]
    assert [run.id for run in find(short_id(story.faster)).runs] == [format_id(story.faster)]
    assert [command.command for command in find("leaderboard of").commands] == ["top"]


def test_all_words_have_to_be_there_and_a_kind_is_found_alone(find):
    assert kinds(find("leaderboard depth")) == {"notes"}, "no note has both words: one of them is enough"
    assert kinds(find("leaderboard depth", kind="command")) == set()
    assert kinds(find("depth", kind="setting")) == {"settings"}
    assert kinds(find("depth", type="policy")) == set()


def test_without_words_the_newest_of_each_kind_are_found(story, find):
    answer = find(limit=1)
    assert kinds(answer) == {"settings", "participants", "notes", "runs"}
    assert (answer.runs[0].id, answer.total) == (format_id(story.crashed), 4)


def test_an_empty_log_has_commands_and_a_task_that_is_not_there_is_refused(notebook, tmp_path):
    desk = Desk(notebook.log, notebook.blobs, None, None, tmp_path / "choices", lambda: 0)
    assert kinds(search(desk, SearchOf(query="daemon"))) == {"commands"}
    with pytest.raises(NotFound):
        search(desk, SearchOf(query="daemon", task="nowhere"))


@pytest.mark.parametrize(
    "words", [NASTY, '"', "*", "AND", "a OR b", "^x", "NEAR(", "\0", "bafy", "x" * 500, "a " * 250]
)
def test_any_text_may_be_looked_for(find, words):
    msgspec.json.encode(find(words))
