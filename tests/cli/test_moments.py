"""What is said fits the moment: what the node does now, each reason once, nothing that was just done."""

from __future__ import annotations

import re

import msgspec
import pytest
from autoresearch_cli.commands.work import say_orders
from autoresearch_cli.event_display import finished_line
from autoresearch_cli.rendering.answers import voter_lines
from autoresearch_cli.rendering.status import meanwhile, status_lines

from autoresearch.ask.node import (
    Event,
    NetworkStatus,
    OrderView,
    PeersAnswer,
    PeerView,
    RunInHand,
    StatusAnswer,
    WorkerStatus,
)
from autoresearch.ask.people.voters import way_to_count
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.paths import Paths
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import WHY_SENTENCES, Why
from tests.cli.conftest import Cli
from tests.cli.filling import Filled

NOW_MS = 1_790_000_000_000
ANN = ParticipantView(key="3fa9" * 16, short="3fa9")


def node(state: str, why: Why, *workers: WorkerStatus) -> StatusAnswer:
    return StatusAnswer(
        running=True, state=state, why=why.value, reason=WHY_SENTENCES[why], version="1", workers=list(workers)
    )


def worker(number: int, why: Why, run: RunInHand | None = None) -> WorkerStatus:
    return WorkerStatus(name=f"w{number}", device="cpu", why=why.value, reason=WHY_SENTENCES[why], run=run)


TRAINING = RunInHand(title="RATE 1 → 2", task="moons", fraction=0.4, left_ms=20_000)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (node("idle", Why.NOT_ASKED), "autoresearch work"),
        (node("working", Why.ASKED, worker(1, Why.RUNNING, TRAINING)), "a run on moons is at 40%, 20 s left: "),
        (node("working", Why.ASKED, worker(1, Why.PROPOSING)), "choosing the next change: autoresearch status"),
        (node("working", Why.ASKED), "the worker is starting: autoresearch status"),
        (node("paused", Why.PAUSED_BY_PERSON, worker(1, Why.NOT_ASKED)), "paused by you: autoresearch node resume"),
        (node("waiting", Why.DISK_LOW, worker(1, Why.NOT_ASKED)), "the disk has too little free space"),
    ],
)
def test_where_no_run_is_yet_the_next_step_is_what_the_node_does(status: StatusAnswer, words: str) -> None:
    assert meanwhile(status).startswith(words)


def test_status_says_why_nothing_is_done_once() -> None:
    for state, why in (("idle", Why.NOT_ASKED), ("idle", Why.RUNS_DONE), ("paused", Why.PAUSED_BY_PERSON)):
        lines = status_lines(node(state, why, worker(1, why), worker(2, Why.NOT_ASKED)), NOW_MS)
        assert "now" not in dict(lines)
        assert [text for label, text in lines if WHY_SENTENCES[why].partition(":")[0] in text] == [lines[0][1]]
        assert "autoresearch" not in lines[0][1], "the last line says what to type"
    lines = status_lines(node("working", Why.ASKED, worker(1, Why.PROPOSING), worker(2, Why.PROPOSING)), NOW_MS)
    assert sum(label == "now" for label, _ in lines) == 1
    training = worker(1, Why.RUNNING, TRAINING), worker(2, Why.RUNNING, TRAINING)
    assert sum(label == "now" for label, _ in status_lines(node("working", Why.ASKED, *training), NOW_MS)) == 2


def test_right_after_work_status_has_a_line_of_now() -> None:
    assert ("now", "the worker is starting") in status_lines(node("working", Why.ASKED_FOR_RUNS), NOW_MS)


def test_who_does_not_count_yet_is_told_one_thing_to_do() -> None:
    alone = msgspec.structs.replace(node("idle", Why.NOT_ASKED), attested=False, note="2 more", participant=ANN)
    assert "needed" in dict(status_lines(alone, NOW_MS))
    joins = dict(status_lines(msgspec.structs.replace(alone, to_count="wait: the invite admits you"), NOW_MS))
    assert "needed" not in joins
    assert "wait: the invite admits you" in joins["you"]
    assert [label for label, _ in voter_lines([], "2 more", "wait", NOW_MS)] == ["you"]


@pytest.mark.parametrize(
    ("gain", "is_best", "words"),
    [
        (-1.2017, False, "· 1.5751 reported  worse by 1.2017"),
        (0.1, False, "✓ 1.5751 reported  gain +0.1000"),
        (0.1, True, "★ 1.5751 reported  gain +0.1000"),
        (0.0, False, "· 1.5751 reported  as its parent"),
        (None, False, "✓ 1.5751 reported  “t”"),
    ],
)
def test_a_run_that_is_worse_has_no_tick_and_no_gain(gain: float | None, is_best: bool, words: str) -> None:
    data = {"status": "ok", "title": "t", "reported": 1.5751, "gain_reported": gain, "is_best": is_best}
    line = finished_line(Event(id=1, kind="run_finished", time_ms=0, text="t", data=data))
    assert line.startswith(words)


def test_the_peers_of_other_networks_are_counted_and_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from autoresearch_cli.rendering.status import print_peers

    strange = PeerView(peer="12D3Strange", connected=True, other_network=True)
    peers = [PeerView(peer="12D3Own", connected=True), strange]
    print_peers(PeersAnswer(network=NetworkStatus(state="running"), peers=peers), now_ms=NOW_MS)
    output = capsys.readouterr()
    assert ("12D3Own" in output.out, "12D3Strange" in output.out) == (True, False)
    assert "1 connected node of other networks left out" in output.err


def test_who_joined_with_an_invite_waits_and_is_given_no_key(cli: Cli, paths: Paths) -> None:
    assert cli("network", "new", "tea", "--for", "lab", "-o", str(paths.data.parent / "tea.toml")).exit_code == 0
    manifest = load_manifest(paths.data.parent / "tea.toml")
    with Log.open(paths.log.with_name("tea.sqlite"), manifest.network, trust=manifest.trust) as log:
        ways = [way_to_count(log, bytes(32), NOW_MS, joins=joins) for joins in (False, True)]
    assert ["network admit" in way for way in ways] == [True, False]
    assert ways[1].startswith("wait: ")


LISTING = [
    *("status", "best", "top", "run list", "run claims", "task list", "task effects", "node records", "note list"),
    *("network show", "network list", "network credit", "node id", "node config", "show @", "diff @", "run lineage @"),
    *("task show", "run evidence", "verify --list", "node paths", "node version", "search rate", "best --code"),
]


@pytest.mark.parametrize("line", LISTING)
def test_no_hint_names_what_was_just_typed(cli: Cli, filled: Filled, line: str) -> None:
    typed = cli(*line.split())
    assert typed.exit_code == 0, typed.output
    words = re.escape(line.removesuffix(" @"))
    assert not re.search(rf"→.*\bautoresearch {words}(,|$| ID(,|$))", typed.stderr, re.M), typed.stderr


def test_an_order_that_takes_the_place_of_another_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (OrderView(number=number, task="moons", state="working") for number in (1, 2))
    status = msgspec.structs.replace(node("working", Why.ASKED), orders=[second])
    for instead, runs in ((False, "a run in progress goes on"), (True, "its runs in progress are stopped")):
        say_orders([first], status, instead=instead)
        assert capsys.readouterr().err.splitlines() == [
            f"order 2 takes the place of order 1, on moons: {runs}",
            "order 2 moons · without an end · working",
        ]
