"""A device went on from an older copy of its log: what is said of the fork, and the command that ends it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.run.experiment import plan_as_it_stands
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, TRAIN, Filled, measured

WORDS = "correct horse battery staple"


def one_more(paths: Paths, filled: Filled, x: float, title: str) -> str:
    """This device runs something."""
    with Notebook(paths) as notebook:
        parent = notebook.log.records.resolve(filled.best)
        plan = plan_as_it_stands(filled.task, TRAIN.format(x=x), title=title, parent=parent, genome={"X": x})
        return format_id(notebook.publish_run(plan, measured(x), START_MS + 900_000, log=b"").record.id)


@pytest.fixture
def forked(home: Path, paths: Paths, filled: Filled, tmp_path: Path) -> list[str]:
    """The runs of this device on both branches; the log here has them all."""
    copy = shutil.copytree(home, tmp_path / "copy")
    first = one_more(paths, filled, 1.2, "on the lost branch")
    older = Paths.from_environment({"AUTORESEARCH_HOME": str(copy)})
    two = [one_more(older, filled, x, "on the other branch") for x in (1.25, 1.1)]
    with Notebook(older) as lost, Notebook(paths) as notebook:
        records = [lost.log.records.get(lost.log.records.resolve(run)) for run in two]
        notebook.log.writer.ingest([(record.raw, record.signature) for record in records], now_ms=START_MS + 900_000)
    return [first, *two]


def counted(cli: Cli) -> set[str]:
    """The runs on the board."""
    return {row["id"] for row in json.loads(cli("top", "--json").stdout)["programs"]}


def log_check(cli: Cli) -> dict[str, str]:
    checks = json.loads(cli("node", "doctor", "--json").stdout)["checks"]
    return next(check for check in checks if check["name"] == "fork")


@pytest.mark.slow
def test_the_root_key_ends_the_fork_and_both_branches_count(cli: Cli, forked: list[str]) -> None:
    assert not counted(cli) & set(forked)
    check = log_check(cli)
    assert check["result"] == "warning"
    assert check["fix"].endswith("autoresearch node id merge")
    assert "history forked at its record" in check["detail"]
    assert "autoresearch node id merge" in cli("show", forked[0]).stderr

    result = cli("node", "id", "merge", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert (answer["schema"], answer["runs"]) == ("autoresearch.merge/1", 3)
    assert set(answer["heads"]) == {forked[0], forked[2]}
    assert counted(cli) >= set(forked)
    assert log_check(cli)["result"] == "ok"
    reply = cli("show", forked[0])
    assert "autoresearch node id merge" not in reply.stderr
    assert json.loads(cli("show", answer["id"], "--json").stdout)["record"]["kind"] == "merge"
    document = json.loads(cli("run", "evidence", "--kind", "fork", "--json").stdout)["evidence"]
    assert {each["follows"] for each in document} == {"merged"}
    again = cli("node", "id", "merge")
    assert (again.exit_code, "has no fork" in again.stderr) == (6, True)


@pytest.mark.slow
def test_it_says_what_it_did_and_takes_the_passphrase_of_the_root_key(
    cli: Cli, forked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    assert cli("node", "id", "passphrase").exit_code == 0
    monkeypatch.delenv("AUTORESEARCH_PASSPHRASE")
    merge = cli("node", "id", "merge")
    assert merge.exit_code == 2
    assert "passphrase" in merge.stderr
    assert not counted(cli) & set(forked)
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", WORDS)
    device = json.loads(cli("node", "id", "show", "--json").stdout)["device_key"]
    assert cli("node", "id", "merge", "zz").exit_code == 4
    result = cli("node", "id", "merge", device[:10])
    assert result.exit_code == 0
    assert f"2 branches of device {device[:16]}… merged" in result.stderr
    assert "3 runs may count again" in result.stderr


def test_what_the_device_runs_next_counts_on_either_side(
    cli: Cli, filled: Filled, forked: list[str], paths: Paths
) -> None:
    assert cli("node", "id", "merge").exit_code == 0
    later = one_more(paths, filled, 1.05, "after the merge")
    assert later in counted(cli)


def test_without_a_fork_there_is_nothing_to_merge(cli: Cli, filled: Filled, paths: Paths) -> None:
    refused = cli("node", "id", "merge")
    assert (refused.exit_code, "has no fork" in refused.stderr) == (6, True)
    assert log_check(cli)["result"] == "ok"
    with Notebook(paths) as notebook:
        assert notebook.log.records.count("merge") == 0
        assert notebook.log.network == DEFAULT_NETWORK
