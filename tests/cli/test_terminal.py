"""On a terminal: aligned tables and colour; without colour when that is asked for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from tests.cli.filling import Filled
from tests.terminals import on_terminal

Terminal = Callable[..., str]


@pytest.fixture
def terminal() -> Terminal:
    """The command line on a terminal of 100 columns: words in, what a person sees out."""

    def call(*words: str, **variables: str) -> str:
        return on_terminal([sys.executable, "-m", "autoresearch_cli", *words], **{"COLUMNS": "100", **variables})

    return call


def test_a_person_gets_a_header_short_ids_and_colour(terminal: Terminal, filled: Filled) -> None:
    screen = terminal("top", "--no-pager")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen)
    assert re.search(r"# +run +reported +gain reported +runs +state +by +change", plain)
    assert filled.best[7:15] in plain
    assert filled.best not in plain
    assert "\x1b[1m" in screen


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(terminal: Terminal, filled: Filled, variables: dict[str, str]) -> None:
    assert "\x1b[" not in terminal("top", "--no-pager", **variables)
    assert "\x1b[" not in terminal("diff", "@", **variables)


def test_never_and_always_win_over_the_variables(terminal: Terminal, filled: Filled) -> None:
    assert "\x1b[" not in terminal("top", "--no-pager", "--color", "never", FORCE_COLOR="1")
    assert "\x1b[" in terminal("top", "--no-pager", "--color=always", NO_COLOR="1")


def test_a_diff_is_green_and_red(terminal: Terminal, filled: Filled) -> None:
    screen = terminal("diff", "@")
    assert "\x1b[32m+X = 1.3" in screen
    assert "\x1b[31m-X = 1.4" in screen


@pytest.mark.parametrize(
    "words",
    [
        (
            "node",
            "records",
        ),
        ("top", "--no-pager"),
        ("show", "0"),
        ("run", "lineage", "0"),
        ("status",),
        ("best",),
    ],
)
def test_a_strangers_text_cannot_steer_the_terminal(terminal: Terminal, filled: Filled, words: tuple[str, ...]) -> None:
    words = tuple(filled.stranger if word == "0" else word for word in words)
    screen = terminal(*words)
    for harm in ("\x1b[2J", "\x1b]0", "\x07", "\u202e"):
        assert harm not in screen
    assert "Traceback" not in screen


def test_top_is_a_screen_whose_keys_act_on_the_chosen_run(filled: Filled) -> None:
    command = [sys.executable, "-m", "autoresearch_cli", "top"]
    output = on_terminal(command, typed="jk\nxdxpxq", COLUMNS="80", LINES="24", NO_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.replace("\x1b[H", "\n"))
    screens = plain.split(" · val_bpb, minimize · ")
    assert re.search("[\u2801-\u28ff]", screens[1]), "there is a chart"
    assert "▶ 1" in screens[1]
    assert "▶ 2" in screens[2]
    assert re.search(r"reported +1\.3000", screens[3].split("any key goes back")[0].split("q end")[1]), "Enter shows it"
    assert "-X = 1.4" in plain, "d shows its diff"
    assert "the daemon is not running → autoresearch up" in plain, "p says why it cannot pause"
    assert max(len(line) for screen in screens for line in screen.splitlines()[:20]) <= 80
    rows = [line for line in screens[-1].splitlines() if re.match(r"[▶ ] +\d+ ", line)]
    assert len(rows) == 5, "each run has one line"
