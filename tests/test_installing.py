"""What is said to install comes from where this installation came from."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from autoresearch.errors import command_for, install_command

FROM = [
    (None, 'pip install "autoresearch-p2p[ssh]"'),
    ({"url": "file:///my%20code", "dir_info": {"editable": True}}, 'pip install -e "/my code[ssh]"'),
    ({"url": "file:///code", "dir_info": {}}, 'pip install "/code[ssh]"'),
    (
        {"url": "https://example.org/it", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
        'pip install "autoresearch-p2p[ssh] @ git+https://example.org/it"',
    ),
    (
        {"url": "https://example.org/it.whl", "archive_info": {}},
        'pip install "autoresearch-p2p[ssh] @ https://example.org/it.whl"',
    ),
]


@pytest.mark.parametrize(("origin", "command"), FROM)
def test_an_extra_is_installed_from_where_the_program_came(origin: dict[str, object] | None, command: str) -> None:
    assert command_for("ssh", None if origin is None else json.dumps(origin)) == command


def test_this_installation_is_known() -> None:
    assert install_command("attest").startswith("pip install")


def needs(names: list[str]) -> set[str]:
    """The distributions that installed ones ask for, with these."""
    seen: set[tuple[str, ...]] = set()
    todo = [Requirement(name) for name in names]
    while todo:
        requirement = todo.pop()
        if (canonicalize_name(requirement.name), *sorted(requirement.extras)) in seen:
            continue
        seen.add((canonicalize_name(requirement.name), *sorted(requirement.extras)))
        todo += [
            need
            for need in map(Requirement, distribution(requirement.name).requires or ())
            if need.marker is None
            or any(need.marker.evaluate({"extra": extra}) for extra in requirement.extras or {""})
        ]
    return {name for name, *_ in seen}


def test_the_list_of_the_network_is_complete_and_asks_for_no_compiler() -> None:
    pytest.importorskip("libp2p")
    words = shlex.split(install_command("network"))
    assert words[:4] == ["pip", "install", "--no-deps", "--requirement"]
    lines = [line for line in Path(words[4]).read_text().splitlines() if line and not line.startswith("#")]
    listed = {canonicalize_name(line.split("==")[0]): line for line in lines}
    plain = needs([need for need in distribution("autoresearch-p2p").requires or () if "extra" not in need])
    assert listed.keys() == needs(["libp2p"]) - plain
    assert listed["fastecdsa"] != "fastecdsa==2.3.2"
