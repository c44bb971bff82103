"""Which packages a program asks for, by its imports and by the lists beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.task.declared import declared_packages, imported_packages, package_of
from tests.task.test_guessing import repository


@pytest.mark.parametrize(
    ("files", "packages"),
    [
        (
            {"pyproject.toml": '[project]\nname = "me"\ndependencies = ["numpy>=2", "me[x]", "Torch"]\n'},
            {"numpy>=2", "Torch"},
        ),
        (
            {"pyproject.toml": "[project]\ndependencies = [\"a; os_name == 'nt'\", \"b; python_version > '3'\"]"},
            {"b"},
        ),
        ({"pyproject.toml": "[project.optional-dependencies]\ndev = ['black']\n"}, set()),
        (
            {"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3"\nx = "^1"\ny = { optional = true }\n'},
            {"x"},
        ),
        (
            {"requirements.txt": "a==1 \\\n  --hash=sha256:00\n# c\n-r more/x.txt\n-e .\n", "more/x.txt": "b # why\n"},
            {"a==1", "b"},
        ),
        (
            {
                "requirements.txt": "-r ../outside.txt\n-r requirements.txt\nhttps://e.org/x.whl\ngit+https://e.org\n@@\n"
            },
            set(),
        ),
        ({"requirements-dev.txt": "black\n", "requirements_test.txt": "x\n", "requirements-gpu.txt": "y\n"}, {"y"}),
        ({"requirements.in": "a\n", "requirements.txt": "a==1\nb==2\n"}, {"a"}),
        ({"train.py": '# /// script\n# dependencies = [\n#   "a<9",\n# ]\n# ///\nimport a\n'}, {"a<9"}),
        (
            {
                "uv.lock": '[[package]]\nname = "me"\nsource = { virtual = "." }\ndependencies = [{ name = "a" }]\n'
                '[[package]]\nname = "deep"\nsource = { registry = "x" }\n'
            },
            {"a"},
        ),
        (
            {"pyproject.toml": '[project]\ndependencies = ["a>1"]\n', "requirements.txt": "A==3\nb\n"},
            {"a>1", "b"},
        ),
        ({"pyproject.toml": "[project", "uv.lock": "package = 3\n", "requirements.txt": "\x00\n"}, set()),
        ({"pyproject.toml": "project = 3\n", "uv.lock": "[[package]]\nsource = 3\ndependencies = 3\n"}, set()),
    ],
)
def test_lists_are_read_together(tmp_path: Path, files: dict[str, str], packages: set[str]) -> None:
    repository(tmp_path, files)
    assert set(declared_packages(tmp_path, files).values()) == packages


def test_imports_are_those_that_a_program_can_not_do_without() -> None:
    program = """\
import os, torch.nn as nn, helper, lib.deep
from sklearn.linear_model import Ridge
from . import near
try:
    import optional
except ImportError:
    optional = None
if TYPE_CHECKING:
    import typed
def main():
    from yaml import load
"""
    files = {"train.py": program, "helper.py": "import cv2\nimport train\n", "lib/deep.py": "", "broken.py": "("}
    assert imported_packages(files) == {"torch", "sklearn", "yaml", "cv2"}
    assert imported_packages(files, ["torch/x.py"]) == {"sklearn", "yaml", "cv2"}
    assert (package_of("sklearn"), package_of("torch")) == ("scikit-learn", "torch")
