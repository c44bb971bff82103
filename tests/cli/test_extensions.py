"""Packages of others that add features: found by entry points, and harmless when they are broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from autoresearch_cli.acts.checks import extension_checks

from autoresearch.extensions import EXECUTORS, EXPORTS, GROUPS
from tests.cli.conftest import Cli
from tests.extension_packages import groups, install, install_example

pytestmark = pytest.mark.usefixtures("filled")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """An empty folder for packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


def test_the_page_lists_the_groups_of_the_code() -> None:
    assert groups() == GROUPS


def test_the_export_of_the_page_works(
    cli: Cli, tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(packages, monkeypatch, EXPORTS)
    written = cli("run", "export", "--format", "ids", "-o", str(tmp_path / "out"), "--json")
    assert written.exit_code == 0, written.output
    assert json.loads(written.stdout)["runs"] == len((tmp_path / "out").read_text().splitlines()) > 0


@pytest.mark.parametrize(
    "module",
    [
        "import no_such_module",
        "1 / 0",
        "raise SystemExit(0)",
        "syntax error",
        "",
        "write_ids = 3",
        "def write_ids(): ...",
        "def write_ids(*_): ...",
        "def write_ids(*_): raise ValueError('\x1b[31mno')",
        "def write_ids(*_): raise SystemExit(0)",
        "def write_ids(_, __, place, ___): place.touch(); raise KeyError",
        "def write_ids(_, __, place, ___): place.mkdir(); (place / 'half').touch(); return 3",
    ],
)
def test_a_broken_export_is_named_and_leaves_nothing(
    cli: Cli, tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    install(packages, monkeypatch, module, "[autoresearch.exports]\nids = my_package:write_ids\n")
    written = cli("run", "export", "--format", "ids", "-o", str(tmp_path / "out"))
    assert written.exit_code != 0
    assert "the extension ids" in written.output
    assert "Traceback" not in written.output
    assert "\x1b" not in written.output
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == []
    assert cli("run", "export", "--format", "csv").exit_code == 0


def test_the_export_of_the_page_that_is_brought_up_to_date_works(
    cli: Cli, tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example(packages, monkeypatch, EXPORTS, 1)
    command = ["run", "export", "--format", "list", "-o", str(tmp_path / "out")]
    written = cli(*command, "--json")
    assert written.exit_code == 0, written.output
    assert json.loads(written.stdout) == {"schema": "my_package.list/1", "runs": 6}
    task, *runs = (tmp_path / "out").read_text().split()
    assert len(runs) == 6
    # The place says which task it has.
    assert cli(*command, "--task", task).output == cli(*command).output == f"6 runs in {tmp_path / 'out'}\n"
    alone = cli(*command, "--follow")
    assert (alone.exit_code, "daemon is not running" in alone.output) == (3, True)


@pytest.mark.parametrize(
    "methods",
    [
        "task = update = 3",
        "def task(self): ...\n    def update(self): ...",
        "def task(self, place): return 'abc'\n    def update(self, *_): ...",
        "def task(self, place): 1 / 0\n    def update(self, *_): ...",
        "def task(self, place): ...\n    def update(self, *_): ...",
        "def task(self, place): ...\n    def update(self, *_): raise KeyError('x')",
        "def task(self, place): ...\n    def update(self, *_): raise SystemExit(0)",
        "def task(self, place): ...\n    def update(self, *_): return UpdateResult(3j, [], True)",
        "def task(self, place): ...\n    def update(self, *_): return UpdateResult({}, [3], True)",
        "def task(self, place): ...\n    def update(self, *_): return UpdateResult({}, 3, True)",
    ],
)
def test_a_broken_export_that_is_brought_up_to_date_is_named(
    cli: Cli, tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch, methods: str
) -> None:
    module = f"from autoresearch.face.exports.result import UpdateResult\nclass List:\n    {methods}\nLIST = List()\n"
    install(packages, monkeypatch, module, "[autoresearch.exports]\nlist = my_package:LIST\n")
    written = cli("run", "export", "--format", "list", "-o", str(tmp_path / "out"))
    assert written.exit_code != 0
    assert "the extension list" in written.output
    assert "Traceback" not in written.output


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        (
            "notify.extensions",
            "ntfi=https://x.example",
            "registers 'ntfi' in autoresearch.notices",
        ),
        ("notify.extensions", "mai=x", "mail"),
        ("notify.extensions", "https://x.example", "does not work"),
        ("notify.extensions", "=x", "does not work"),
        ("notify.extensions", "webhook=", "does not work"),
        ("attestor.extension", "mial", "no installed package registers 'mial' in autoresearch.attestors"),
        ("attestor.extension", "", "there are: mail"),
    ],
)
def test_a_setting_that_names_no_extension_is_refused(cli: Cli, setting: str, value: str, sentence: str) -> None:
    before = cli("node", "config", "get", setting).output
    refused = cli("node", "config", "set", setting, value)
    assert refused.exit_code == 2
    assert sentence in refused.output
    assert cli("node", "config", "get", setting).output == before


@pytest.mark.parametrize("form", ["csv", "sqlite"])
def test_a_format_that_cannot_be_followed_says_so(cli: Cli, tmp_path: Path, form: str) -> None:
    written = cli("run", "export", "--format", form, "-o", str(tmp_path / "out"), "--follow")
    assert (written.exit_code, f"--format {form} can't be followed" in written.output) == (2, True)


@pytest.mark.parametrize("words", [("work", "--executor"), ("node", "config", "set", "executor.name")])
@pytest.mark.parametrize("module", ["import no_such_module", "1 / 0", "", "Lab = 3", "class Lab: ..."])
def test_a_broken_executor_is_named_and_not_taken(
    cli: Cli, packages: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], module: str
) -> None:
    install(packages, monkeypatch, module, f"[{EXECUTORS}]\nlab = my_package:Lab\n")
    for name, sentence in (
        ("lab", "the extension lab"),
        ("labs", f"no installed package registers labs in {EXECUTORS}"),
    ):
        refused = cli(*words, name)
        assert refused.exit_code != 0
        assert sentence in refused.output
        assert "Traceback" not in refused.output
    assert cli("node", "config", "get", "executor.name").stdout == "here\n"


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("def lab(): ...", ""),
        ("import no_such_module", "my-package 1.0 (my_package:lab) can't be loaded: ModuleNotFoundError"),
        ("raise SystemExit(0)", "my-package 1.0 (my_package:lab) can't be loaded: SystemExit"),
        ("raise ValueError('\x1b[31mno')", "my-package 1.0 (my_package:lab) can't be loaded: ValueError"),
        ("from autoresearch.errors import Refused\nraise Refused('set X')", "set X"),
    ],
)
def test_the_doctor_lists_extensions_and_names_broken_ones(
    packages: Path, monkeypatch: pytest.MonkeyPatch, module: str, sentence: str
) -> None:
    install(packages, monkeypatch, module, "".join(f"[{group}]\nlab = my_package:lab\n" for group in GROUPS))
    checks = list(extension_checks())
    broken = [check for check in checks if check.result == "warning"]
    lists = {check.detail.partition(": ")[0]: check.detail for check in checks if check.result == "ok"}
    assert lists.keys() == set(GROUPS)
    assert len(broken) == (len(GROUPS) if sentence else 0)
    assert all(sentence in check.detail and "\x1b" not in check.detail for check in broken)
    assert all(("lab" in text) == (not sentence) for text in lists.values())
    assert "mlflow" in lists[EXPORTS]
    assert "slurm" in lists[EXECUTORS]


def test_the_doctor_says_what_an_extension_lacks(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "from autoresearch.errors import CannotRunHere\nraise CannotRunHere('it needs x', hint='pip install x')"
    install(packages, monkeypatch, module, f"[{EXPORTS}]\nlab = my_package:lab\n")
    assert f"{EXPORTS}: git, git-bare, lab (off: it needs x: pip install x), mlflow, sqlite" in [
        check.detail for check in extension_checks() if check.result == "ok"
    ]


def test_an_unknown_format_is_refused(cli: Cli, tmp_path: Path) -> None:
    written = cli("run", "export", "--format", "nonsense", "-o", str(tmp_path / "out"))
    assert written.exit_code != 0
    assert "mlflow" in written.output
