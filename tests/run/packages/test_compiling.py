"""Libraries that were installed without being compiled: a run would compile them each time."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from autoresearch.run.packages import compile_libraries, uncompiled_folders


def test_what_an_installer_left_uncompiled_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    sources = [folder / name for name in ("module.py", "large/__init__.py", "large/deep/part.py")]
    for source in (*sources, folder / "old.py"):
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("VALUE = 1\n")
    (folder / "old.py").write_text("print 'no Python of this version'\n")
    (folder / "data").mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), str(tmp_path / "elsewhere"), *sys.path])

    assert folder in uncompiled_folders()
    compile_libraries(folder)
    assert all(Path(cache_from_source(str(source))).exists() for source in sources)
    assert folder not in uncompiled_folders()  # what can't be compiled is not tried before each run


def test_a_folder_of_compiled_libraries_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "site-packages"
    (folder / "large").mkdir(parents=True)
    (folder / "large/__init__.py").write_text("VALUE = 1\n")
    compiled = Path(cache_from_source(str(folder / "large/__init__.py")))
    compiled.parent.mkdir()
    compiled.touch()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    assert folder not in uncompiled_folders()
