"""Conditions choose among runs, and what is none is refused with the form that it has."""

from __future__ import annotations

import pytest

from autoresearch.ask.show import log_answer, parse_conditions
from autoresearch.errors import UsageError
from autoresearch.record.encoding import format_id


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        (["value<1.05"], {"faster"}),
        (["value <= 1.05"], {"faster", "deeper"}),
        (["value>1", "value<1.25"], {"deeper"}),
        (["value!=1.05"], {"faster", "baseline"}),
        (["status=crashed"], {"crashed"}),
        (["status!=ok"], {"crashed"}),
        (["title~depth"], {"deeper"}),
        (["replicate=0", "title~LR"], {"faster"}),
        (["value=7"], set()),
    ],
)
def test_a_condition_chooses_runs(story, conditions, names):
    records = log_answer(story.notebook.log, where=parse_conditions(conditions)).records
    assert {record.id for record in records} == {format_id(getattr(story, name)) for name in names}


def test_no_condition_chooses_all_and_since_the_newer(story):
    everything = log_answer(story.notebook.log, where=parse_conditions([])).records
    assert len(everything) == 6
    newest = log_answer(story.notebook.log, since_ms=everything[1].time_ms).records
    assert [record.id for record in newest] == [record.id for record in everything[:2]]


@pytest.mark.parametrize("text", ["", "value", "value~1", "title<a", "value<much", "nothing=1", "value<1 or value>2"])
def test_what_is_no_condition_is_refused_with_examples(text):
    with pytest.raises(UsageError) as refused:
        parse_conditions([text])
    assert "value<1.1" in refused.value.hint
