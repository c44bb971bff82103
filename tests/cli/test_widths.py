"""Every command that reads fits the terminal, narrow or wide, and cuts neither values nor ids."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoresearch_cli.rendering.layout import cells, table, wrapped
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.commands import COMMANDS, NOUNS
from autoresearch.face.columns.column import Column, Columns, Face
from autoresearch.face.columns.column import lines as piped
from autoresearch.paths import Paths
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.services import Announcement, Service, reserved
from tests.cli.crowded import NAMES, Crowded, fill
from tests.cli.test_help import EVERY
from tests.cli.test_hostile_text import DRIVER
from tests.nasty import NASTY
from tests.terminals import on_terminal

# Runs in hand as `run`, `work --follow`, `verify` and both kinds of `demo` show them, and events.
WATCHING = """
from autoresearch.ask.node import Event
from autoresearch_cli.demo.display import DemoDisplay
from autoresearch_cli.demo.display import DemoState
from autoresearch_cli.event_display import EventLines
from autoresearch_cli.event_display import TerminalDisplay
from autoresearch_cli.event_display import EventMonitor
title = "LR 0.0083 -> 0.006, WEIGHT_DECAY 0.1 -> 0.19, bigram table (+17)"
data = {"assignment": "one", "title": title, "status": "ok", "reported": 1.155, "is_best": True}
data |= {"fraction": 0.5, "step": 1082, "loss": 1.226, "left_ms": 720_000, "elapsed_ms": 720_000, "task": "grammar"}
data |= {"gain_reported": 0.0123, "duration_ms": 61_000, "id": "bafyrei" + "a" * 52}
kinds = ("run_started", "progress", "confirmed", "run_finished", "run_started", "progress")
events = [Event(id=1, kind=kind, time_ms=0, text=title, data=data) for kind in kinds]
wide = {"title": "検証者によって測定された変更、他の人の ✅ 和其他人的", "assignment": "two", "task": "安妮的任务"}
events += [Event(id=1, kind=kind, time_ms=0, text=wide["title"], data=data | wide) for kind in kinds]
with TerminalDisplay(quiet=False) as display:
    monitor = EventMonitor(display, standing=lambda: "best 1.1550, 69% of the way to 0.7629")
    for event in events:
        monitor.take(event)
cluster = DemoState.of(["peer-1", "peer-2"])
demo = DemoDisplay(cluster, quiet=False)
with demo.live() as live:
    for event in events:
        if line := cluster.hear("peer-1", event):
            demo.line(line)
        live.refresh()
lines = EventLines(json=False)
for event in events:
    lines.print(event)
"""
SCREEN_LINES = 24
WRITING = {
    *("join", "demo", "run", "work", "verify", "up", "down", "mcp", "mcp install", "open"),
    *(
        "run checkout",
        "run propose",
        "run wait",
        "run vary",
        "run cancel",
        "run claim",
        "run believe",
        "run star",
        "run unstar",
        "run withdraw",
        "run export",
    ),
    *(
        "note add",
        "node pause",
        "node resume",
        "node finish",
        "node import",
        "node setup",
        "node config edit",
        "node install",
        "node uninstall",
        "node backup",
        "node restore",
        "node repair",
        "node query",
        "node compact",
        "network attestor",
    ),
    *("node install", "node uninstall"),
    *(
        "task new",
        "task get",
        "task pin",
        "task lock",
        "task allow",
        "task archive",
        "task restore",
        "task export",
        "task attack",
    ),
    *("network new", "network join", "network invite", "network invites", "network admit", "network dismiss"),
    "network hide",
    *("network trust", "network distrust", "network use", "network bring", "network forget"),
    *("challenge new", "challenge extend", "challenge close", "challenge grade"),
    *("init", "install", "uninstall", "use", "list", "train", "publish", "get"),
    *("agent reset", "agent serve", "agent yank"),
}
PARENT = "1.2250 ± 0.0257"
BEST = "1.1550 ± 0.0257"


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Crowded]:
    """A home that is filled once; only reading commands see it."""
    place = tmp_path_factory.mktemp("crowd") / "home"
    return place, fill(Paths.from_environment({"AUTORESEARCH_HOME": str(place)}))


@pytest.fixture
def crowded(crowd: tuple[Path, Crowded], home: Path) -> Iterator[Crowded]:
    """That home as the one of this test, with a service."""
    shutil.copytree(crowd[0], home)
    service = Service(
        name="a-service-with-a-name-as-long-as-any-may-be.of-this-kind_0123456",
        kind="inference",
        component="environment.gymnasium_with_a_long_name",
        project=f"/home/somebody/{NASTY}/projects/agent",
        address="192.168.100.200",
        port=65535,
        pid=1,
        since_ms=0,
        requests=123_456_789,
    )
    with reserved(Paths.from_environment({"AUTORESEARCH_HOME": str(home)}).services, service.name) as file:
        Announcement(file, service)
        yield crowd[1]


def reading(crowded: Crowded) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Every reading command, with what has to stand whole on a line of its screen."""
    best, parent, refuted, lucky = map(brief, (crowded.best, crowded.parent, crowded.refuted, crowded.lucky))
    by_name: dict[tuple[str, ...], tuple[str, ...]] = {
        ("status",): (BEST,),
        ("best",): (BEST, best, "1.1000", "0.7000"),
        ("top", "--no-pager"): ("1.1550", "1.2250", "0.0257", best, parent, refuted, lucky, "refuted (5)"),
        ("top", "-n", "2", "--no-pager"): (best, parent),
        ("node", "records", "-n", "100", "--claims"): tuple(map(brief, crowded.records)),
        ("run", "lineage", "@"): (best, parent, BEST, PARENT, "+0.0700", "+0.7800"),
        ("run", "suggest"): (),
        ("task", "reports"): (),
        ("diff", "@"): ("-LR = 0.01", "+LR = 0.02"),
        ("diff", parent, "@"): ("-LR = 0.01",),
        ("show", "@", "--log"): (),
        (
            "network",
            "credit",
        ): ("0.7800", "0.0700", "1 of 2"),
        ("network", "credit", NAMES[2]): (best,),
        ("network", "credit", "eve"): (lucky,),
        (
            "note",
            "list",
        ): (),
        ("search",): ("corridor", "2.0.0"),
        ("search", "--yanked"): ("yanked",),
        ("search", "environment", "pair"): ("corridor",),
        (
            "run",
            "claims",
        ): (),
        (
            "agent",
            "services",
        ): ("192.168.100.200:65535", "inference"),
        (
            "task",
            "effects",
        ): (),
        (
            "run",
            "list",
        ): (best, parent, refuted, lucky),
        ("run", "list", "--state", "refuted", "--sort", "value"): (refuted,),
        ("note", "ask", "which", "LR", "was", "tried?"): (best,),
        (
            "run",
            "evidence",
        ): (refuted, lucky),
        ("run", "evidence", lucky): ("banned",),
        ("run", "evidence", parent): (parent,),
        ("task", "list"): ("1.1550",),
        ("task", "show"): ("moons", "0.0050"),
        ("node", "config", "show"): ("work.max_output_kib", "/ip4/0.0.0.0/tcp/0"),
        ("node", "config", "show", "--origin"): ("AUTORESEARCH_WORK_MAX_OUTPUT_KIB",),
    }
    by_name |= {("show", record): (record,) for record in crowded.kinds}
    by_name |= {("show", crowded.refuted): (crowded.refuted, "1.9000"), ("show", crowded.lucky): ("0.5000",)}
    by_name[("show", crowded.best)] = (crowded.best, BEST, "1.2200 → 1.1500", parent)
    plain = (
        "node id show",
        "node id devices",
        "network show",
        "network list",
        "challenge show",
        "node paths",
        "node version",
        "node logs",
        "node doctor network",
        "network peers",
        "network hidden",
        "node events",
    )
    return by_name | {tuple(words.split()): () for words in plain}


def helps() -> list[list[str]]:
    """Every page of help, and what is printed in its place."""
    return [["--help"], ["nonsense"], *([*words, "--help"] for words in EVERY)]


def brief(record: str) -> str:
    return short_id(parse_id(record))


def screens(folder: Path, commands: list[list[str]], width: int) -> dict[tuple[str, ...], list[str]]:
    """The lines that a person sees of each command."""
    todo = folder / "given.json"
    todo.write_text(json.dumps(commands))
    screen = on_terminal(
        [sys.executable, "-c", DRIVER, str(todo)], PYTHONUTF8="1", COLUMNS=str(width), NO_COLOR="1", LINES="24"
    )
    parts = (part.split("\n", 1) for part in screen.split("\n<<< ")[1:])
    return {tuple(json.loads(words)): text.splitlines() for words, text in parts}


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_every_screen_fits_and_nothing_is_cut(crowded: Crowded, tmp_path: Path, width: int) -> None:
    whole = reading(crowded)
    commands = [*map(list, whole), *(helps() if width in (60, 80) else [])]  # typer's own narrowest help has 50 columns
    output = screens(tmp_path, commands, width)
    assert len(output) == len(commands)
    for words, lines in output.items():
        wide = [line for line in lines if cells(line) > width]
        assert not [line for line in wide if " " in line.strip(" ·")], words  # one word is left whole
        assert all(any(token in line for line in lines) for token in whole.get(words, ())), words
        assert sum(line.startswith("→") for line in lines) <= 1, words
        assert not any(line.startswith(("Traceback", "this is a bug")) for line in lines), words
    assert len(output["best",]) < SCREEN_LINES or width < 80


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_runs_in_hand_fit_too(width: int) -> None:
    screen = on_terminal([sys.executable, "-c", WATCHING], PYTHONUTF8="1", COLUMNS=str(width), NO_COLOR="1")
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen))
    assert max(map(cells, lines)) <= width
    for whole in (
        "★ 1.1550 reported  gain +0.0123",
        "step 1082 loss 1.226",
        "best",
        "1.1550,",
        "0.1 -> 0.19",
        "0 records, equal",
    ):
        assert any(whole in line for line in lines), whole
    assert "Traceback" not in screen


@pytest.mark.slow
def test_a_wide_table_is_one_line_a_row(crowded: Crowded, tmp_path: Path) -> None:
    [lines] = screens(tmp_path, [["run", "lineage", "@"]], 200).values()
    assert len([line for line in lines if line and not line.startswith("→")]) == 1 + 3


def test_every_command_that_reads_is_among_them(crowded: Crowded) -> None:
    named = {" ".join(words[:2]) if words[0] in NOUNS else words[0] for words in reading(crowded)}
    assert named == set(COMMANDS) - WRITING


words = st.text("abc ·±→1", min_size=0, max_size=80)


@given(words, st.integers(10, 60))
def test_no_word_is_lost_or_cut(text: str, width: int) -> None:
    lines = wrapped(text, width, first="label  ", indent="       ")
    assert " ".join(lines).split() == ["label", *text.split()]
    assert all(cells(line) <= width for line in lines if " " in line.strip() and "±" not in line and "·" not in line)


def test_values_and_their_units_stay_together() -> None:
    text = "reached 1.1550 ± 0.0257 after LR 0.0083 -> 0.006 in 12 min of 1.2200 → 1.1500"
    for width in range(20, 60):
        lines = wrapped(text, width)
        for whole in ("1.1550 ± 0.0257", "0.0083 -> 0.006", "12 min", "1.2200 → 1.1500"):
            assert any(whole in line for line in lines), (width, whole)


LAID_OUT: Columns[tuple[str, ...]] = (
    Column("id", lambda row: row[0]),
    Column("value", lambda row: row[1]),
    Column("score", lambda row: row[2], optional=1),
    Column("marks", lambda row: "", faces=Face.PEOPLE),
    Column("by", lambda row: row[3]),
    Column("title", lambda row: row[4]),
)


def test_a_table_leaves_out_what_is_optional_before_it_moves_columns_below() -> None:
    row = ("g3xkabcd", "1.1550", "1.1600", "27a6adac", "a title " * 5)
    wide = [line.text for line in table(LAID_OUT, [row], 100)]
    assert wide[0] == "id        value   score   by        title"
    narrow = [line.text for line in table(LAID_OUT, [row], 30)]
    assert narrow[:2] == ["id        value   by", "  title"]
    tiny = [line.text for line in table(LAID_OUT, [row], 20)]
    assert tiny[:2] == ["id        value", "  by · title"]
    assert re.sub(r"\s+", " ", " ".join(tiny)).count("a title") == 5


def test_an_empty_column_is_not_shown() -> None:
    [header, _] = table(LAID_OUT, [("g3xkabcd", "", "", "", "a title")], 80)
    assert header.text == "id        title"
    assert header.header
    assert table(LAID_OUT, [], 80) == []


def test_a_program_gets_every_cell_of_every_row_also_the_empty_ones() -> None:
    assert piped(LAID_OUT, [("g3xkabcd", "", "", "", "a\ttitle")]) == [["g3xkabcd", "", "", "", "a title"]]


def test_a_column_that_varies_is_shown_where_its_rows_differ() -> None:
    columns = (Column("id", str), Column("by", lambda row: row[0], varies=True))
    assert [line.text for line in table(columns, ["ab", "ac"], 80)] == ["id", "ab", "ac"]
    assert table(columns, ["ab", "ba"], 80)[0].text == "id  by"
