"""Numbers of many digits and values nested deep, in files from elsewhere: a sentence that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.registry.installing import read_requirements
from autoresearch.ask.registry.preparing import prepared
from autoresearch.ask.requests import Description
from autoresearch.errors import UsageError
from autoresearch.project.ini import value_of
from autoresearch.project.learned import load_state
from autoresearch.project.model import load_project, with_parameters
from autoresearch.project.runs.kept import read_run
from autoresearch.propose.program.edits import read_patches
from autoresearch.propose.program.guard import read_names
from autoresearch.settings import load_settings
from autoresearch.task.declared import declared_packages
from autoresearch.task.release import File
from autoresearch.text import read_json, read_toml
from autoresearch.trust.manifest_file import parse_manifest
from tests.cli.conftest import Cli
from tests.cli.conftest import cli as cli  # noqa: PLC0414
from tests.cli.conftest import home as home  # noqa: PLC0414
from tests.project.making import plain

DIGITS = "9" * 50_000
TOML = [
    f"x = {DIGITS}",
    f"x = -{DIGITS}",
    f"x = [1, {DIGITS}]",
    f"x = {{ y = {DIGITS} }}",
    f"[x.y]\nz = {DIGITS}",
    f"x = 0x{DIGITS}{DIGITS}\ny = {DIGITS}",
    "x = " + "[" * 100_000,
    "x = " + "[" * 500 + "]" * 500,
    "x = " + "{ a = " * 300 + "1" + " }" * 300,
    ".".join(["a"] * 10_000) + " = 1",
    "[" + ".".join(["a"] * 10_000) + "]",
    "x = { " + " . ".join(["a"] * 10_000) + " = 1 }",
    ".".join(['"a b"'] * 10_000) + " = 1",
    ".".join(["'a \\ b'", '"a \\" b"'] * 5_000) + " = 1",
    "x = 2026-99-99",
    "x = \x00",
    "x = '\udcff'",
]
JSON = [DIGITS, f"-{DIGITS}", f"[{DIGITS}]", f'{{"a": {DIGITS}}}', "[" * 100_000, '{"a":' * 100_000]
JSON += ["[" * 500 + "]" * 500, '{"a":' * 300 + "1" + "}" * 300, "[" * 500 + "{}" + "]" * 500, "\x00"]
SAID = Description(type="policy", name="x", version="", class_name="")


def content(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("text", TOML, ids=range(len(TOML)))
def test_toml_from_elsewhere_is_a_sentence(text: str, tmp_path: Path, cli: Cli) -> None:
    data = content(text)
    with pytest.raises(ValueError):
        read_toml(data)
    for read in (
        lambda: parse_manifest(data, "a manifest"),
        lambda: read_patches(data, "changes.toml"),
        lambda: read_names(data, "names.toml"),
        lambda: read_requirements("pyproject.toml", data),
        lambda: prepared([File("a.py", b"class A: pass\n"), File("pyproject.toml", data)], SAID),
    ):
        with pytest.raises(UsageError):
            read()
    for name in ("task.toml", "pyproject.toml", "settings.toml"):
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError):
        load_settings(tmp_path / "settings.toml", {})
    assert declared_packages(tmp_path, {}) == {}
    for words in (
        ("task", "show", str(tmp_path)),
        ("run", str(tmp_path)),
        ("network", "join", str(tmp_path / "task.toml")),
    ):
        refused = cli(*words)
        assert refused.exit_code not in {0, 70}, (words, refused.stderr)
        assert "this is a bug" not in refused.stderr


@pytest.mark.parametrize("text", JSON, ids=range(len(JSON)))
def test_json_from_elsewhere_is_a_sentence(text: str, tmp_path: Path, cli: Cli) -> None:
    with pytest.raises(ValueError):
        read_json(text)
    assert value_of(text) == text, "a setting that is no value is the text itself"
    (tmp_path / "policy.x.json").write_text(text)
    with pytest.raises(UsageError, match="is damaged"):
        load_state(tmp_path, "policy.x")
    (tmp_path / "a.ipynb").write_text(text)
    refused = cli("task", "new", str(tmp_path), "--once")
    assert refused.exit_code not in {0, 70}, refused.stderr


@pytest.mark.parametrize("text", [f"rate: {DIGITS}", "rate: " + "[" * 1000, f"rate: [{DIGITS}]", "rate: 2026-99-99"])
def test_yaml_of_a_project_is_a_sentence(text: str, tmp_path: Path) -> None:
    folder = plain(tmp_path / "agent")
    (folder / "parameters.yaml").write_text(f"policy:\n  {text}\n")
    with pytest.raises(UsageError, match=r"parameters\.yaml"):
        with_parameters(load_project(folder))
    run_folder = folder / ".autoresearch" / "runs" / "damaged"
    run_folder.mkdir(parents=True)
    (run_folder / "run_data.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"run_data\.yaml is damaged"):
        read_run(load_project(folder), "damaged")
