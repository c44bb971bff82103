"""Packages of others in tests, as pip leaves them, and the examples of the page about extensions."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/extending.md"


def groups() -> tuple[str, ...]:
    """The groups that the page describes."""
    return tuple(re.findall(r"^## `(.+)`$", PAGE.read_text(), re.MULTILINE))


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, points: str) -> None:
    """Make a package in a folder of the path."""
    folder.mkdir(exist_ok=True)
    (folder / "my_package.py").write_text(module)
    metadata = folder / "my_package-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_package", raising=False)


def install_example(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, number: int = 0) -> None:
    """Make a package that the page shows for a group: the first one, or that with this number."""
    (chapter,) = re.findall(rf"^## `{re.escape(group)}`\n(.+?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    module = re.findall(r"```python\n((?:from|import) .+?)```", chapter, re.DOTALL)[number]
    toml = tomllib.loads(re.findall(r"```toml\n(.+?)```", chapter, re.DOTALL)[number])
    points = toml["project"]["entry-points"][group]
    install(folder, monkeypatch, module, f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in points.items()))
