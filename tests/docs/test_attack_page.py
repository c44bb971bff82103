"""The page about attacks can be followed: the first task has a hole, and the mended one holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.test_tutorial import ROOT, played, steps

PAGE = ROOT / "docs" / "how-to" / "attack-your-task.md"


@pytest.mark.slow
def test_the_page_about_attacks_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "labels").mkdir()
    program = list(steps(PAGE.read_text()))
    place = next(number for number, step in enumerate(program) if "task attack" in step)
    program.insert(place + 1, "cp labels/attack.json before.json")

    assert played(program, tmp_path) == program

    before, after = (json.loads((tmp_path / name).read_text()) for name in ("before.json", "labels/attack.json"))
    assert [hole["hole"] for hole in before["holes"]] == ["own_number"]
    assert after["holes"] == []
    assert after["tried"] > 10
