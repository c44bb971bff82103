"""Runs in the layout of MLflow's file store, read back as MLflow does: a file a number, and meta.yaml."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from autoresearch_exports.mlflow import run_files

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.standing.answers import RunView
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run
from autoresearch.run.experiment import plan_as_it_stands
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, TRAIN, Filled, measured

pytestmark = pytest.mark.usefixtures("filled")


def runs(folder: Path) -> dict[str, Path]:
    """The folders of runs by the name of their record."""
    return {tag.read_text(): tag.parents[1] for tag in folder.glob("*/*/tags/autoresearch.record")}


def test_every_run_is_there_with_its_numbers_below_its_parent(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "mlruns"
    written = cli("run", "export", "--format", "mlflow", "-o", str(place))
    assert written.exit_code == 0, written.output
    assert "mlflow migrate-filestore --source" in written.stderr
    assert f"mlflow ui --backend-store-uri sqlite:///{place}/mlflow.db" in written.stderr
    records = [json.loads(line) for line in cli("run", "export", "--json").stdout.splitlines()]
    result = runs(place)
    assert result.keys() == {each["run"]["id"] for each in records}
    for each in records:
        view, folder = each["run"], result[each["run"]["id"]]
        run = view["run"]
        about = yaml.safe_load((folder / "meta.yaml").read_text())
        assert about["run_id"] == about["run_uuid"] == folder.name
        assert len(folder.name) == 32
        assert (
            about["experiment_id"]
            == folder.parent.name
            == yaml.safe_load((folder.parent / "meta.yaml").read_text())["experiment_id"]
        )
        assert about["status"] == (3 if run["status"] == "ok" else about["status"])
        assert about["start_time"] <= about["end_time"] == view["time_ms"]
        assert about["artifact_uri"] == (folder / "artifacts").as_uri()
        for name, number in run["metrics"].items():
            time, value, step = (folder / "metrics" / name).read_text().split()
            assert (int(time), float(value), int(step)) == (view["time_ms"], number, 0)
        if run["curve"]:
            lines = (folder / "metrics/curve").read_text().splitlines()
            assert [float(line.split()[1]) for line in lines] == run["curve"]
        assert (folder / "params/seed").read_text() == str(run["seed"])
        assert (folder / "params/mode").read_text() == "experiment"
        if run["parent"] in result:
            assert (folder / "tags/mlflow.parentRunId").read_text() == result[run["parent"]].name
    assert any((folder / "artifacts/program/train.py").is_file() for folder in result.values())


def test_a_checkpoint_is_there_as_long_as_it_is_whole(cli: Cli, filled: Filled, paths: Paths, tmp_path: Path) -> None:
    learned = tmp_path / "learned"
    learned.write_bytes(b"weights")
    with Notebook(paths) as notebook:
        plan = plan_as_it_stands(filled.task, TRAIN.format(x=1.1), title="learns", genome={"X": 1.1})
        published = notebook.publish_run(plan, measured(1.1), START_MS + 900_000, log=b"", checkpoint=learned)
        assert isinstance(published.record.body, Run)
        assert published.record.body.checkpoint is not None
        blob = published.record.body.checkpoint.sha256.hex()
    for content in (b"weights", None):
        place = tmp_path / f"mlruns-{content!r}"
        assert cli("run", "export", "--format", "mlflow", "-o", str(place)).exit_code == 0
        artifacts = runs(place)[format_id(published.record.id)] / "artifacts"
        checkpoint = artifacts / "checkpoint.safetensors"
        assert (checkpoint.read_bytes() if checkpoint.exists() else None) == content
        assert (artifacts / "program/train.py").is_file()
        [path] = [path for path in paths.blobs.rglob("*") if path.is_file() and blob[4:] in path.name]
        path.chmod(0o600)
        path.write_bytes(b"changed")


def test_a_folder_that_is_there_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    (tmp_path / "mlruns/mine").write_text("")
    refused = cli("run", "export", "--format", "mlflow", "-o", str(tmp_path / "mlruns"))
    assert refused.exit_code == 6
    assert list((tmp_path / "mlruns").iterdir()) == [tmp_path / "mlruns/mine"]
    assert cli("run", "export", "--format", "mlflow").exit_code == 2
    assert cli("run", "export", "--format", "mlflow", "-o", str(tmp_path / "x"), "--task", "nonsense").exit_code == 4
    name = json.loads(cli("task", "list", "--json").stdout)["tasks"][0]["name"]
    assert cli("run", "export", "--format", "mlflow", "-o", str(tmp_path / "one"), "--task", name).exit_code == 0


def test_names_that_others_chose_are_plain_names_of_files(cli: Cli) -> None:
    record = json.loads(cli("best", "--json").stdout)["run"]
    record["run"] |= {"metrics": {"../../x": 1.0, "a/b\n": 2.0, "..": 3.0}, "genome": {"/etc/passwd": "x\n"}}
    record["run"]["title"] = "a\nb"
    run = msgspec.convert(record, RunView)
    files = run_files(run, "../loss", "file:///tmp/x", {})
    names = [name.split("/") for name in files]
    assert all(len(parts) in (3, 4) and not {"", ".", ".."} & set(parts) for parts in names)
    assert (
        yaml.safe_load(next(content for name, content in files.items() if name.endswith("meta.yaml")))["run_name"]
        == "a\nb"
    )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mlflow") is None, reason="there is no mlflow on the PATH")
def test_mlflow_makes_its_database_of_the_folder(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "mlruns"
    written = cli("run", "export", "--format", "mlflow", "-o", str(place))
    migration = next(line for line in written.stderr.splitlines() if "migrate-filestore" in line)
    done = subprocess.run(shlex.split(migration.removeprefix("→ ")), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(place / "mlflow.db") as database:
        tagged = database.execute("SELECT run_uuid, value FROM tags WHERE key = 'autoresearch.record'").fetchall()
    assert dict(tagged) == {folder.name: record for record, folder in runs(place).items()}
    values = "SELECT value FROM latest_metrics WHERE run_uuid = ? AND key = 'curve'"
    with sqlite3.connect(place / "mlflow.db") as database:
        for name, record in tagged:
            curve = next(
                json.loads(line)["run"]["run"]["curve"]
                for line in cli("run", "export", "--json").stdout.splitlines()
                if json.loads(line)["run"]["id"] == record
            )
            assert [float(value) for (value,) in database.execute(values, (name,))] == curve[-1:]
