"""A run has the same place on every face: terminal, pipe, JSON, API and page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoresearch_cli.main import app
from typer.testing import CliRunner

from autoresearch.face.columns.column import Face
from autoresearch.face.columns.runs import program_columns
from autoresearch.record.encoding import short_id
from tests.face.pages.every_state import World
from tests.face.pages.reading import whole_page
from tests.face.test_numbers import Served, opened_world
from tests.log.standing.test_chance import EPISODES, LAB
from tests.log.standing.village import ANN, BEN, TRUST
from tests.record.making import BLOB

# Each agent with what two verifiers measured, the standard error of each, and the places that follow.
AGENTS = {
    "sarsa": (2168.12, 1901.48, 111.6, "1–2"),
    "dqn": (1941.0, 1990.0, 110.0, "1–2"),
    "random": (1203.44, 1187.0, 60.0, "3"),
    "still": (-9.0, -9.0, 0.0, "4–5"),
    "as still": (-9.0, -9.0, 0.0, "4–5"),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    with opened_world(tmp_path / "home", TRUST, LAB, EPISODES) as made:
        for title, (first, second, error, _) in AGENTS.items():
            run = made.publish(min(first, second), title, mode="train", budget=300.0, checkpoint=BLOB)
            for who, value in ((ANN, first), (BEN, second)):
                made.village.evaluate(run, value, who, error=error, random_reward=1090.0, random_standard_error=50.0)
        made.node.notebook.now_ms = made.village.now_ms
        yield made


def typed(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), prog_name="autoresearch")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_a_run_has_one_place(world: World, tmp_path: Path) -> None:
    expected = {short_id(world.runs[title].id): place for title, (*_, place) in AGENTS.items()}

    def placed_rows(rows: list[dict[str, object]]) -> dict[str, str]:
        return {
            str(row["id"])[7:15]: f"{row['position']}–{row['last_position']}"
            if row["position"] != row["last_position"]
            else f"{row['position']}"
            for row in rows
            if row["position"]
        }

    assert placed_rows(json.loads(typed("top", "--json"))["programs"]) == expected
    names = [column.name for column in program_columns(0, sections=True) if Face.PIPE in column.faces]
    lines = [line.split("\t") for line in typed("top").splitlines() if line.count("\t") > 5]
    rows = [dict(zip(names, line, strict=True)) for line in lines]
    piped = [{"id": row["run"], "position": row["place"], "last_position": row["last place"]} for row in rows]
    assert placed_rows([row for row in piped if row["position"] != "0"]) == expected
    answer, board = Served(world, tmp_path).get("/v1/top", "/board")
    assert placed_rows(json.loads(answer)["programs"]) == expected
    page = whole_page(board).text
    confirmed = page.partition("Confirmed ranked")[2].partition("Participants by")[0]
    placed = re.findall(r"(\d(?:–\d)?) (\w{8}) ", confirmed.replace(" –", "–"))
    assert {run: place for place, run in placed} == expected
    assert "random actions earn 1090" in page
    assert "measured by 2 verifiers" in page
    terminal = typed("--color", "always", "top")
    assert "1–2" in terminal


@pytest.mark.slow
def test_no_interval_where_nothing_has_chance(world: World, tmp_path: Path) -> None:
    still = short_id(world.runs["still"].id)
    (board, run) = Served(world, tmp_path).get("/board", f"/run/{still}")
    assert re.search(
        rf"4–5 {still} still -9\.0000 -9\.0000 (?!±)", whole_page(board).text.replace("−", "-").replace(" –", "–")
    )
    assert "mean of 2 runs of verifiers with seeds fixed by the protocol" in whole_page(run).text
    assert "±" not in whole_page(run).text.partition("Who measured what")[0].partition("Verified")[2][:40]
