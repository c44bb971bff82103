"""Every command that reads answers in a log in which strangers put every field at its ends."""

from __future__ import annotations

import pytest
from typer.testing import Result

from autoresearch.ask.commands import COMMANDS
from autoresearch.log.derive.driver import settle
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import KINDS
from tests.cli.conftest import Cli
from tests.hostile.ends import Hostile
from tests.log.standing.village import ANN, EVE, STRANGER, Village
from tests.nasty import harms
from tests.record.making import pairs

# These start something, wait for somebody or change this home; all others, and those to come, are asked.
ACTS = {
    *("join", "up", "down", "work", "run", "open", "demo", "mcp", "init", "install", "uninstall", "use", "train"),
    *("get", "verify", "run propose", "run wait", "run cancel", "run vary", "run claim", "run believe", "run withdraw"),
    *("run checkout", "run star", "run unstar", "task get", "task new", "task pin", "task lock", "task allow"),
    *("task archive", "task restore", "agent serve", "agent reset", "agent yank", "node pause", "node resume"),
    *("node finish", "node events", "node setup", "node install", "node uninstall", "node backup", "node restore"),
    *("node repair", "node compact", "node import", "node config", "node doctor", "network new", "network join"),
    *("network invite", "network admit", "network dismiss", "network trust", "network distrust", "network use"),
    *("network bring", "network forget", "note add", "publish", "task attack"),
}


def is_answer(result: Result) -> bool:
    """Whether a command answered, or said in a sentence what was wrong with the question."""
    return result.exit_code in (0, 2, 3, 4, 5, 8) and "this is a bug" not in result.output


@pytest.mark.slow
def test_every_command_answers(cli: Cli, village: Village) -> None:
    honest = village.run(1.7, "honest", by=ANN)
    arguments = {
        "task": village.task,
        "run": honest.id,
        "parent": honest.id,
        "status": "ok",
        "value": 1.5,
        "cpu_ms": 1000,
    }
    arguments |= {"budget": 1e12, "definition": village.definition, "genome": {"LR": 0.1}, "topic": "insight"}
    arguments |= {"participant": STRANGER.public, "subject": STRANGER.public, "root": STRANGER.public}
    about = [honest.id]
    for who in (EVE, STRANGER):
        head = village.log.devices.head(who.public)
        made = list(Hostile(who, arguments, head.seq if head else 0, village.now_ms).records(KINDS))
        verdicts = village.log.writer.ingest(pairs([record for _, record in made]), now_ms=village.now_ms + 10**8)
        stored = {verdict.id for verdict in verdicts if verdict.record}
        about += {field: record.id for field, record in made if record.id in stored}.values()
    settle(village.log, seconds=60)
    for name in COMMANDS.keys() - ACTS:
        words = name.split()
        for more in ([], ["--json"], ["--task", village.task.hex()], ["depth"]):
            result = cli(*words, *more)
            assert is_answer(result), (words, more, result.output[-2000:])
            assert not harms(result.stdout.replace("\n", "")) or "--json" in more, (words, more)
    for name in ("show", "run lineage", "run evidence", "diff", "search", "node records", "network credit"):
        for each in about[:: max(1, len(about) // 10)]:
            result = cli(*name.split(), format_id(each))
            assert is_answer(result), (name, result.output[-2000:])
    assert cli("show", format_id(honest.id)).exit_code == 0
