"""What strangers write into any field of any record reaches no terminal as anything but text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import KINDS, Run
from autoresearch.record.record import Record
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.cli.filling import write_folder
from tests.cli.hostile import PROGRAM, fill, texts
from tests.nasty import FORGED, NASTY, STEERING, harms
from tests.record.making import NETWORK
from tests.terminals import on_terminal

# Many commands in one process, each between two lines that name it.
DRIVER = """
import json, sys
from autoresearch_cli.main import app
for words in json.load(open(sys.argv[1])):
    print("\\n<<<", json.dumps(words), flush=True)
    try:
        app(words)
    except SystemExit:
        pass
    sys.stdout.flush(), sys.stderr.flush()
"""
# Events of a daemon as the displays of `work --follow`, `run`, `verify` and `demo` show them.
WATCHING = """
import json, sys
from autoresearch.ask.node import Event
from autoresearch_cli.demo.display import DemoDisplay
from autoresearch_cli.demo.display import DemoState
from autoresearch_cli.event_display import EventLines
from autoresearch_cli.event_display import PlainDisplay, TerminalDisplay
from autoresearch_cli.event_display import EventMonitor
nasty = json.load(open(sys.argv[1]))
data = dict.fromkeys(("title", "reason", "status", "why", "run", nasty), nasty) | {"assignment": "one", "fraction": 0.5}
kinds = ("run_started", "progress", "confirmed", "state", "worker", "committed", "run_finished", "run_failed", nasty)
events = [Event(id=1, kind=kind, time_ms=0, text=nasty, data=data) for kind in kinds]
for display in (TerminalDisplay(quiet=False), PlainDisplay(quiet=False)):
    with display:
        monitor = EventMonitor(display, standing=lambda: nasty)
        for event in events:
            monitor.take(event)
        display.progress("two", nasty, 0.5, nasty)
cluster = DemoState.of(["ann"])
display = DemoDisplay(cluster, quiet=False)
with display.live() as live:
    for event in events:
        line = cluster.hear("ann", event)
        if line:
            display.line(line)
        live.refresh()
for event in events:
    EventLines(json=False).print(event)
    EventLines(json=True).print(event)
"""
# What this program itself uses to colour, and to draw again what it drew.
OWN_STYLE = re.compile(r"\x1b\[[0-9;]*m")
OWN_DRAWING = re.compile(r"\x1b\[(\?25[hl]|[0-9]*[AK])|\r")


@pytest.fixture
def records(paths: Paths) -> list[Record]:
    """A home with the stranger's records, and a log file of the daemon with worse in it."""
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK))
    paths.daemon_log.write_text(json.dumps({"event": NASTY, "level": NASTY, "exception": NASTY}) + f"\n{NASTY}\n")
    return fill(paths.log, paths.blobs)


def shown_by(folder: Path, commands: list[list[str]], *, color: str) -> dict[str, str]:
    """What a person sees of each command on a very wide terminal."""
    output = seen(folder, DRIVER, [["--color", color, "--no-pager", *words] for words in commands])
    parts = output.split("\n<<< ")[1:]
    return dict(part.split("\n", 1) for part in parts)  # type: ignore[misc]


def seen(folder: Path, program: str, arguments: object) -> str:
    """What a person sees of a program on a very wide terminal."""
    todo = folder / "given.json"
    todo.write_text(json.dumps(arguments))
    return on_terminal([sys.executable, "-c", program, str(todo)], PYTHONUTF8="1", COLUMNS="20000")


def reading_commands(records: list[Record]) -> list[list[str]]:
    """Every command that shows what is in a log, with every record; most of them once for people, once for programs."""
    ids = [format_id(record.id) for record in records]
    runs = [format_id(record.id) for record in records if isinstance(record.body, Run)]
    about = [["show", record] for record in ids] + [["run", "evidence", record] for record in ids]
    about += [[*command, run] for command in (("run", "lineage"), ("diff",)) for run in runs]
    about += [["diff", runs[0], runs[1]], ["show", runs[0], "--code"], ["show", runs[0], "--log"]]
    fields = ("title", "hypothesis", "metrics", "genome", "environment", "reason", "device", NASTY)
    about += [["show", runs[1], "--field", field] for field in fields]
    whole = [
        ["status"],
        ["best"],
        ["best", "--code"],
        ["top", "--no-pager"],
        ["node", "records", "--claims"],
        ["network", "credit"],
        ["run", "evidence"],
        ["task", "list"],
        ["search"],
        ["search", "environment", NASTY],
    ]
    whole += [
        ["node", "id", "show"],
        ["network", "show"],
        ["node", "logs"],
        ["node", "doctor", "network"],
        ["network", "peers"],
    ]
    wrong = [
        ["show", NASTY],
        ["top", NASTY],
        ["network", "credit", NASTY],
        ["task", "show", NASTY],
        ["node", "config", "set", NASTY, NASTY],
        ["search", NASTY],
        ["agent", "yank", NASTY],
        ["publish", "component", NASTY],
    ]
    wrong += [
        ["task", "get", NASTY],
        [NASTY],
        ["node", "records", f"--{NASTY}"],
        ["node", "import", NASTY],
        ["network", "join", NASTY],
    ]
    once = [["run", "export"], ["run", "export", "--format", "csv"]]
    return [*once, *(words + more for words in (*whole, *about, *wrong) for more in ([], ["--json"]))]


def test_every_kind_has_nasty_text_in_every_field(records: list[Record]) -> None:
    assert {record.kind for record in records} == {*KINDS, "poem"}
    for record in records:
        assert all(NASTY.startswith(text) or text in NASTY for text in texts(record.body) if "\x1b" in text)
        fields = msgspec.structs.fields(type(record.body)) if isinstance(record.body, msgspec.Struct) else ()
        assert all(getattr(record.body, field.name) != "" for field in fields)


@pytest.mark.slow
@pytest.mark.parametrize("color", ["always", "never"])
def test_no_command_lets_it_through(records: list[Record], tmp_path: Path, color: str) -> None:
    commands = reading_commands(records)
    output = shown_by(tmp_path, commands, color=color)
    assert len(output) == len({json.dumps(words) for words in commands})
    everything = ""
    for words, text in output.items():
        everything += text
        assert STEERING not in text, words
        rest = OWN_STYLE.sub("", text) if color == "always" else text
        assert not harms(rest), words
        assert "Traceback" not in rest
        assert "this is a bug" not in rest, words
        if not {"--code", "--log", "diff", "--field", "logs"} & set(json.loads(words)):
            assert not any(line.startswith(FORGED) for line in rest.splitlines()), words
    assert "\ufffd[5;41m\ufffd" in everything, "it is shown, and as text"
    assert "[b]x[/c]" in everything, "and nothing of it is markup"


@pytest.mark.slow
def test_json_on_a_terminal_says_what_was_written(records: list[Record], tmp_path: Path) -> None:
    run = next(record for record in records if isinstance(record.body, Run))
    [output] = shown_by(tmp_path, [["show", format_id(run.id), "--json"]], color="never").values()
    assert json.loads(output)["run"]["run"]["title"] == NASTY


@pytest.mark.slow
@pytest.mark.parametrize("what", ["--code", "--log"])
def test_data_in_a_pipe_is_exact(records: list[Record], what: str) -> None:
    run = next(record for record in records if isinstance(record.body, Run))
    words = [sys.executable, "-m", "autoresearch_cli", "show", format_id(run.id), what]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(words, env=environment, capture_output=True, check=True).stdout == PROGRAM.encode()


@pytest.mark.slow
def test_a_task_folder_that_somebody_made_is_shown_as_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "task").folder
    # A task's summary has no C0 characters; everything else may stand there.
    nasty = "".join(f"\\U{ord(character):08x}" for character in NASTY if character > "\x1f" and character != "\x7f")
    lines = (folder / "task.toml").read_text().splitlines()
    stored = [line for line in lines if not line.startswith("summary")]
    (folder / "task.toml").write_text("\n".join([f'summary = "{nasty}"', *stored]))
    words = [["task", "show", str(folder)], ["task", "show", str(folder), "--json"], ["run", "./task" + NASTY]]
    for color in ("always", "never"):
        for each in shown_by(tmp_path, words, color=color).values():
            assert STEERING not in each
            assert not harms(OWN_STYLE.sub("", each))
            assert "[5" in each or "\ufffd[" in each, "it is shown, and as text"


@pytest.mark.slow
def test_what_is_watched_is_text_too(tmp_path: Path) -> None:
    output = seen(tmp_path, WATCHING, NASTY)
    assert STEERING not in output
    rest = OWN_DRAWING.sub("", OWN_STYLE.sub("", output))
    assert "Traceback" not in rest
    assert not harms(rest)
    assert rest.count("\ufffd[5;41m") > 20
    assert not any(line.startswith(FORGED) for line in rest.splitlines())
