"""What people see of verification: states, who measured, sections, demotions, what has to be compared again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoresearch.log import Log
from autoresearch.networks import Manifest, save_manifest
from autoresearch.paths import Paths
from autoresearch.records import format_id, short_id
from tests.cli.conftest import Cli
from tests.records.making import NETWORK
from tests.views.village import ANN, BEN, CEM, DOT, EVE, STRANGER, TRUST, Village


@pytest.fixture
def village(paths: Paths) -> Iterator[Village]:
    """This machine's notebook is that of a village."""
    paths.create()
    save_manifest(paths.manifest, Manifest(network=NETWORK, trust=TRUST))
    with Log.open(paths.log, NETWORK, trust=TRUST) as log:
        yield Village(log)


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_best_shows_what_others_measured_with_its_interval_and_how_many_they_were(cli: Cli, village: Village) -> None:
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    checked = village.run(1.1, "checked", by=BEN)
    village.evaluate(checked, 1.1, ANN, CEM, DOT)
    village.run(1.0, "said", by=CEM)
    shown = dict(row[:2] for row in rows(cli("best").stdout))
    assert shown["best"].startswith("1.2250")
    assert shown["confirmed"].startswith("1.2250 ± 0.0257 · 4 runs of others · checked by 3")
    assert "“checked”" in shown["provisional"]
    assert "“said”" in shown["reported"]
    assert cli("show", "@", "--field", "id").stdout.strip() == format_id(steady.id)


def test_best_says_what_was_confirmed_and_is_no_more(cli: Cli, village: Village) -> None:
    fake = village.run(0.9, "magic")
    village.confirm(fake, 2.0, 0.92)
    village.evaluate(fake, 1.9, EVE)
    assert f"{short_id(fake.id)} “magic” is disputed now, was confirmed until 20" in cli("best").stdout
    assert "was confirmed until 20" in cli("show", format_id(fake.id)).stdout


def test_top_has_the_confirmed_first_and_strangers_last(cli: Cli, village: Village) -> None:
    village.run(0.5, "incredible", by=STRANGER)
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    false = village.run(0.9, "false", by=BEN)
    village.run(0.95, "child", parent=false, by=CEM)
    village.refute(false, 1.9)
    table = rows(cli("top").stdout)
    assert [(row[0], row[8], row[5], row[13], row[14]) for row in table] == [
        ("1", "steady", "confirmed", "confirmed", ""),
        ("0", "child", "reported", "open", "re-test"),
        ("0", "baseline", "reported", "open", ""),
        ("0", "false", "refuted", "failed", ""),
        ("0", "incredible", "reported", "unattested", ""),
    ]
    assert table[0][9:13] == ["1.225", "0.0256749", "4", "3"]
    person = cli("--color", "always", "top").stdout
    for heading in ("confirmed, ranked by what others measured", "by participants whom nobody attested"):
        assert heading in person
    assert "re-test: child" in person


def test_show_lists_who_measured_what_and_what_came_of_it(cli: Cli, village: Village) -> None:
    false = village.run(0.9, "false", by=BEN)
    child = village.run(0.95, "child", parent=false, by=CEM)
    village.refute(false, 1.9)
    shown = cli("show", format_id(false.id)).stdout
    assert "refuted: others measured it and came to another number" in shown
    assert "by 5 other participants" in shown
    assert "reported → disputed → refuted" in shown
    assert shown.count("evaluate") == 5
    assert "re-test: the run that it builds on was refuted" in cli("show", format_id(child.id)).stdout


def test_log_and_lineage_say_the_state(cli: Cli, village: Village) -> None:
    steady = village.run(1.22, "steady", by=ANN)
    village.confirm(steady, 2.0, 1.22)
    assert {row[0]: row[6] for row in rows(cli("log", "--kind", "run").stdout)}[format_id(steady.id)] == "confirmed"
    assert "steady: 1.22 · confirmed" in " ".join(cli("--color", "always", "log", "--kind", "run").stdout.split())
    assert [row[6] for row in rows(cli("lineage", "@").stdout)] == ["reported", "confirmed"]


def test_where_nobody_is_named_all_words_are_alike_and_it_says_so(cli: Cli, paths: Paths) -> None:
    paths.create()
    save_manifest(paths.manifest, Manifest(network=NETWORK))
    with Log.open(paths.log, NETWORK) as log:
        Village(log).run(1.2, "said", by=STRANGER)
    result = cli("top")
    assert [(row[0], row[8], row[13]) for row in rows(result.stdout)] == [("1", "said", ""), ("2", "baseline", "")]
    assert "none is confirmed yet, and verification needs at least 4 participants" in result.stderr
