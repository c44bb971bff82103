"""Commands that read work with the daemon down, on a real notebook."""

from __future__ import annotations

import csv
import io
import shlex
from pathlib import Path

import pytest

from autoresearch.face.exports.tables import COLUMNS, ExportedRun
from autoresearch.paths import Paths
from autoresearch.record.kinds import RunOutcome
from tests.cli.conftest import Cli
from tests.cli.filling import NASTY, TRAIN, Filled

READING = (
    ("status",),
    ("best",),
    ("top",),
    (
        "node",
        "records",
    ),
    ("show", "@"),
    ("diff", "@"),
    ("run", "lineage", "@"),
    (
        "run",
        "export",
    ),
)
LINES = ("status", "log", "top", "export")


def test_runs_are_listed_in_groups_by_a_setting_and_a_group_leads_to_its_runs(cli: Cli, filled: Filled) -> None:
    lines = cli("run", "list", "--group", "X").stdout.splitlines()
    assert len(lines) > 1
    value, runs, *_, where = lines[0].split("\t")
    assert where == f"X={value}"
    assert len(cli("run", "list", "--where", where).stdout.splitlines()) == int(runs)
    crossed = cli("run", "list", "--group", "X", "--group", "NONE")
    assert (crossed.exit_code, crossed.stdout, "NONE" in crossed.stderr) == (2, "", True), crossed.stderr
    assert cli("run", "list", "--group", "X", "--where", "X<-1e9").stdout == ""
    refused = cli("run", "list", *("--group", "X") * 3)
    assert (refused.exit_code, "by one setting or two" in refused.stderr) == (2, True)
    assert cli("run", "list", "--group", '"').exit_code == 2


def test_a_condition_is_on_the_metric_by_its_name_and_on_no_setting_that_no_run_has(cli: Cli, filled: Filled) -> None:
    metric = filled.task.metric.name
    by_value = cli("run", "list", "--where", "value<9").stdout
    assert by_value
    assert cli("run", "list", "--where", f"{metric}<9").stdout == by_value
    for words in (("--where", "NONE=3"), ("--where", "X=1.5,NONE>3"), ("--group", "X", "--where", "NONE=3")):
        refused = cli("run", "list", *words)
        assert (refused.exit_code, "no run has a setting “NONE”" in refused.stderr) == (2, True), refused.output
        assert "there are: value, X" in refused.stderr
    # What leads to the runs of a group keeps what the groups were chosen by.
    listed = cli("run", "list", "--group", "X", "--where", f"{metric}<9", "--state", "reported,provisional,leading")
    words = shlex.split(listed.stderr.partition("→ autoresearch ")[2].partition(" lists the runs")[0])
    assert "--state" in words
    assert len(cli(*words).stdout.splitlines()) == int(listed.stdout.splitlines()[0].split("\t")[1])


def test_status_says_that_the_daemon_is_down_and_what_the_notebook_holds(cli: Cli, filled: Filled) -> None:
    result = cli("status")
    assert result.exit_code == 0
    assert "daemon is not running" in result.stdout
    assert "best\t1.3000 reported · baseline 1.5000 · floor 1.0000 · 40% of the way" in result.stdout
    assert "runs\t6, of which 1 failed" in result.stdout
    assert result.stderr == "→ autoresearch up\n"


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        (
            "node",
            "records",
        ),
        (
            "run",
            "export",
        ),
    ],
)
def test_an_empty_home_is_no_error_and_stays_empty(cli: Cli, home: Path, words: tuple[str, ...]) -> None:
    assert cli(*words).exit_code == 0
    assert not home.exists()


@pytest.mark.parametrize("words", [("best",), ("top",), ("show", "@"), ("diff", "@"), ("run", "lineage", "@mine")])
def test_an_empty_notebook_says_how_to_begin(cli: Cli, words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert result.exit_code == 4
    assert "→ autoresearch" in result.stderr
    assert result.stdout == ""


def test_best_is_the_lowest_value_and_its_code_is_exact(cli: Cli, filled: Filled) -> None:
    assert "1.3000" in cli("best").stdout
    assert cli("best", "--code").stdout == TRAIN.format(x=1.3)


def test_best_of_a_task_by_name_and_by_digest(cli: Cli, filled: Filled) -> None:
    for reference in ("my-task", filled.task.digest.hex()[:10]):
        assert cli("best", "--task", reference, "--code").stdout == TRAIN.format(x=1.3)
    assert cli("best", "--task", "another").exit_code == 4


def test_top_ranks_and_can_be_cut(cli: Cli, filled: Filled) -> None:
    rows = [line.split("\t") for line in cli("top").stdout.splitlines()]
    assert [row[2] for row in rows] == ["1.3", "1.35", "1.4", "1.45", "1.5"]
    assert rows[0][1] == filled.best
    assert len(cli("top", "-n", "2").stdout.splitlines()) == 2


def test_log_is_newest_first_and_can_be_narrowed(cli: Cli, filled: Filled) -> None:
    rows = [line.split("\t") for line in cli("node", "records").stdout.splitlines()]
    assert rows[0][0] == filled.stranger
    assert {row[1] for row in rows} == {"run", "task", "identity"}
    assert len(cli("node", "records", "--kind", "run", "-n", "3").stdout.splitlines()) == 3
    mine = cli("node", "records", "--kind", "run", "--mine").stdout
    assert filled.stranger not in mine
    assert all(run in mine for run in filled.ids)


def test_a_run_is_found_by_any_way_to_name_it(cli: Cli, filled: Filled) -> None:
    for reference in (filled.best, filled.best[:20], filled.best[7:20], filled.best.upper()[7:20], "@", "@mine"):
        assert cli("show", reference, "--field", "id").stdout == filled.best + "\n"
    assert cli("show", "@~1", "--field", "id").stdout == filled.ids[1] + "\n"
    assert cli("show", "@~2", "--field", "value").stdout == "1.5\n"


def test_show_gives_fields_alone_for_other_programs(cli: Cli, filled: Filled) -> None:
    assert cli("show", "@", "--field", "metrics.steps").stdout == "12\n"
    assert cli("show", "@", "--field", "title").stdout == "lower X again\n"
    assert cli("show", filled.crash, "--field", "value").stdout == "null\n"
    wrong = cli("show", "@", "--field", "colour")
    assert wrong.exit_code == 2
    assert "title" in wrong.stderr


def test_show_tells_why_a_run_failed(cli: Cli, filled: Filled) -> None:
    output = cli("show", filled.crash).stdout
    assert "crashed" in output
    assert "ValueError: X is too large" in output


def test_show_prints_source_and_training_log_as_they_are(cli: Cli, filled: Filled) -> None:
    assert cli("show", filled.ids[0], "--code").stdout == TRAIN.format(x=1.5)
    assert cli("show", "@", "--log").stdout == "step 1\n---\n"
    missing = cli("show", filled.stranger, "--code")
    assert missing.exit_code == 4
    assert "not on this machine" in missing.stderr


def test_diff_is_against_the_parent_or_between_two(cli: Cli, filled: Filled) -> None:
    result = cli("diff", "@")
    assert "-X = 1.4\n+X = 1.3\n" in result.stdout
    assert "1.4000 → 1.3000  -0.1000" in result.stderr
    assert "-X = 1.5\n+X = 1.3\n" in cli("diff", "@~2", "@").stdout
    assert cli("diff", "@", "@").stdout == ""
    baseline = cli("diff", filled.ids[0])
    assert baseline.exit_code == 4
    assert "no parent" in baseline.stderr


def test_lineage_goes_from_the_baseline_to_the_run(cli: Cli, filled: Filled) -> None:
    rows = [line.split("\t") for line in cli("run", "lineage", "@").stdout.splitlines()]
    assert [row[0] for row in rows] == [filled.ids[0], filled.ids[1], filled.best]
    assert [row[6] for row in rows] == ["", "0.1", "0.1"]


@pytest.mark.parametrize("words", READING)
def test_what_strangers_wrote_cannot_steer_a_terminal_or_break_a_line(
    cli: Cli, filled: Filled, words: tuple[str, ...]
) -> None:
    for more in ((), ("--color", "always")) if words[0] not in ("diff", "export") else ((),):
        output = cli(*words, *more).stdout
        assert "\x1b[2J" not in output
        assert "\x1b]0" not in output
        assert "\x07" not in output
        assert "\u202e" not in output
        assert "\nnewline" not in output


@pytest.mark.parametrize("command", LINES)
def test_piped_lines_have_no_borders_and_are_not_cut(cli: Cli, filled: Filled, command: str) -> None:
    output = cli(command).stdout
    assert not set(output) & set("│┃━─┏╭|")
    assert "…" not in output
    assert "\x1b" not in output


def test_a_stranger_can_be_shown_too(cli: Cli, filled: Filled) -> None:
    result = cli("show", filled.stranger)
    assert result.exit_code == 0
    assert "evil" in result.stdout
    assert NASTY not in result.stdout


def test_export_has_the_columns_of_results_tsv_first_and_says_what_was_kept(cli: Cli, filled: Filled) -> None:
    lines = cli("run", "export").stdout.splitlines()
    names = lines[0].split("\t")
    assert names[:6] == ["commit", "val_bpb", "memory_gb", "status", "description", "id"]
    assert {"run_status", "reason", "parent", "seed", "budget", "cpu_ms", "hypothesis", "author", "state"} < {*names}
    assert len(names) == len({*names})
    rows = [line.split("\t") for line in lines[1:]]
    assert [row[3] for row in rows] == ["keep", "keep", "crash", "keep", "discard", "discard"]
    assert rows[2][1:3] == ["0.000000", "0.0"]
    assert rows[0][:5] == [filled.ids[0][7:15], "1.500000", "3.0", "keep", "the baseline"]
    assert len({len(line.split("\t")) for line in lines}) == 1


def test_the_memory_that_a_program_states_comes_before_that_of_its_process() -> None:
    column = next(column for column in COLUMNS if column.name == "memory_gb")
    for metrics, gib in (({}, "0.1"), ({"peak_vram_mb": 45060.2}, "44.0"), ({"peak_memory_gb": 3.25}, "3.2")):
        outcome = RunOutcome(status="ok", value=1.0, metrics=metrics, peak_memory_bytes=100 << 20)
        row = ExportedRun(None, outcome, {}, "keep", "", "", "")  # type: ignore[arg-type]  # of a run only its outcome counts
        assert column.value(row) == gib


def test_export_as_csv_holds_the_same(cli: Cli, filled: Filled) -> None:
    rows = list(csv.reader(io.StringIO(cli("run", "export", "--format", "csv").stdout, newline="")))
    tsv = [line.split("\t") for line in cli("run", "export").stdout.splitlines()]
    assert rows == tsv


def test_export_names_the_task_and_its_metric_and_leaves_other_tasks_out(cli: Cli, filled: Filled) -> None:
    def rows(*words: str) -> list[dict[str, str]]:
        text = cli("run", "export", "--format", "csv", *words).stdout
        return list(csv.DictReader(io.StringIO(text, newline="")))

    everything = rows()
    names = {row["task_name"] for row in everything}
    assert all(row["metric"] for row in everything)
    for name in names:
        some = rows("--task", name)
        assert some == [row for row in everything if row["task_name"] == name]
        jsonl = cli("run", "export", "--json", "--task", name).stdout.splitlines()
        assert len(jsonl) == len(some)


def test_export_replaces_a_file_as_a_whole(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    target = tmp_path / "runs.tsv"
    target.write_text("old")
    assert cli("run", "export", "-o", str(target)).stdout == ""
    assert target.read_text() == cli("run", "export").stdout
    assert [path.name for path in tmp_path.iterdir() if "runs" in path.name] == ["runs.tsv"]
    refused = cli("run", "export", "-o", str(tmp_path))
    assert refused.exit_code == 2
    assert cli("run", "export", "-o", str(tmp_path / "none" / "runs.tsv")).exit_code == 2


def test_reading_changes_nothing(cli: Cli, filled: Filled, paths: Paths) -> None:
    before = {path: path.read_bytes() for path in paths.data.rglob("*") if path.is_file() and "-shm" not in path.name}
    for words in READING:
        cli(*words)
    after = {path: path.read_bytes() for path in paths.data.rglob("*") if path.is_file() and "-shm" not in path.name}
    assert {p: c for p, c in after.items() if c} == {p: c for p, c in before.items() if c}
