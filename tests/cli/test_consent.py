"""A folder is a stranger's until its owner said otherwise: what leads out of it has no effect before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from autoresearch_cli.main import app

from autoresearch.errors import CannotRunHere, Refused
from autoresearch.paths import Paths
from autoresearch.run.bench import Ceiling
from autoresearch.run.consent import NotAllowed, Reach, allow_reaches, check_reaches, list_digest, reaches_of
from autoresearch.run.folder import Conditions
from autoresearch.run.runner import RunSite, make_bench
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import interpreter_in
from autoresearch.settings import Work
from autoresearch.task.folders import write_task
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from tests.cli.conftest import Cli

SCRIPT = '#!/bin/sh\nid > {}\necho \'["3.11.7", "/usr", "/usr"]\'\n'


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with keys, a cache and data."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as text:
        home = Path(text).resolve()
        for name in (".ssh/id_ed25519", ".cache/sets/a.txt", "data/x/b.txt", ".aws/credentials", ".config/app/key"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("SECRET-OF-THE-OWNER")
        monkeypatch.setenv("HOME", str(home))
        yield home


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch, outside: Path) -> Paths:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(outside / "node"))
    made = Paths.from_environment(os.environ)
    made.create()
    return made


def task_folder(folder: Path, more: str = "", program: str = 'LR = 0.1\nprint("loss:", LR)\n') -> Path:
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(program)
    write_task(folder, metric="loss", seconds=30)
    with (folder / "task.toml").open("a") as file:
        file.write(more)
    return folder


def mounting(folder: Path, *texts: str) -> Path:
    return task_folder(folder, "\n[mounts]\n" + "".join(f"m{number} = '{text}'\n" for number, text in enumerate(texts)))


def check(folder: Path, paths: Paths) -> None:
    """The gate of every run, as the runner passes it."""
    place = RunSite(Level.LANDLOCK, paths.task_data, paths.environments, paths.allowed)
    task = load_task(folder)
    make_bench(task, Conditions(ceiling=Ceiling.of(Work())), place, paths.spool)


def reaching(folder: Path) -> Task:
    return load_task(folder)


# What takes a folder by its first argument, by that one's name for people; these make a new one of another's.
NEW = {("task", "get"), ("get",), ("network", "new")}


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*words, name))
            continue
        first = next((each for each in command.params if each.param_type_name == "argument"), None)
        if first is not None and first.metavar in ("DIR", "DIR|INI", "TASK", "INI", "DIR|FILE"):
            yield (*words, name)


COMMANDS = [words for words in commands(typer.main.get_command(app)) if words not in NEW and words != ("mcp",)]


def test_the_commands_that_take_a_folder_are_all_of_them() -> None:
    assert {("run",), ("work",), ("task", "new"), ("task", "allow"), ("node", "doctor", "task")} <= set(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("text", ["/proc/self/cwd/env", "{folder}/env", "~/env"])
def test_no_python_of_a_folder_is_started_by_a_command(
    words: tuple[str, ...], text: str, cli: Cli, paths: Paths, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, canary = outside / "clone", outside / "canary"
    task_folder(folder, f'\n[python]\nvenv = "{text.format(folder=folder)}"\n')
    for place in (folder / "env", outside / "env"):
        (place / "bin").mkdir(parents=True)
        for name in ("python", "python3"):
            (place / "bin" / name).write_text(SCRIPT.format(canary))
            (place / "bin" / name).chmod(0o755)
    monkeypatch.chdir(folder)
    result = cli(*words, str(folder))
    assert not canary.exists()
    assert "Traceback" not in result.stderr
    for later in (("task", "allow", str(folder), "--yes"), (*words, str(folder))):
        cli(*later)
        assert not canary.exists(), "allowed or not, nothing of it is started outside of the sandbox"


@pytest.mark.slow
def test_before_it_is_allowed_nothing_that_is_mounted_is_read(cli: Cli, paths: Paths, outside: Path) -> None:
    folder = mounting(outside / "clone", "~/data/x")
    result = cli("run", str(folder))
    assert result.exit_code == 6
    assert f"{folder} reaches out of itself, and nobody allowed that here: ~/data/x (mount)" in result.stderr
    assert f"autoresearch task allow {folder}" in result.stderr
    refused = cli("task", "allow", str(folder))
    assert (refused.exit_code, "its runs read: ~/data/x" in refused.stderr) == (6, True), "nobody can be asked here"
    allowed = cli("task", "allow", str(folder), "--yes")
    assert allowed.exit_code == 0, allowed.stderr
    assert "its runs can read ~/data/x; what they print will be public" in allowed.stderr
    ran = cli("run", str(folder))
    assert ran.exit_code == 0, ran.stderr
    assert "its runs can read ~/data/x; what they print will be public" in ran.stderr
    assert "~/data/x" in cli("task", "show", str(folder)).stdout


@pytest.mark.parametrize("text", ["~/.ssh", "~/.cache/sets", "~/.config/app", "/etc/ssl", "~/.aws", "~/data/link"])
def test_what_is_hidden_is_allowed_by_name_alone(text: str, cli: Cli, paths: Paths, outside: Path) -> None:
    (outside / "data/link").symlink_to(outside / ".ssh")
    folder = mounting(outside / "clone", text)
    result = cli("task", "allow", str(folder), "--yes")
    assert (result.exit_code, "is allowed by its name alone" in result.stderr) == (6, True), result.stderr
    assert cli("run", str(folder)).exit_code == 6
    assert cli("task", "allow", str(folder), "--yes", "--name", str(outside / "data")).exit_code == 6, "not by a parent"
    assert cli("task", "allow", str(folder), "--yes", "--name", text).exit_code == 0
    check(folder, paths)


@pytest.mark.parametrize(
    "text",
    ["/proc/self/cwd", "//proc/self/cwd", "/proc", "/sys/class", "/dev/dri", "/dev/shm", "/run/user", "/var/run",
     "~/root", "~/up", "~/node", "~/node/data/keys", "~/node/state", "~/cfg", "~/proc"],
)  # fmt: skip
def test_some_things_nobody_can_allow(text: str, cli: Cli, paths: Paths, outside: Path) -> None:
    for name, target in {"root": "/", "up": outside.parent, "cfg": outside / "node/config", "proc": "/proc/1"}.items():
        (outside / name).symlink_to(target)
    folder = mounting(outside / "clone", text)
    result = cli("task", "allow", str(folder), "--yes", "--name", text)
    assert (result.exit_code, "can't be shown to runs" in result.stderr) == (6, True), result.stderr
    with pytest.raises(NotAllowed):
        check(folder, paths)


def test_another_list_another_place_and_a_copy_are_not_what_was_allowed(paths: Paths, outside: Path) -> None:
    folder = mounting(outside / "clone", "~/data/now")
    (outside / "data/now").symlink_to(outside / "data/x")
    allow_reaches(folder, reaches_of(reaching(folder)), paths)
    check(folder, paths)
    (outside / "alias").symlink_to(folder)
    check(outside / "alias", paths)

    shutil.copytree(folder, outside / "copy")
    with pytest.raises(NotAllowed):
        check(outside / "copy", paths)

    (outside / "data/now").unlink()
    (outside / "data/now").symlink_to(outside / ".ssh")
    with pytest.raises(NotAllowed):
        check(folder, paths)

    (outside / "data/now").unlink()
    (outside / "data/now").symlink_to(outside / "data/x")
    check(folder, paths)
    with (folder / "task.toml").open("a") as file:
        file.write("more = '~/.ssh'\n")
    with pytest.raises(NotAllowed):
        check(folder, paths)


def test_many_are_named_up_to_three_and_a_control_character_is_made_visible(
    cli: Cli, paths: Paths, outside: Path
) -> None:
    nasty = outside / "data" / "a\x1b[2Jb\nc"
    nasty.mkdir()
    (outside / "data/zz").symlink_to(nasty)
    folder = mounting(outside / "clone", *(f"~/data/{number}" for number in range(5)), "~/data/zz")
    result = cli("run", str(folder))
    assert "~/data/2 (mount) and 3 more" in result.stderr
    result = cli("task", "allow", str(folder))
    assert "\x1b" not in result.stderr
    assert "a�[2Jb" in result.stderr


def test_what_the_owner_names_is_allowed_at_once(cli: Cli, paths: Paths, outside: Path) -> None:
    folder = outside / "mine"
    folder.mkdir()
    (folder / "train.py").write_text('import os\nprint("loss:", len(os.listdir(os.path.expanduser("~/data/x"))))\n')
    made = cli("task", "new", str(folder), "--once", "--mount", str(outside / "data/x"))
    assert made.exit_code == 0, made.stderr
    check(folder, paths)
    other = outside / "theirs"
    shutil.copytree(folder, other)
    with pytest.raises(NotAllowed):
        check(other, paths)


@pytest.mark.slow
def test_a_mark_that_was_never_finished_allows_nothing(paths: Paths, outside: Path) -> None:
    folder = mounting(outside / "clone", "~/data/x")
    reaches = reaches_of(reaching(folder))
    source = (
        "import os, signal, sys; from pathlib import Path\n"
        "real = Path.touch\n"
        "def touch(self, *a, **k):\n"
        "    if sys.argv[1] == 'after': real(self, *a, **k)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path.touch = touch\n"
        "from autoresearch.run.consent import allow\n"
        "allow(Path(sys.argv[2]), bytes.fromhex(sys.argv[3]))\n"
    )
    for when, is_allowed in (("before", False), ("after", True)):
        digest = list_digest(folder, reaches).hex()
        killed = subprocess.run([sys.executable, "-c", source, when, str(paths.allowed), digest], check=False)
        assert killed.returncode == -9
        if is_allowed:
            check_reaches(folder, reaches, paths.allowed)
        else:
            with pytest.raises(NotAllowed):
                check_reaches(folder, reaches, paths.allowed)


def test_the_digest_keeps_fields_apart(tmp_path: Path) -> None:
    lists = [
        [Reach("mount", "a", "b")], [Reach("mount", "ab", "")], [Reach("python", "a", "b")], [],
        [Reach("mount", "a", "b"), Reach("mount", "c", "d")],
    ]  # fmt: skip
    assert len({list_digest(tmp_path, each) for each in lists}) == len(lists)
    assert list_digest(tmp_path, lists[4]) == list_digest(tmp_path, lists[4][::-1] * 2)
    with pytest.raises(Refused, match="part of the running system"):
        allow_reaches(tmp_path, [Reach("mount", "/proc", "/proc")], Paths.from_environment({}))


def fake_python(folder: Path, version: str, *, header: bool = True) -> Path:
    minor = version.rpartition(".")[0]
    for name in ("bin", f"lib/python{minor}", f"include/python{minor}"):
        (folder / name).mkdir(parents=True)
    (folder / "bin" / f"python{minor}").write_text("#!/bin/sh\nexit 9\n")
    (folder / "bin" / "python").symlink_to(f"python{minor}")
    (folder / f"lib/python{minor}/os.py").touch()
    if header:
        (folder / f"include/python{minor}/patchlevel.h").write_text(f'#define PY_VERSION "{version}+"\n')
    return folder


def test_the_python_of_a_real_venv_is_read(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    python = interpreter_in(tmp_path / "env")
    sentence = "import platform, sys; print(platform.python_version(), sys.base_prefix)"
    version, base = subprocess.run(
        [str(python.executable), "-c", sentence], capture_output=True, text=True, check=True
    ).stdout.split()
    assert python.version == version
    assert Path(base) in python.folders or Path(base).is_relative_to("/usr")


@pytest.mark.parametrize(
    ("config", "version"),
    [
        ("home = {base}/bin\nversion = 3.12.4\n", "3.12.4"),
        ("home={base}/bin\nimplementation = CPython\nuv = 0.4.1\nversion_info = 3.12.4\n", "3.12.4"),
        ("home = {base}/bin\nversion_info = 3.12.4.final.0\nvirtualenv = 20.26\nbase-prefix = /x\n", "3.12.4"),
        ("HOME = {base}/bin\r\nversion = 3.12.4\r\n", "3.12.4"),
    ],
)
def test_an_environment_of_any_tool_is_read(config: str, version: str, tmp_path: Path) -> None:
    base, env = fake_python(tmp_path / "base", "3.12.9", header=False), tmp_path / "env"
    (env / "bin").mkdir(parents=True)
    (env / "lib/python3.12/site-packages").mkdir(parents=True)
    (env / "bin/python").symlink_to(base / "bin/python3.12")
    (env / "pyvenv.cfg").write_text(config.format(base=base))
    python = interpreter_in(env)
    assert (python.version, set(python.folders)) == (version, {base, env})
    assert python.packages == (env / "lib/python3.12/site-packages",)


def test_a_conda_environment_and_a_python_itself_are_read(tmp_path: Path) -> None:
    conda = fake_python(tmp_path / "conda", "3.10.2", header=False)
    (conda / "conda-meta").mkdir()
    (conda / "conda-meta/python-3.10.14-h955ad1f_1.json").touch()
    pyenv = fake_python(tmp_path / ".pyenv/versions/3.9.18", "3.9.18")
    bare = fake_python(tmp_path / "bare", "3.13.1", header=False)
    assert [interpreter_in(each).version for each in (conda, pyenv, bare)] == ["3.10.14", "3.9.18", "3.13"]


@pytest.mark.parametrize(
    ("link", "config"),
    [
        ("{keys}/bin/python", ""), ("", "home = {keys}/bin\n"), ("{keys}/bin/python", "home = /usr/bin\n"),
        ("", ""), ("", "home = bin\n"), ("", "home = {keys}/../nothing/bin\n"),
    ],
)  # fmt: skip
def test_what_leads_to_no_python_is_refused_and_not_shown(link: str, config: str, tmp_path: Path) -> None:
    keys, env = tmp_path / ".ssh", tmp_path / "env"
    for place in (keys / "bin", env / "bin"):
        place.mkdir(parents=True)
    (keys / "bin/python").write_text("#!/bin/sh\n")
    if link:
        (env / "bin/python").symlink_to(link.format(keys=keys))
    else:
        (env / "bin/python").write_text("#!/bin/sh\n")
    if config:
        (env / "pyvenv.cfg").write_text(config.format(keys=keys))
    with pytest.raises(CannotRunHere, match="is no Python"):
        interpreter_in(env)


@pytest.mark.slow
def test_a_project_of_elsewhere_runs_nothing_before_it_is_allowed(cli: Cli, paths: Paths, outside: Path) -> None:
    mine, clone, canary = outside / "mine", outside / "clone", outside / "canary"
    assert cli("init", str(mine)).exit_code == 0
    assert cli("run", str(mine), "-n", "1").exit_code == 0, "who made it allowed it"
    shutil.copytree(mine, clone)
    with (clone / "agent.py").open("a") as file:
        file.write(f"\nopen({str(canary)!r}, 'w').write('ran')\n")
    (clone / ".autoresearch").mkdir(exist_ok=True)
    for words in (("run", str(clone), "-n", "1"), ("train", str(clone), "1"), ("list", str(clone), "--check")):
        result = cli(*words)
        assert (result.exit_code, canary.exists()) == (6, False), result.stderr
        assert "its components, without a sandbox (code)" in result.stderr
    assert cli("agent", "serve", "env", "-f", str(clone)).exit_code == 6
    allowed = cli("task", "allow", str(clone), "--yes")
    assert (allowed.exit_code, "runs with all that you may do" in allowed.stderr) == (0, True), allowed.stderr
    assert cli("run", str(clone), "-n", "1").exit_code == 0
    assert canary.exists()
    other = outside / "data/other.py"
    other.write_text((clone / "agent.py").read_text())
    ini = clone / "agent.ini"
    ini.write_text(ini.read_text().replace("class_name = agent:", f"file_path = {other}\nclass_name = other:"))
    result = cli("run", str(clone), "-n", "1")
    assert (result.exit_code, f"{other} (code)" in result.stderr) == (6, True), result.stderr
