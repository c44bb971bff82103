"""What people type for a run."""

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.boards import resolve_reference, top_answer
from autoresearch.errors import AmbiguousId, AutoresearchError, NotFound, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.record.encoding import format_id, short_id
from tests.ask.registry.making import publish


def resolve(story, text, **options):
    return resolve_reference(story.notebook.log, text, author=story.notebook.mine.public, **options)


def test_an_id_its_beginning_and_its_short_form_name_a_record(story):
    for text in (
        format_id(story.deeper),
        format_id(story.deeper)[:20],
        short_id(story.deeper),
        f" {short_id(story.note)}",
    ):
        assert resolve(story, text) in (story.deeper, story.note)
    assert resolve(story, short_id(story.note)) == story.note


def test_at_is_the_best_and_mine_the_best_of_this_device(story):
    assert resolve(story, "@") == story.faster
    assert resolve(story, "@mine") == story.deeper
    assert resolve_reference(story.notebook.log, "@mine", author=story.notebook.other.public) == story.faster


@pytest.mark.parametrize(
    ("text", "name"),
    [("@~1", "deeper"), ("@~", "deeper"), ("@~2", "baseline"), ("@~0", "faster"), ("@mine~1", "baseline")],
)
def test_a_tilde_goes_back_to_parents(story, text, name):
    assert resolve(story, text) == getattr(story, name)


def test_a_tilde_follows_ids_too(story):
    assert resolve(story, f"{short_id(story.crashed)}~3") == story.baseline


def test_the_task_decides_what_is_best(story):
    other = story.notebook.task("other")
    run = story.notebook.run(other, 3.0)
    log = story.notebook.log
    assert resolve(story, "@", task=find_task(log, "other")) == run
    assert resolve(story, "@", task=find_task(log, "grammar")) == story.faster
    assert resolve(story, "@") == run


def test_going_back_too_far_says_how_far_one_can_go(story):
    with pytest.raises(NotFound, match="has 2 ancestors, not 3"):
        resolve(story, "@~3")


def test_a_parent_that_did_not_arrive_is_not_here(notebook):
    run = notebook.run(notebook.task(), 1.0, parent=b"\1" * 32)
    with pytest.raises(NotFound, match="not in this log"):
        resolve_reference(notebook.log, f"{short_id(run)}~1")


def test_a_tilde_after_what_is_no_run_is_refused(story):
    with pytest.raises(UsageError, match="is a note"):
        resolve(story, f"{short_id(story.note)}~1")


@pytest.mark.parametrize(
    "text", ["", " ", "~1", "@@", "@best", "@~x", "@~-1", "@~1~1", "a~b", "@~99999", "é", "bafyrei1"]
)
def test_what_is_no_reference_is_refused_with_a_sentence(story, text):
    with pytest.raises(UsageError) as caught:
        resolve(story, text)
    assert str(caught.value)


def test_a_number_is_a_row_of_the_board_as_it_is_shown(story):
    log, mine = story.notebook.log, story.notebook.mine.public
    rows = top_answer(log, find_task(log, "grammar"), author=mine).programs
    assert len(rows) >= 2
    assert [format_id(resolve(story, f"#{number}")) for number in range(1, len(rows) + 1)] == [row.id for row in rows]
    assert resolve(story, "#1~1") == story.deeper
    with pytest.raises(NotFound, match=f"has {len(rows)} rows, not 999"):
        resolve(story, "#999")
    for text in ("#0", "#", "#1000", "#x"):
        with pytest.raises(UsageError, match="is not an id"):
            resolve(story, text)


def test_the_baseline_has_a_name(story):
    assert resolve(story, "@baseline") == story.baseline


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("best", "did you mean @? @ is the best run"),
        ("HEAD~1", "did you mean @~1? "),
        ("@best", "did you mean @? "),
        ("baseline", "did you mean @baseline? "),
        ("first", "did you mean @baseline? "),
        ("mine", "did you mean @mine? "),
        ("latest", "autoresearch run list begins with the newest"),
        ("1", "as autoresearch run list has them; @ for the best run"),
        ("@nobody", "@ for the best run, @mine for"),
    ],
)
def test_a_word_of_another_tool_leads_on_to_a_reference(story, text, hint):
    with pytest.raises((NotFound, UsageError)) as caught:
        resolve(story, text)
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["right", "environment/right", "alike"])
def test_the_name_of_a_component_leads_to_its_id(story, tmp_path, text):
    name = text.rpartition("/")[2]
    publish(story.notebook.log, BlobStore(tmp_path / "blobs"), name)
    with pytest.raises((NotFound, UsageError)) as caught:
        resolve(story, text)
    assert caught.value.hint == f"the id of a component: autoresearch search {name}"


def test_a_beginning_that_all_share_is_ambiguous_and_lists_candidates(story):
    with pytest.raises(AmbiguousId) as caught:
        resolve(story, "bafyrei")
    assert short_id(story.note) in caught.value.candidates


def test_without_own_runs_there_is_no_mine(story):
    for author in (None, b"\1" * 32):
        with pytest.raises(NotFound, match="this device"):
            resolve_reference(story.notebook.log, "@mine", author=author)


def test_an_empty_log_knows_nothing(notebook):
    for text in ("@", "@mine", "@~1", "abcd"):
        with pytest.raises(NotFound) as caught:
            resolve_reference(notebook.log, text)
        assert isinstance(caught.value, AutoresearchError)
