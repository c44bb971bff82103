"""Titles that a spreadsheet would take as formulas, in files that people open with one."""

from __future__ import annotations

import pytest

from autoresearch.face.exports.tables import read_rows, text_cell

FORMULAS = ['=HYPERLINK("http://evil","x")', "@SUM(1+1)*cmd|' /C calc'!A0", "+1+cmd|' /C calc'!A0", "-2+3+cmd|x"]
FORMULAS += ["\t=1+1", "\r=1+1", "＝1+1", "－1＋1", "+", "-", "-1 apples"]
NUMBERS = ["-81.24", "+3", "-1e-05", "0.762866", "-inf"]


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_becomes_text(cell: str) -> None:
    assert text_cell(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", [*NUMBERS, "", "wider = better", "'tis", "1+1"])
def test_numbers_and_other_text_stay(cell: str) -> None:
    assert text_cell(cell) == cell


@pytest.mark.parametrize("title", ["=1+1", "-wider", "@home", "'tis", "wider", "'"])
def test_a_table_that_is_read_back_has_the_words_that_were_written(title: str) -> None:
    line = "\t".join(["a1b2c3d", "0.5", "1.0", "keep", text_cell(title)])
    [row] = read_rows(f"commit\tval_bpb\tmemory_gb\tstatus\tdescription\n{line}\n")
    assert row.description == title
