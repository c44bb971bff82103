"""The guide to the API says what is true."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from autoresearch_daemon.api.app import OPERATIONS
from autoresearch_daemon.api.events import MAXIMUM_LISTENERS

from docs.generate.operations import fill

GUIDE = fill((Path(__file__).parents[3] / "docs" / "reference" / "api.md").read_text())
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
    for line in block.splitlines()
    if line[:4] == "ask "
]


def test_every_operation_has_one_row():
    rows = re.findall(r"^\| `((?:GET|POST) /[^`]*)` \|", GUIDE, re.MULTILINE)
    assert sorted(rows) == sorted(operation.address for operation in OPERATIONS.values())


def test_no_other_address_is_named():
    named = {(method, path.partition("?")[0]) for method, path in re.findall(r"`(GET|POST) (/[^`\s]*)`", GUIDE)}
    assert named == {(operation.method, operation.path) for operation in OPERATIONS.values()}


def test_the_numbers_are_those_of_the_code():
    assert f"At most {MAXIMUM_LISTENERS} listeners" in GUIDE


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("command", [line for line in COMMANDS if "events" not in line])
async def test_every_example_works(client, tmp_path, command):
    define = re.search(r"^ask\(\).*$", GUIDE, re.MULTILINE)[0].replace("--silent", "--silent --fail-with-body")
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f"{define}\n{command}",
        env={"SOCKET": str(tmp_path / "run" / "api.sock"), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    assert output or ">" in command


def test_there_are_examples():
    assert len(COMMANDS) >= 6
