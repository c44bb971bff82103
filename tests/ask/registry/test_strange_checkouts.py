"""Publishing a folder that came from elsewhere with its ``.git``: nothing that its settings name is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.ask.registry.git_source import head_of, origin_of
from autoresearch.ask.registry.preparing import prepare
from autoresearch.ask.requests import Description
from autoresearch.errors import Refused
from autoresearch.task.release import File
from tests.ask.registry.making import FILES, git, repository

pytest.importorskip("git")

SAID = Description(type="environment", name="corridor", version="1.0.0")
ATTRIBUTES = "* filter=x diff=x merge=x text\n"
# What a .git/config can have git start; ``@`` is the command.
SETTINGS = {
    "clean": '[filter "x"]\n\tclean = @\n\trequired = true\n',
    "smudge": '[filter "x"]\n\tsmudge = @\n',
    "process": '[filter "x"]\n\tprocess = @\n\trequired = true\n',
    "fsmonitor": "[core]\n\tfsmonitor = @\n",
    "fsmonitor of version 2": "[core]\n\tfsmonitor = @\n\tfsmonitorHookVersion = 2\n",
    "textconv": '[diff "x"]\n\ttextconv = @\n\tcommand = @\n[diff]\n\texternal = @\n',
    "pager": "[core]\n\tpager = @\n\teditor = @\n\tsshCommand = @\n\tgitProxy = @\n\taskPass = @\n",
    "alias": "[alias]\n\tdiff-index = !@\n\tls-tree = !@\n\tcat-file = !@\n\tconfig = !@\n\tstatus = !@\n",
    "refs": "[core]\n\talternateRefsCommand = @\n[uploadpack]\n\tpackObjectsHook = @\n",
    "promisor": '[remote "origin"]\n\turl = ext::@\n\tpromisor = true\n[extensions]\n\tpartialClone = origin\n',
    "attributes elsewhere": '[core]\n\tattributesFile = .git/a\n[filter "x"]\n\tclean = @\n',
    "hooks": "[core]\n\thooksPath = hooked\n",
    "trailer": '[trailer "x"]\n\tcommand = @\n[gpg]\n\tprogram = @\n[log]\n\tshowSignature = true\n',
    "credential": "[credential]\n\thelper = !@\n[sequence]\n\teditor = @\n",
}


def strange(folder: Path, setting: str, spy: Path, *, included: bool = False) -> str:
    """A checkout with such settings, and hooks; git has to look at each file anew."""
    commit = repository(folder, (*FILES, File(".gitattributes", ATTRIBUTES.encode())))
    command = folder / "run-me"
    command.write_text(f"#!/bin/sh\ntouch {spy}\n")
    command.chmod(0o755)
    text = setting.replace("@", f'"{command}"')
    place = folder / ".git/config"
    if included:
        (folder / "settings").write_text(text)
        text = f'[include]\n\tpath = {folder}/settings\n[includeIf "gitdir:/"]\n\tpath = {folder}/settings\n'
    place.write_text(place.read_text() + text)
    (folder / ".git/a").write_text(ATTRIBUTES)
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text(ATTRIBUTES)
    for hooks in (folder / "hooked", folder / ".git/hooks"):
        hooks.mkdir(exist_ok=True)
        for name in (
            "post-index-change",
            "reference-transaction",
            "fsmonitor-watchman",
            "pre-auto-gc",
            "post-checkout",
        ):
            (hooks / name).write_text(command.read_text())
            (hooks / name).chmod(0o755)
    for file in FILES:
        (folder / file.path).touch()
    return commit


@pytest.mark.parametrize("included", [False, True])
@pytest.mark.parametrize("what", SETTINGS)
def test_nothing_that_a_strange_checkout_names_is_started(what: str, included: bool, tmp_path: Path) -> None:
    folder, spy = tmp_path / "q", tmp_path / "ran"
    commit = strange(folder, SETTINGS[what], spy, included=included)
    head = head_of(folder)
    assert head is not None
    assert head[1] == commit
    assert {file.path for file in head[0]} == {*(file.path for file in FILES), ".gitattributes"}
    prepare(folder, SAID)
    origin_of(folder)
    assert not spy.exists()


def test_the_attack_is_one(tmp_path: Path) -> None:
    """Git itself starts the command, so the test above says something."""
    strange(tmp_path / "q", SETTINGS["clean"], tmp_path / "ran")
    git(tmp_path / "q", "status")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("change", ["content", "mode", "gone", "link", "staged", "staged content"])
def test_what_is_not_committed_is_refused(change: str, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    repository(folder)
    place = folder / FILES[0].path
    match change:
        case "content":
            place.write_bytes(place.read_bytes() + b"\n# more\n")
        case "mode":
            place.chmod(place.stat().st_mode ^ 0o100)
        case "gone":
            place.unlink()
        case "link":
            (tmp_path / "same").write_bytes(place.read_bytes())
            place.unlink()
            place.symlink_to(tmp_path / "same")
        case "staged":
            (folder / "new.py").write_text("")
            git(folder, "add", "new.py")
        case _:
            content = place.read_bytes()
            place.write_bytes(b"x = 1\n")
            git(folder, "add", "--all")
            place.write_bytes(content)
    with pytest.raises(Refused, match="not committed"):
        head_of(folder)


@pytest.mark.parametrize("form", ["detached", "packed", "sha256", "crlf", "no commit", "HEAD elsewhere", "HEAD a link"])
def test_a_commit_is_found_in_any_form(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "q"
    commit = repository(folder)
    if form == "detached":
        git(folder, "checkout", "--quiet", "--detach")
    elif form == "packed":
        git(folder, "gc", "--quiet")
        assert not (folder / ".git/refs/heads/main").exists()
    elif form == "sha256":
        folder = tmp_path / "sha256"
        folder.mkdir()
        git(folder, "init", "--quiet", "--object-format=sha256")
        (folder / "main.py").write_bytes(FILES[0].content)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", "x")
        commit = git(folder, "rev-parse", "HEAD")
    elif form == "crlf":
        place = folder / FILES[0].path
        place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
    else:
        head = folder / ".git/HEAD"
        head.unlink()
        if form == "HEAD a link":
            head.symlink_to(tmp_path)
        else:
            head.write_text("ref: refs/heads/none\n" if form == "no commit" else "ref: refs/../../../main\n")
        assert head_of(folder) is None
        return
    result = head_of(folder)
    assert result is not None
    assert result[1] == commit


LIMITED = """
import resource, sys
from pathlib import Path
from autoresearch.ask.registry.git_source import head_of
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(head_of(Path(sys.argv[1]))[1])
"""


def test_git_takes_the_limit_of_the_shell_where_that_is_lower(tmp_path: Path) -> None:
    commit = repository(tmp_path / "plain")
    spy = tmp_path / "bin/git"
    spy.parent.mkdir()
    spy.write_text(f'#!/bin/sh\nulimit -f >> {tmp_path}/limits\nexec {shutil.which("git")} "$@"\n')
    spy.chmod(0o755)
    environment = {**os.environ, "PATH": f"{spy.parent}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "plain")],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == (commit, "")
    assert set((tmp_path / "limits").read_text().split()) == {f"{(1 << 20) // 512}"}
