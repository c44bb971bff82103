"""The page of rules: its numbers are those of the test of significance, and no name in it is markup."""

from __future__ import annotations

import random

import pytest

from autoresearch.ask.challenges.rules import (
    SEEN_NOISES,
    SEEN_SHARE,
    PageSection,
    as_html,
    as_markdown,
    joining,
    rules_of,
)
from autoresearch.judging.statistics import PAIRS, Finding, judge_pairs
from autoresearch.log.standing.verification import MINIMUM_EFFECT_NOISES
from autoresearch.record.kinds import Contest
from autoresearch.record.record import Network
from autoresearch.trust.manifest import PRESETS
from tests.nasty import NASTY

CONTEST = Contest(task=b"t" * 32, begins=1_800_000_000_000, ends=1_800_600_000_000)
FRIENDS = Network(name="tea", **PRESETS["friends"].constants)


def page(metric: dict[str, object], *, contest: Contest = CONTEST, network: Network = FRIENDS, **more: object) -> str:
    definition = {
        "metric": {"name": "loss", "direction": "minimize"} | metric,
        "budget": {"unit": "work", "amount": 60.0},
    }
    return as_markdown(rules_of("toy", "", definition | more, contest, network))


def share_seen(gain: float, verifiers: int, drawn: random.Random, contests: int = 1000) -> float:
    """How often so many verifiers see a gain, in standard deviations over seeds."""
    seen = 0
    for _ in range(contests):
        improvements: list[list[float]] = []
        for _ in range(verifiers):
            improvements.append([gain + drawn.gauss(0, 2**0.5) for _ in range(PAIRS)])
            result = judge_pairs(improvements, noise=1.0, minimum_effect=MINIMUM_EFFECT_NOISES)
            if result.finding is Finding.BETTER:
                seen += 1
                break
    return seen / contests


@pytest.mark.parametrize("verifiers", SEEN_NOISES)
def test_a_gain_of_the_page_is_seen_as_often_as_it_says(verifiers: int) -> None:
    drawn = random.Random(verifiers)
    assert share_seen(SEEN_NOISES[verifiers], verifiers, drawn) > SEEN_SHARE / 100 - 0.03
    assert share_seen(SEEN_NOISES[verifiers] - 0.4, verifiers, drawn) < SEEN_SHARE / 100
    assert share_seen(0.0, verifiers, drawn) < 0.01


def test_the_numbers_are_those_of_the_task() -> None:
    text = page({"noise": 0.001})
    assert "Two verifiers, 4 pairs: a gain of 0.0051 is seen with 90 %." in text
    assert "smaller is better" in text
    assert "60 work units" in text
    assert "3 of them must measure the reported value. The network needs 4 participants" in text
    lab = Network(name="tea", **PRESETS["lab"].constants)
    assert "2 of them must measure the reported value. The network needs 3 participants" in page({}, network=lab)
    assert "self-reported: an edit of the program could print any" in page({"source": "stdout"})
    assert "so an edit could print any" not in page({"source": "harness"})
    assert "a rough guess from 2 runs" in page({"noise": 0.001, "noise_runs": 2})


def test_a_budget_of_time_is_compared_on_one_kind_of_hardware() -> None:
    clock = {"unit": "seconds", "amount": 60.0}
    text = page({"noise": 0.001}, budget=clock)
    assert "60 seconds" in text
    assert "values are compared on one kind of hardware" in text
    assert "must measure the reported value" not in text
    assert "must measure the reported value" in page({}, budget=clock, evaluation={"tolerance": 0.01})


def test_a_noise_that_nobody_measured_is_said_with_the_way_to_measure_it() -> None:
    text = page({})
    assert "not measured yet" in text
    assert "autoresearch run DIR --seeds 5" in text
    assert "is seen with" not in text


def test_a_value_that_does_not_depend_on_the_seed_needs_no_noise() -> None:
    text = page({"noise": 0.0, "direction": "maximize"})
    assert "does not depend on the seed" in text
    assert "larger is better" in text


def test_the_quota_and_the_end_are_on_the_page() -> None:
    contest = Contest(task=b"t" * 32, begins=1_800_000_000_000, ends=1_800_600_000_000, runs=50)
    assert "the first 50 runs count" in page({}, contest=contest)
    assert "ends 2027-01-22T06:40:00Z" in page({}, contest=contest)
    assert "as many runs as it likes" in page({})


@pytest.mark.parametrize("name", [NASTY, "<script>alert(1)</script>", "[a](http://b)", "# x", "`a`", "*b*", "a\n\n# b"])
def test_no_name_is_markup(name: str) -> None:
    contest = Contest(task=b"t" * 32, begins=1_800_000_000_000, ends=1_800_600_000_000, title=name[:100])
    definition = {
        "metric": {"name": "loss", "direction": "minimize"},
        "budget": {"unit": "seconds", "amount": 60.0},
        "harness": {name: b"h" * 32},
    }
    table = PageSection("Places", [], table=[("place", "by"), ("1", f"{name} | x")])
    sections = [*rules_of(name, name, definition, contest, FRIENDS), joining("autoresearch join X", admits=True), table]
    html, text = as_html(sections), as_markdown(sections)
    assert "<script" not in html
    assert "\x1b" not in html + text
    assert "](http" not in text.replace("\\]", "")
    assert text.splitlines()[-1].replace("\\|", "").count("|") == 3, "a cell ends where its row says"
    assert sum(line.startswith("#") for line in text.splitlines()) == len(sections)
