"""What commands tell of a run's change, and what settings did."""

from __future__ import annotations

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.records import LogAnswer, ShowAnswer
from autoresearch.ask.runs.answers import EffectsAnswer, TopAnswer
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.run.experiment import plan_as_it_stands
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, TRAIN, Filled, measured
from tests.cli.test_json import strictly
from tests.nasty import NASTY, harms

FIRST = {"X": 1.3, "LR": 0.1, "+muon": False, NASTY[:50]: 100}
SECOND = {"X": 1.3, "LR": 0.2, "+muon": True, NASTY[:50]: 101}
HEADLINE = "Add muon, LR 0.1 → 0.2"


@pytest.fixture
def run_id(paths: Paths, filled: Filled) -> str:
    """The best run: the search made it of another run."""
    with Notebook(paths) as notebook:
        made = None
        for number, genome in enumerate((FIRST, SECOND)):
            plan = plan_as_it_stands(
                filled.task, TRAIN.format(x=1.2 - number / 10), title=f"title {number}", parent=made, genome=genome,
                hypothesis="of the search", proposer="search",
            )  # fmt: skip
            made = notebook.publish_run(plan, measured(1.2 - number / 10), START_MS + 700_000 + number).record.id
        assert made is not None
        return format_id(made)


def test_a_run_of_the_search_is_told_by_its_change_wherever_it_has_one_line(cli: Cli, run_id: str) -> None:
    answer = strictly(cli("show", run_id, "--json").stdout, ShowAnswer)
    assert answer.run is not None
    assert (answer.run.run.title, answer.run.standing.headline[: len(HEADLINE)]) == ("title 1", HEADLINE)
    assert [change.text for change in answer.changes][:2] == ["+muon", "LR 0.1→0.2"]
    assert answer.because == "Nothing like it was compared before."
    top = strictly(cli("top", "--json").stdout, TopAnswer)
    assert top.programs[0].headline.startswith(HEADLINE)
    assert (
        strictly(cli("node", "records", "--kind", "run", "--json").stdout, LogAnswer)
        .records[0]
        .summary.startswith(HEADLINE)
    )
    for command in (
        ("best",),
        ("top",),
        ("run", "lineage", run_id),
        ("node", "records", "--kind", "run"),
        ("show", run_id),
    ):
        done = cli(*command)
        assert HEADLINE in done.stdout, command
        assert not harms(done.stdout)


def test_a_person_s_run_keeps_its_title_in_a_line_and_show_tells_its_change(cli: Cli, filled: Filled) -> None:
    assert "lower X again" in cli("top").stdout
    lines = dict(line.split("\t", 1) for line in cli("show", filled.best).stdout.splitlines() if "\t" in line)
    assert (lines["title"], lines["change"]) == ("lower X again", "X 1.4 → 1.3")
    assert "why" not in lines, "its hypothesis says so"


def test_effects_are_those_of_pairs(cli: Cli, filled: Filled, paths: Paths) -> None:
    (effect,) = strictly(cli("task", "effects", "--json").stdout, EffectsAnswer).effects
    assert (effect.name, effect.pairs, effect.better) == ("X", 4, 0)
    assert effect.median > 0
    assert (effect.low, effect.raised_failed, effect.lowered_failed) == (None, 1, 0)
    first, *_ = cli("task", "effects").stdout.splitlines()
    assert first.startswith("X\t4\t0\t")
    assert first.endswith(f"raised: 1 of {effect.raised} crashed")
    assert cli("task", "effects", "--task", "nothing").exit_code == 4
