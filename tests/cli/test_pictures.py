"""The pictures for the documents are made of what commands really print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.filling import Filled

MAKE = Path(__file__).parents[2] / "docs/pictures/make.py"


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(MAKE), *words], capture_output=True, text=True, timeout=250, check=False)


@pytest.mark.slow
def test_a_picture_shows_what_the_command_prints_in_colour(filled: Filled, tmp_path: Path) -> None:
    made = make("best", "--into", str(tmp_path))

    assert (made.returncode, made.stderr) == (0, "")
    drawn = ElementTree.parse(tmp_path / "best.svg").getroot()
    text = "".join(drawn.itertext()).replace("\xa0", " ")
    for each in ("$ autoresearch best", "1.3000", "lower X again"):
        assert each in text
    assert len(set(re.findall(r"fill: (#\w{6})", text))) > 2
    assert "url(http" not in text.replace('"', ""), "a picture that is looked at fetches nothing"


@pytest.mark.slow
def test_a_command_that_fails_makes_no_picture(filled: Filled, tmp_path: Path) -> None:
    made = make("best", "nonsense", "--into", str(tmp_path / "pictures"))

    assert made.returncode == 1
    assert "There is no command 'nonsense'" in made.stderr
    assert not (tmp_path / "pictures").exists()
