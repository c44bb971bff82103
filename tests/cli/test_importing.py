"""A results.tsv becomes notes, once, or nothing at all."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.face.exports.tables import COLUMNS, read_rows, verdicts
from autoresearch.log.log import Log
from autoresearch.log.rows import HistoryRow
from autoresearch.paths import Paths
from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK
from tests.cli.conftest import Cli
from tests.cli.filling import Filled

HEADER = "\t".join(column.name for column in COLUMNS) + "\n"
ROWS = "a1b2c3d\t0.997900\t44.0\tkeep\tbaseline\nb2c3d4e\t0.993200\t44.2\tkeep\tincrease LR\nc3d4e5f\t0.000000\t0.0\tcrash\tdouble width (OOM)\n"  # noqa: E501


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results.tsv as karpathy/autoresearch writes it."""
    file = tmp_path / "results.tsv"
    file.write_text(HEADER + ROWS)
    return file


def notes(paths: Paths) -> list[Note]:
    """The notes in the log, newest first."""
    with Log.open(paths.log, DEFAULT_NETWORK, read_only=True) as log:
        return [record.body for record in log.records.newest(kind="note") if isinstance(record.body, Note)]


def test_each_row_becomes_a_note_of_the_task_and_only_once(
    cli: Cli, filled: Filled, paths: Paths, results: Path
) -> None:
    words = ("node", "import", str(results), "--task", str(filled.task.folder))
    assert cli(*words).exit_code == 0
    assert "0 notes added, 3 were there already" in cli(*words).stderr
    by_name = {note.text: note for note in notes(paths)}
    assert set(by_name) == {"a1b2c3d: baseline", "b2c3d4e: increase LR", "c3d4e5f: double width (OOM)"}
    assert by_name["a1b2c3d: baseline"].metrics == {"val_bpb": 0.9979, "memory_gb": 44.0}
    assert by_name["c3d4e5f: double width (OOM)"].metrics == {}
    assert {note.task for note in by_name.values()} == {filled.task.digest}
    assert {note.topic for note in by_name.values()} == {"history"}


def test_rows_that_were_added_later_are_added_alone(cli: Cli, filled: Filled, paths: Paths, results: Path) -> None:
    cli("node", "import", str(results))
    results.write_text(HEADER + ROWS + "d4e5f6a\t0.99\t44.2\tdiscard\tsilu\n")
    assert "1 note added, 3 were there already" in cli("node", "import", str(results)).stderr
    assert len(notes(paths)) == 4


def test_a_file_beside_a_task_belongs_to_it(cli: Cli, filled: Filled, paths: Paths) -> None:
    file = filled.task.folder / "results.tsv"
    file.write_text(HEADER + ROWS)
    cli("node", "import", str(file))
    assert {note.task for note in notes(paths)} == {filled.task.digest}


def test_what_is_exported_can_be_imported(cli: Cli, filled: Filled, paths: Paths, tmp_path: Path) -> None:
    file = tmp_path / "out.tsv"
    cli("run", "export", "-o", str(file))
    assert json.loads(cli("node", "import", str(file), "--json").stdout)["added"] == 6
    assert {note.task for note in notes(paths)} == {filled.task.digest}, "the file says of which task it is"
    header, *rows = file.read_text().splitlines()
    digest = filled.task.digest.hex()
    file.write_text("\n".join([header, rows[0], rows[1].replace(digest, "0" * 64)]))
    refused = cli("node", "import", str(file))
    assert (refused.exit_code, "has runs on 2 tasks, and notes are about one" in refused.stderr) == (2, True)
    assert "run export --task NAME" in refused.stderr


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_exported_value_is_short_and_right_at_any_size(value: float) -> None:
    cell = COLUMNS[1].plain(SimpleNamespace(run=SimpleNamespace(value=value)))  # type: ignore[arg-type]
    assert float(cell) == pytest.approx(value, rel=1e-3)
    assert len(cell) <= 15


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", HEADER.replace("\t", ","), HEADER + "a\t1.0\n", HEADER + "a\tnan\t1\tkeep\tx\n",
     HEADER + "a\t1.0\tinf\tkeep\tx\n", HEADER + "a\t1.0\t1\t" + "k" * 33 + "\tx\n", HEADER + "\t1.0\t1\tkeep\tx\n",
     HEADER + "a\t1.0\t1\tkeep\t" + "x" * 3000 + "\n", HEADER + ROWS + "z\tone\t1\tkeep\tx\n"],
)  # fmt: skip
def test_a_file_with_one_wrong_line_adds_nothing(
    cli: Cli, filled: Filled, paths: Paths, tmp_path: Path, text: str
) -> None:
    file = tmp_path / "wrong.tsv"
    file.write_text(text)
    result = cli("node", "import", str(file))
    assert result.exit_code == 2
    assert "bug" not in result.stderr
    assert notes(paths) == []


# Headers and rows as forks of karpathy/autoresearch write them, with the numbers that are taken over.
FORKS: list[tuple[str, str, dict[str, float]]] = [
    ("commit\taccuracy\tmemory_gb\tstatus\tdescription", "a1\t0.9\t1\trun\twider", {"accuracy": 0.9, "memory_gb": 1}),
    ("commit\tval_loss\tstatus\tdescription\tdelta\tstrategy", "a1\t2.5\tkept\twider\t-0.1\tscale", {"val_loss": 2.5}),
    ("commit\tprimary_metric\taux\tstatus\tdescription", "a1\t0.5\t-\tkeep\twider", {"primary_metric": 0.5}),
    ("Experiment\tval_sharpe\tNotes", "a1\t0.85\twider", {"val_sharpe": 0.85}),
    ("commit\tval_bpb\tstatus\tdescription", "a1\t0.000000\toom\twider", {}),
]  # fmt: skip


@pytest.mark.parametrize(("header", "row", "numbers"), FORKS)
def test_files_of_forks_are_taken_in(
    cli: Cli, filled: Filled, paths: Paths, tmp_path: Path, header: str, row: str, numbers: dict[str, float]
) -> None:
    file = tmp_path / "results.tsv"
    file.write_text(f"{header}\n{row}\n")
    assert cli("node", "import", str(file)).exit_code == 0
    [note] = notes(paths)
    assert (note.text, note.metrics) == ("a1: wider", numbers)


def test_bytes_that_are_no_text_are_refused(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "wrong.tsv"
    file.write_bytes(b"\xff\xfe\x00commit")
    result = cli("node", "import", str(file))
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr


@given(st.text())
def test_reading_any_text_gives_rows_or_a_sentence(text: str) -> None:
    for candidate in (text, HEADER + text, HEADER + text.replace(" ", "\t")):
        try:
            for row in read_rows(candidate):
                row.note(None)
        except UsageError:
            continue


def history(values: list[float | None], *, budget: float = 1.0) -> list[HistoryRow]:
    """Runs with these values, oldest first."""
    return [
        HistoryRow(bytes([n]) * 32, b"", b"{}", value, 0, None, None, "ok", b"", budget, n, False, 0, bytes([n]))
        for n, value in enumerate(values)
    ]


def test_a_lucky_seed_of_a_program_that_ran_is_not_kept() -> None:
    first, again, other = history([1.5, 1.4, 1.3])
    runs = [first, again._replace(seedless=first.seedless, source_digest=b"another seed"), other]
    assert [verdict for _, verdict in verdicts(runs, direction="minimize", budget=1.0)] == ["keep", "discard", "keep"]


def test_a_run_is_kept_when_it_beat_all_before_it() -> None:
    runs = history([1.5, 1.6, None, 1.4, 1.4])
    stored = [verdict for _, verdict in verdicts(runs, direction="minimize", budget=1.0)]
    assert stored == ["keep", "discard", "crash", "keep", "discard"]
    grown = [verdict for _, verdict in verdicts(runs, direction="maximize", budget=1.0)]
    assert grown == ["keep", "keep", "crash", "discard", "discard"]


def test_a_smaller_budget_or_a_fork_beats_nothing() -> None:
    small = history([1.0], budget=0.1)
    forked = [row._replace(forked=True) for row in history([1.0])]
    for runs in (small, forked):
        assert [verdict for _, verdict in verdicts(runs, direction="minimize", budget=1.0)] == ["discard"]


def test_a_run_that_is_not_believed_beats_nothing() -> None:
    runs = history([0.1, 1.5, 1.4])
    result = verdicts(runs, direction="minimize", budget=1.0, is_believed=lambda run: run is not runs[0])
    assert [verdict for _, verdict in result] == ["discard", "keep", "keep"]
