"""What is said to install comes from where this installation came from."""

from __future__ import annotations

import json

import pytest

from autoresearch.errors import command_for, install_command

FROM = [
    (None, 'pip install "autoresearch-p2p[network]"'),
    ({"url": "file:///my%20code", "dir_info": {"editable": True}}, 'pip install -e "/my code[network]"'),
    ({"url": "file:///code", "dir_info": {}}, 'pip install "/code[network]"'),
    (
        {"url": "https://example.org/it", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
        'pip install "autoresearch-p2p[network] @ git+https://example.org/it"',
    ),
    (
        {"url": "https://example.org/it.whl", "archive_info": {}},
        'pip install "autoresearch-p2p[network] @ https://example.org/it.whl"',
    ),
]


@pytest.mark.parametrize(("origin", "command"), FROM)
def test_an_extra_is_installed_from_where_the_program_came(origin: dict[str, object] | None, command: str) -> None:
    assert command_for("network", None if origin is None else json.dumps(origin)) == command


def test_this_installation_is_known() -> None:
    assert install_command("attest").startswith("pip install")
