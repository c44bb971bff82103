"""Help leads with examples, for every command; and it is quick because it imports nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from autoresearch_cli.groups import CommandGroup
from autoresearch_cli.main import app

from autoresearch.ask.commands import COMMANDS, NOUNS, SECTIONS
from autoresearch.paths import Paths
from docs.generate.commands import fill
from tests.cli.conftest import Cli, Process
from tests.cli.filling import Filled

DOCS = Path(__file__).parents[2] / "docs"


def commands(path: str) -> tuple[str, ...]:
    """The commands that may follow one that is a group too, as ``add`` follows ``network peers``."""
    group: Any = typer.main.get_group(app)
    for word in path.split():
        group = CommandGroup(word) if word in NOUNS else group.get_command(typer.Context(group), word)
    return tuple(getattr(group, "commands", ()))


# Whoever adds a command has it tested by this.
GROUPS = {path: names for path in COMMANDS if path not in NOUNS and (names := commands(path))}
# They do something alone.
ACTING = {"publish", "network peers", "node doctor"}
SHOWING = {"node id", "network", "node config"}
EVERY = [tuple(path.split()) for path in COMMANDS] + [(noun,) for noun in NOUNS if noun not in COMMANDS]
EVERY += [(*group.split(), name) for group, names in GROUPS.items() for name in names]
SLOW = {
    "autoresearch.log.log",
    "autoresearch.log.standing.queries",
    "autoresearch.ask.runs.boards",
    "dag_cbor",
    "sqlite3",
    "pydantic",
    "http",
}
HEAVY = {"torch", "libp2p", "aiohttp", "trio", "zmq", "structlog", "multiaddr"}
LISTING = """
import sys
from autoresearch_cli.main import app
try:
    app(sys.argv[1:])
except SystemExit:
    pass
import json
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(process: Process, *words: str) -> set[str]:
    """The packages and modules that are loaded after a command."""
    result = process(*words, python=("-c", LISTING))
    return set(json.loads(result.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", EVERY)
def test_every_command_has_a_sentence_three_examples_and_relatives(cli: Cli, words: tuple[str, ...]) -> None:
    result = cli(*words, "--help")
    assert result.exit_code == 0
    _, _, examples = result.stdout.partition("Examples:")
    commands = re.findall(r"^ {4}\S.*", examples.partition("See also:")[0], re.MULTILINE)
    assert len(commands) == 3
    assert all("autoresearch" in command for command in commands)
    assert re.search(r"See also: \w+", result.stdout)
    assert re.search(
        r"\A([A-Z].*:\n  autoresearch .*\n\n)?(Usage: .*\n( {7}.*\n)*)\n  [A-Z][^.:]*[.:]", result.stdout
    ), "a sentence below the usage"


@pytest.mark.parametrize("words", [words for words in EVERY if " ".join(words) not in {*GROUPS, *NOUNS}])
def test_every_command_offers_json(cli: Cli, words: tuple[str, ...]) -> None:
    # The first speaks a protocol of JSON, the second is a document of it, the others ask a person.
    if words not in {("mcp",), ("node", "config", "schema"), ("node", "setup"), ("node", "config", "edit")}:
        assert "--json" in cli(*words, "--help").stdout


@pytest.mark.parametrize("words", EVERY)
def test_related_commands_exist(cli: Cli, words: tuple[str, ...]) -> None:
    related = cli(*words, "--help").stdout.split("See also:")[1].split(",")
    for first, *more in (word.split() for word in related):
        following = [*more, ""][0]
        if first in NOUNS and following[:1] not in ("", "-"):
            assert f"{first} {following}" in COMMANDS
        else:
            assert first in COMMANDS or first in NOUNS


def test_the_root_help_lists_every_command_with_its_line(cli: Cli) -> None:
    output = cli("--help").stdout
    for name, entry in [*((name, entry) for part in SECTIONS.values() for name, entry in part.items()), *NOUNS.items()]:
        assert re.search(rf"^  {name} +{re.escape(entry.summary)}$", output, re.M), name


def test_without_a_command_a_new_home_has_three_ways_in_and_any_other_its_status(cli: Cli, paths: Paths) -> None:
    result = cli()
    assert result.exit_code == 0
    for command in ("autoresearch demo", "autoresearch join INVITE", "autoresearch task new DIR"):
        assert command in result.stdout
        assert " ".join(command.split()[1:3]).removesuffix(" INVITE") in {*COMMANDS, *NOUNS}
    paths.create()
    assert cli().stdout == cli("status").stdout


def test_groups_without_a_command_show_their_help(cli: Cli) -> None:
    groups = GROUPS | {noun: tuple(each.commands) for noun, each in NOUNS.items() if noun not in COMMANDS}
    for group in groups.keys() - SHOWING - ACTING:
        output = cli(*group.split()).output
        assert all(name in output for name in groups[group])


@pytest.mark.parametrize("group", sorted(SHOWING))
def test_groups_that_have_something_to_show_show_it(cli: Cli, filled: Filled, group: str) -> None:
    alone, whole = cli(*group.split()), cli(*group.split(), "show")
    assert (alone.exit_code, alone.stdout) == (0, whole.stdout)
    assert f"→ autoresearch {group}" in alone.stderr
    assert f"autoresearch {group} --help" in alone.stderr


def test_looking_for_keys_where_there_are_none_is_no_failure(cli: Cli) -> None:
    alone = cli("node", "id")
    assert (alone.exit_code, "autoresearch node id new" in alone.stderr) == (0, True)
    assert cli("node", "id", "show").exit_code == 4


def test_help_and_guide_name_the_same_exit_codes(cli: Cli) -> None:
    output = " ".join(cli("--help").stdout.split()).partition("Exit codes: ")[2]
    page = (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    table = page.partition("| exit code | means |")[2].partition("\n\n")[0]
    assert re.findall(r"(\d+) [a-z]", output) == re.findall(r"^\| (\d+) \|", table, re.MULTILINE)


@pytest.mark.parametrize("noun", NOUNS)
def test_the_help_of_a_noun_begins_with_the_usual_case(cli: Cli, noun: str) -> None:
    example, meaning = NOUNS[noun].examples[0]
    output = cli(noun, "--help").stdout
    assert output.startswith(f"{meaning[0].upper()}{meaning[1:]}:\n  {example}\n\nUsage: autoresearch {noun} ")


def test_values_have_one_word_in_the_help_and_no_type_of_python(cli: Cli) -> None:
    for words in EVERY:
        usage, _, rest = cli(*words, "--help").stdout.partition("Options:")
        assert not re.search(r"<(str|int|float|path|list)\b|\[\[|\{", usage + rest.partition("Examples:")[0]), words
        assert not re.search(r"[a-z]\.\.\.", rest.partition("Examples:")[0]), f"{words}: a sentence is cut"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("tsk list", "Did you mean task?"),
        ("config show", "→ autoresearch node config"),
        ("task lsit", "Did you mean task list?"),
        ("best --taks moons", "There is no option --taks. Did you mean --task?"),
        ("best --task my-tsak", "did you mean my-task?"),
        ("node config get work.worker", "did you mean work.workers?"),
        ("network use comons", "did you mean commons?"),
    ],
)
def test_a_wrong_word_gets_the_nearest_right_one(cli: Cli, filled: Filled, words: str, meant: str) -> None:
    result = cli(*words.split())
    assert result.exit_code in {2, 4}
    assert meant in result.stderr


@pytest.mark.parametrize("words", [(), ("status",), ("task",), ("task", "new")])
def test_help_is_a_word_too(cli: Cli, words: tuple[str, ...]) -> None:
    assert cli("help", *words).stdout == cli(*words, "--help").stdout
    assert cli("task", "help", *words[1:]).stdout == cli("task", *words[1:], "--help").stdout


def test_a_mistyped_id_gets_the_nearest_one(cli: Cli, filled: Filled) -> None:
    right = filled.best.removeprefix("bafyrei")[:8]
    for wrong in (right[:3] + ("a" if right[3] != "a" else "b") + right[4:], right[:5] + "0" + right[5:]):
        result = cli("show", wrong)
        assert (result.exit_code in {2, 4}, f"did you mean {right}" in result.stderr) == (True, True), result.stderr
    assert "did you mean" not in cli("show", "22222222").stderr


def test_the_version_is_printed(cli: Cli) -> None:
    from autoresearch.version import __version__

    assert cli("--version").stdout == __version__ + "\n"


def test_the_root_help_imports_nothing_that_it_does_not_need(process: Process) -> None:
    modules = imported(process, "--help")
    assert not modules & (HEAVY | SLOW | {"msgspec", "httpx", "rich", "nacl", "numpy", "platformdirs"})


@pytest.mark.parametrize("words", [("status",), ("best",)])
def test_a_new_machine_is_told_quickly_that_nothing_is_there(process: Process, words: tuple[str, ...]) -> None:
    assert not imported(process, *words) & (HEAVY | SLOW)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        (
            "node",
            "records",
        ),
        ("top",),
        ("show", "@"),
        ("diff", "@"),
        (
            "run",
            "export",
        ),
        ("status",),
    ],
)
def test_reading_imports_nothing_heavy(process: Process, filled: Filled, words: tuple[str, ...]) -> None:
    assert not imported(process, *words) & (HEAVY | {"httpx", "rich"})


@pytest.mark.slow
def test_no_command_imports_the_daemon_or_torch(process: Process) -> None:
    modules = {entry.module for entry in COMMANDS.values()}
    script = "import sys, importlib\n" + "".join(
        f"importlib.import_module('autoresearch_cli.{module}')\n" for module in sorted(modules)
    )
    script += "import json; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
    modules = set(json.loads(process(python=("-c", script)).stdout))
    assert not modules & (HEAVY | {"autoresearch_daemon"})


def test_the_page_names_every_command_and_option(cli: Cli) -> None:
    page = fill((DOCS / "reference/commands.md").read_text())
    for words in EVERY:
        assert f"`autoresearch {' '.join(words)}" in page or f"### {' '.join(words)}" in page, words
        for option in re.findall(r"^  .*?(--[a-z-]+)", cli(*words, "--help").stdout.partition("Examples:")[0], re.M):
            if option not in ("--help", "--json"):
                assert option in page, (words, option)
    for code in range(10):
        assert re.search(rf"^\| {code} \|", page, re.M)


@pytest.mark.slow
def test_every_command_has_its_usage_on_the_page_once(cli: Cli) -> None:
    page = fill((DOCS / "reference/commands.md").read_text())
    for words in [words for words in EVERY if " ".join(words) not in NOUNS]:
        assert len(re.findall(rf"^#{{3,4}} {' '.join(words)}$", page, re.M)) == 1, words
        assert len(re.findall(rf"^autoresearch {' '.join(words)} (\[OPTIONS\]|COMMAND)", page, re.M)) == 1, words


def test_the_page_of_json_has_every_document_and_its_fields() -> None:
    from docs.generate.documents import documents
    from docs.generate.documents import fill as fill_documents

    page = fill_documents((DOCS / "reference/json.md").read_text())
    named = set(re.findall(r"`(autoresearch\.[a-z_-]+/\d)`", page.partition("\n## ")[0]))
    assert named <= set(re.findall(r"^## `(autoresearch\.[a-z_-]+/\d)`", page, re.M))
    for cls in documents():
        assert all(f"\n| `{field}` | " in page for field in cls.__struct_encode_fields__), cls
