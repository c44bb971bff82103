"""A program starts in a folder of its own: copies of its files, what a build leaves there, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.run.sandbox.execute import execute
from autoresearch.run.sandbox.job import Job, JobOutcome, Level
from tests.run.sandbox.support import SMALL, run


def shell(files: dict[str, str], command: tuple[str, ...], level: Level, *, build: tuple[str, ...] = ()) -> JobOutcome:
    """Executes a command in the working folder of some files."""
    contents = {name: content.encode() for name, content in files.items()}
    job = Job(
        files=contents,
        build=build,
        command=command,
        copied=tuple(contents),
        limits=SMALL,
        metric_source="stdout",
    )
    return execute(job, level=level)


def test_files_are_copies_that_the_program_may_change_and_the_harness_reads_its_own(level: Level) -> None:
    source = """
        from pathlib import Path
        import data
        assert Path("data.py").read_text() == "VALUE = 2\\n"
        Path("data.py").write_text("VALUE = 9\\n")
        Path("data.py").rename("moved.py")
        assert not os.access(Path(__file__).with_name("data.py"), os.W_OK)
        assert data.VALUE == 2
        succeed()
    """
    outcome = run(source, level)
    assert outcome.status == "crashed"
    text = {"data.py": b"VALUE = 2\n"}
    outcome = run(source, level, beside=text)

    assert outcome.status == "ok", outcome.log


def test_a_command_runs_in_the_folder_and_finds_python_first(level: Level) -> None:
    files = {"run.sh": "pwd >&2\ncat note.txt\n./tool.py\npython -c 'import msgspec; print(msgspec.__name__)'\n",
             "note.txt": "a note\n", "tool.py": "#!/bin/sh\necho a tool\n"}  # fmt: skip

    outcome = shell(files, ("bash", "run.sh"), level)

    assert outcome.status == "ok", outcome.log
    assert outcome.log.decode().splitlines()[1:] == ["a note", "a tool", "msgspec"]


def test_files_in_folders_are_there_too(level: Level) -> None:
    files = {"run.sh": "python -m lib.deep.net\n", "lib/deep/net.py": "print(open('lib/data/a.txt').read())\n",
             "lib/data/a.txt": "from a folder\n"}  # fmt: skip

    outcome = shell(files, ("bash", "run.sh"), level)

    assert outcome.status == "ok", outcome.log
    assert outcome.log.decode().split("\n")[0] == "from a folder"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", "a/", ""])
def test_no_file_leads_out_of_it(name: str) -> None:
    with pytest.raises(UsageError, match="is not a plain file name"):
        shell({name: ""}, ("true",), Level.NONE)


def test_nothing_but_the_files_is_there(level: Level) -> None:
    outcome = shell({"run.sh": "ls -A\n"}, ("bash", "run.sh"), level)

    assert outcome.log.decode().split() == ["run.sh"]


def test_a_program_is_built_and_started(level: Level) -> None:
    files = {"hello.cpp": '#include <cstdio>\nint main() { std::puts("hello"); }\n'}

    outcome = shell(files, ("./hello",), level, build=("g++", "-o", "hello", "hello.cpp"))

    assert (outcome.status, outcome.log) == ("ok", b"hello\n"), outcome.reason


def test_copies_count_as_disk(level: Level) -> None:
    outcome = shell({"run.sh": "head -c 30000000 /dev/zero >> big\n"}, ("bash", "run.sh"), level)

    assert outcome.status == "disk_limit", outcome.reason


def test_a_command_that_is_not_there_is_named(level: Level) -> None:
    outcome = shell({"run.sh": ""}, ("no-such-command", "run.sh"), level)

    assert outcome.status == "crashed"
    assert "no-such-command: not found" in outcome.reason


def test_a_build_that_fails_is_the_end(level: Level) -> None:
    outcome = shell({"a.cpp": "int main( {}\n"}, ("echo", "never"), level, build=("g++", "a.cpp"))

    assert (outcome.status, b"never" in outcome.log) == ("crashed", False)
    assert outcome.reason == "the program ended with status 1: the build failed"
    assert b"error: expected" in outcome.log


def test_a_build_changes_no_mode_elsewhere_and_reaches_no_process_without_a_filter(
    level: Level, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    outside.chmod(0o600)
    build = f"""
        ln -s {outside} link; ln {outside} hard; mkfifo pipe; chmod 777 {outside}
        (echo x > /proc/$PPID/mem) 2>&1; cat /proc/$PPID/environ
        true
    """
    outcome = shell({"run.sh": "echo done\n"}, ("sh", "run.sh"), level, build=("sh", "-c", build))

    assert (outcome.status, outside.stat().st_mode & 0o777) == ("ok", 0o600), outcome.log
    assert b"enied" in outcome.log
    assert b"AUTORESEARCH" not in outcome.log
