"""The state of the progress page as an address: it comes back as it was, and nonsense in it harms nothing."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.requests import Filtered
from autoresearch.face.pages.chart import Query
from autoresearch.words import RunMark

MARKS = [mark.value for mark in RunMark]
whole = st.integers(0, 2**53)


def text(longest):
    return st.text(max_size=longest).map(str.strip)


@st.composite
def queries(draw):
    chosen = draw(st.sets(st.sampled_from(MARKS)))
    return Query(
        task=draw(text(128)),
        state=tuple(mark for mark in MARKS if mark in chosen),
        by=draw(text(64)),
        has=draw(text(64)),
        q=draw(text(200)),
        hardware=draw(text(128)),
        sort=draw(st.sampled_from(["time", "-time", "value", "-value", "change", "-change", "cost", "-number"])),
        page=draw(st.integers(1, 2**31)),
        size=draw(st.integers(1, 200)),
        until=draw(whole),
        x=draw(st.sampled_from(["number", "time", "cost"])),
        y=draw(st.sampled_from(["", "value", "distance", "full"])),
        since=draw(whole),
        to=draw(whole),
        chart=draw(st.sampled_from(["", "small", "large"])),
        cols=draw(st.sampled_from([(), ("number",), ("reported", "because")])),
    )


def read(search):
    return Query.read(parse_qsl(search, keep_blank_values=True, errors="surrogateescape"))


@given(queries())
def test_an_address_says_the_whole_state(query):
    assert read(query.search()) == query
    assert read(urlsplit(query.address()).query) == query


@given(st.lists(st.tuples(st.sampled_from([*Query.__dataclass_fields__, "other"]), st.text(max_size=300)), max_size=12))
def test_whatever_an_address_says_is_a_state_that_the_operations_take(pairs):
    query = Query.read(pairs)
    assert read(query.search()) == query
    assert isinstance(query.runs(), Filtered)
    assert query.found_progress().x in {"number", "time", "cost"}


def test_what_has_its_default_is_left_out():
    assert Query().address() == "/"
    assert Query(state=("confirmed", "refuted"), sort="value").address() == "/?state=confirmed,refuted&sort=value"
    assert Query(task="grammar", x="time").address(x="number") == "/?task=grammar"


def test_a_form_gives_each_mark_by_itself():
    assert read("state=refuted&state=confirmed&state=nonsense").state == ("confirmed", "refuted")
    assert read("state=not+replicated,failed") == Query(state=("failed", "not replicated"))


@pytest.mark.parametrize("change", [{"q": "x"}, {"state": ("failed",)}, {"sort": "value"}, {"size": 10}])
def test_another_filter_or_order_begins_on_the_first_page_with_the_newest_runs(change):
    moved = Query(page=7, until=99).with_(**change)
    assert (moved.page, moved.until) == (1, 0)


def test_the_next_page_keeps_new_runs_off():
    assert Query(q="x").address(page=2, until=99) == "/?q=x&page=2&until=99"


@pytest.mark.parametrize(
    "search", ["page=0", "page=-1", "page=x", "size=201", "sort=name", "x=y", "until=9e9", "page=٣"]
)
def test_what_is_out_of_range_has_its_default(search):
    assert read(search) == Query()


def test_filters_are_cleared_and_the_rest_stays():
    query = Query(state=("failed",), by="ab", has="LR", q="x", hardware="card", x="time", sort="value", page=3)
    assert query.is_filtered
    assert query.cleared() == Query(x="time", sort="value")
    assert not query.cleared().is_filtered
