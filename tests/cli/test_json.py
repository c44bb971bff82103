"""What ``--json`` prints is what the models say, and nothing else is on standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
from autoresearch_cli.models import (
    DevicesAnswer,
    DoctorAnswer,
    DownAnswer,
    ExportAnswer,
    FieldAnswer,
    IdentityAnswer,
    ImportAnswer,
    NetworkAnswer,
    PathsAnswer,
    TaskAnswer,
    TextAnswer,
)

from autoresearch.ask.node import ConfigAnswer, StatusAnswer
from autoresearch.ask.people.participants import EvidenceListAnswer
from autoresearch.ask.records import LogAnswer, ShowAnswer
from autoresearch.ask.runs.answers import BestAnswer, DiffAnswer, LineageAnswer, TopAnswer
from autoresearch.log.standing.answers import CreditAnswer
from tests.cli.conftest import Cli
from tests.cli.filling import NASTY, Filled

Model = TypeVar("Model", bound=msgspec.Struct)

DOCUMENTS: list[tuple[type[msgspec.Struct], tuple[str, ...]]] = [
    (StatusAnswer, ("status",)),
    (BestAnswer, ("best",)),
    (TextAnswer, ("best", "--code")),
    (TopAnswer, ("top",)),
    (
        CreditAnswer,
        (
            "network",
            "credit",
        ),
    ),
    (
        EvidenceListAnswer,
        (
            "run",
            "evidence",
        ),
    ),
    (
        LogAnswer,
        (
            "node",
            "records",
        ),
    ),
    (ShowAnswer, ("show", "@")),
    (TextAnswer, ("show", "@", "--log")),
    (FieldAnswer, ("show", "@", "--field", "metrics")),
    (DiffAnswer, ("diff", "@")),
    (LineageAnswer, ("run", "lineage", "@")),
    (ConfigAnswer, ("node", "config", "show")),
    (ConfigAnswer, ("node", "config", "get", "work.workers")),
    (ConfigAnswer, ("node", "config", "set", "work.workers", "2")),
    (ConfigAnswer, ("node", "config", "path")),
    (
        PathsAnswer,
        (
            "node",
            "paths",
        ),
    ),
    (IdentityAnswer, ("node", "id", "show")),
    (DevicesAnswer, ("node", "id", "devices")),
    (NetworkAnswer, ("network", "show")),
    (NetworkAnswer, ("network", "invite")),
    (NetworkAnswer, ("network", "trust", "ab" * 32)),
    (TaskAnswer, ("task", "show")),
    (DownAnswer, ("down",)),
]


def strictly(text: str, model: type[Model]) -> Model:
    """Decode, and check that the model knows every field that is there."""
    decoded = msgspec.json.decode(text, type=model, strict=True)
    assert msgspec.to_builtins(decoded) == json.loads(text)
    return decoded


@pytest.mark.parametrize(("model", "words"), DOCUMENTS)
def test_every_document_is_its_model(
    cli: Cli, filled: Filled, model: type[msgspec.Struct], words: tuple[str, ...]
) -> None:
    result = cli(*words, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    document = strictly(result.stdout, model)
    schema = next(field.default for field in msgspec.structs.fields(model) if field.name == "schema")
    assert json.loads(result.stdout)["schema"] == schema == document.schema  # type: ignore[attr-defined]


@pytest.mark.slow
def test_doctor_is_its_model(cli: Cli, filled: Filled) -> None:
    answer = strictly(cli("node", "doctor", "--json").stdout, DoctorAnswer)
    assert {check.name for check in answer.checks} >= {
        "python",
        "torch",
        "disk",
        "log",
        "keys",
        "daemon",
        "task",
        "clock",
    }
    assert answer.probes


def test_whole_records_keep_what_strangers_wrote_as_data(cli: Cli, filled: Filled) -> None:
    answer = strictly(cli("show", filled.stranger, "--json").stdout, ShowAnswer)
    assert answer.run
    assert answer.run.run.title == NASTY


def test_export_as_json_lines_has_every_run_whole(cli: Cli, filled: Filled) -> None:
    for words in (("run", "export", "--format", "jsonl"), ("run", "export", "--json")):
        rows = [strictly(line, ShowAnswer) for line in cli(*words).stdout.splitlines()]
        assert [answer.record.id for answer in rows] == [*filled.ids, filled.stranger]
        assert all(answer.run and answer.run.run.title for answer in rows)


def test_export_to_a_file_says_what_it_wrote(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    answer = strictly(
        cli("run", "export", "-o", str(tmp_path / "x.csv"), "--format", "csv", "--json").stdout, ExportAnswer
    )
    assert (answer.runs, answer.format) == (6, "csv")


def test_import_says_what_it_did(cli: Cli, filled: Filled, tmp_path: Path) -> None:
    file = tmp_path / "results.tsv"
    file.write_text("commit\tval_bpb\tmemory_gb\tstatus\tdescription\nabc\t1.0\t2.0\tkeep\tbaseline\n")
    assert strictly(cli("node", "import", str(file), "--json").stdout, ImportAnswer).added == 1


def test_status_names_the_state_of_a_node_that_is_down(cli: Cli, filled: Filled) -> None:
    answer = strictly(cli("status", "--json").stdout, StatusAnswer)
    assert (answer.running, answer.state, answer.records, answer.mine) == (False, "stopped", 9, 7)
    assert answer.task
    assert answer.task.closed == pytest.approx(0.4)
