"""``verify --list``: which runs wait for verifiers, from the log alone."""

from __future__ import annotations

import msgspec
import pytest
from autoresearch_cli.rendering.output import print_list

from autoresearch.ask.people.participants import AwaitedView, VerificationsAnswer
from autoresearch.face.columns.runs import AWAITED_COLUMNS
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.trust.identity import create_identity
from tests.cli.conftest import Cli
from tests.log.standing.village import ANN, BEN, CEM, DOT, Village
from tests.nasty import NASTY, harms


def test_it_lists_each_run_with_who_measured_it(cli: Cli, village: Village) -> None:
    waiting = village.run(1.9, "waiting", by=ANN)
    village.evaluate(waiting, 1.9, BEN)
    confirmed = village.run(1.0, "done", by=CEM)
    village.confirm(confirmed, 2.0, 1.0)
    result = cli("verify", "--list")
    assert result.exit_code == 0, result.stderr
    rows = {row[0]: row for row in (line.split("\t") for line in result.stdout.splitlines())}
    assert rows[format_id(waiting.id)][1:9] == ["1.9", "reported", "evaluate", "0", "1", "0", "3", ""]
    assert format_id(confirmed.id) not in rows
    answer = msgspec.json.decode(cli("verify", "--list", "--json").stdout, type=VerificationsAnswer)
    assert next(run.run for run in answer.waiting) == format_id(waiting.id)
    assert {run.run for run in answer.newest} == {format_id(waiting.id), format_id(confirmed.id)}
    assert all(run.agrees for run in answer.newest if run.stage == "evaluate")


def test_it_says_what_this_participant_has_to_do_with_each(cli: Cli, village: Village, paths: Paths) -> None:
    run = village.run(1.9, "waiting", by=ANN)
    create_identity(paths.keys)
    answer = msgspec.json.decode(cli("verify", "--list", "--json").stdout, type=VerificationsAnswer)
    result = next(each for each in answer.waiting if each.run == format_id(run.id))
    assert (result.part, result.reason) == ("uncounted", "a verification by this participant does not count")
    assert "unattested" in answer.note


def test_where_nothing_waits_it_says_so(cli: Cli, village: Village) -> None:
    assert village.baseline is not None
    village.evaluate(village.baseline, 2.0, BEN, CEM, DOT)
    result = cli("verify", "--list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no run of grammar waits for a verifier" in result.stderr
    assert "autoresearch verify ID" not in result.stderr


@pytest.mark.parametrize("words", [("verify",), ("verify", "@", "--list")])
def test_either_a_run_or_the_list(cli: Cli, village: Village, words: tuple[str, ...]) -> None:
    refused = cli(*words)
    assert refused.exit_code == 2
    assert village.baseline is not None


def test_hostile_titles_stay_in_their_cell(capsys: pytest.CaptureFixture[str]) -> None:
    who = ParticipantView(key="00", short="00", name=NASTY)
    first = AwaitedView(run="bafy", title=NASTY, state="reported", time_ms=0, value=1.0, participant=who,
                      stage=NASTY, round=0, measured=0, committed=0, needed=3)  # fmt: skip
    print_list(AWAITED_COLUMNS, [first])
    assert not harms(capsys.readouterr().out)
