"""A program of any files is one text, which says what its files are and what names it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task, program_in
from autoresearch.task.model import Recipe, Task
from autoresearch.task.program import form_fault, join_files, source_digest, split_program
from tests.task.test_rebuilding import rebuilt

CPP = 'int main() { puts("latency: 1"); }\n'
SHELL = "./bench\n"
PROGRAM = """
[program]
command = "bash run.sh"
build = "g++ -o bench bench.cpp"
edit = ["bench.cpp", "run.sh"]
"""
BOUNDARY = "==== autoresearch file: "


def of_files(folder: Path, program: str = PROGRAM) -> Path:
    """The task folder with a program of two files instead of ``train.py``."""
    (folder / "train.py").unlink()
    (folder / "bench.cpp").write_text(CPP)
    (folder / "run.sh").write_text(SHELL)
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text() + program)
    return folder


parts = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,8}", fullmatch=True).filter(
    lambda part: not form_fault(f"{part}-/x.csv")
)
# Folders end with a dash, so that none has the name of a file.
names = st.builds(
    lambda folders, last: "/".join([*(f"{name}-" for name in folders), f"{last}x.csv"]),
    st.lists(parts, max_size=3),
    parts,
)


@given(st.dictionaries(names, st.text(), min_size=1, max_size=5))
def test_files_come_back_from_their_text_with_a_newline_at_the_end(files: dict[str, str]) -> None:
    again = split_program(join_files(files))

    assert list(again) == list(files)
    if list(files) != ["train.py"]:
        files = {name: content + "\n" * (content != "" and content[-1] != "\n") for name, content in files.items()}
    assert again == files


def test_a_lone_train_py_is_its_own_text() -> None:
    assert join_files({"train.py": "LR = 1"}) == "LR = 1"
    assert split_program("LR = 1") == {"train.py": "LR = 1"}


@pytest.mark.parametrize(
    "text",
    [
        f"{BOUNDARY}a.sh\n",
        f"{BOUNDARY}../a.sh ====\n",
        f"{BOUNDARY}train.py ====\nLR = 1\n",
        f"{BOUNDARY}a.sh ====\n{BOUNDARY}a.sh ====\n",
        f"{BOUNDARY}a.sh ====\n{BOUNDARY}or not\n",
        "".join(f"{BOUNDARY}{number}.txt ====\n" for number in range(17)),
    ],
)
def test_a_text_that_no_files_give_is_refused(text: str) -> None:
    for ask in (split_program, source_digest):
        with pytest.raises(UsageError, match="the program has"):
            ask(text)


@pytest.mark.parametrize(
    "name",
    ["/a.py", "a/", "a//b.py", "./a.py", "a/../b.py", "..", "a/.git/x", ".venv/a.py", "a/AGENTS.md", "Makefile/x.py",
     "a" * 65, "a/" * 32 + "b", "a b/c.py", "a\\b.py", "a/b.py\n"],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_or_that_tools_obey_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        join_files({name: "", "other.py": ""})
    with pytest.raises(UsageError):
        split_program(f"{BOUNDARY}{name} ====\n{BOUNDARY}other.py ====\n")


def test_no_name_is_a_file_and_a_folder() -> None:
    with pytest.raises(UsageError, match=r"bin/lib is a file, and the folder of bin/lib/a/net\.py"):
        join_files({"bin/lib": "", "bin/lib/a/net.py": ""})
    with pytest.raises(UsageError, match="bin/lib is a file"):
        split_program(f"{BOUNDARY}bin/lib/net.py ====\n{BOUNDARY}bin/lib ====\n")


def test_a_name_that_leads_elsewhere_in_task_toml_is_a_sentence(folder: Path) -> None:
    of_files(folder, '[program]\nedit = ["../x.py"]\n')
    with pytest.raises(UsageError, match=r"program\.edit\[0\]: this is no name of the form that belongs there"):
        load_task(folder)


def test_no_file_has_a_boundary_line() -> None:
    with pytest.raises(UsageError, match=r"run\.sh has a line"):
        join_files({"run.sh": f"cat <<X\n{BOUNDARY}a ====\nX\n"})


def digest(**files: str) -> bytes:
    return source_digest(join_files({name.replace("_", "."): content for name, content in files.items()}))


def test_formatting_names_no_other_program() -> None:
    program_digest = digest(run_sh="a b\nc\n", model_py="X = 1.0\n")

    assert digest(run_sh="a b  \r\nc\r\n\n\n", model_py="X = 1.\n\n# a comment\n") == program_digest
    assert digest(model_py="X = 1.0\n", run_sh="a b\nc\n") == program_digest
    for other in (
        digest(run_sh="a  b\nc\n", model_py="X = 1.0\n"),
        digest(run_sh="a b\nc\n", model_py="X = 2.0\n"),
        digest(run_sh="a b\nc\n", other_py="X = 1.0\n"),
        digest(run_sh="a b\nc\n"),
    ):
        assert other != program_digest


def test_a_python_file_that_is_not_python_is_named() -> None:
    with pytest.raises(UsageError, match=r"model\.py: line 1"):
        source_digest(join_files({"model.py": "def f(:\n", "run.sh": "x"}))


def test_a_task_of_files_is_loaded_pinned_and_edited(folder: Path) -> None:
    plain = load_task(folder)
    task = load_task(of_files(folder))

    assert (task.recipe.command, task.recipe.build) == ("bash run.sh", "g++ -o bench bench.cpp")
    assert split_program(task.baseline.decode()) == {"bench.cpp": CPP, "run.sh": SHELL}
    assert "program" not in plain.definition()
    assert task.digest != plain.digest
    digest = pin_baseline(folder).digest
    assert digest == task.digest
    (folder / "bench.cpp").write_text(CPP.replace("1", "2"))
    edited = load_task(folder)
    assert (edited.digest, edited.baseline) == (digest, task.baseline)
    assert split_program(edited.program.decode())["bench.cpp"] == CPP.replace("1", "2")


def test_a_usual_recipe_says_nothing(folder: Path) -> None:
    plain = load_task(folder).digest
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text() + '[program]\ncommand = "python train.py"\nedit = ["train.py"]\n')

    assert load_task(folder).digest == plain


def test_a_published_task_of_files_becomes_the_same_folder(folder: Path, tmp_path: Path) -> None:
    task = load_task(of_files(folder))
    again: Task = rebuilt(task, tmp_path / "again")

    assert (again.digest, again.recipe) == (task.digest, task.recipe)
    assert (tmp_path / "again" / "bench.cpp").read_text() == CPP
    with pytest.raises(UsageError, match="impossible name"):
        rebuilt(task, tmp_path / "other", harness={**task.harness, "run.sh": b""})


@pytest.mark.parametrize(
    ("original", "instead", "named"),
    [
        ('"bash run.sh"', '""', "program.command"),
        ('"bash run.sh"', '"  "', "program.command is empty"),
        ('"bash run.sh"', '"bash \'run.sh"', "program.command can't be read"),
        ('"run.sh"]', '"task.toml"]', "program.edit can't name task.toml"),
        ('"run.sh"]', '"bench.cpp"]', "program.edit can't name bench.cpp"),
        ('"run.sh"]', '"prepare.py"]', "prepare.py is not part of the harness"),
        ('"run.sh"]', '"../run.sh"]', "program.edit"),
        ('"run.sh"]', '"missing.sh"]', "missing.sh does not exist"),
        ('["bench.cpp", "run.sh"]', "[]", "program.edit"),
        ("build", "biuld", "did you mean program.build?"),
    ],
)
def test_a_wrong_recipe_is_refused_by_name(folder: Path, original: str, instead: str, named: str) -> None:
    assert original in PROGRAM
    of_files(folder, PROGRAM.replace(original, instead, 1))

    with pytest.raises(UsageError) as caught:
        load_task(folder)

    assert named in f"{caught.value}\n{caught.value.hint}"
    assert caught.value.hint


def test_a_pattern_stands_for_all_files_that_are_not_the_task_s(tmp_path: Path) -> None:
    recipe = Recipe(command="python play.py", edit=("agent.ini", "*.py"))
    for name in ("agent.ini", "b.py", "a.py", "prepare.py", "notes.txt"):
        (tmp_path / name).write_text("")

    program = program_in(tmp_path, recipe, {"prepare.py"}).decode()

    assert list(split_program(program)) == ["agent.ini", "a.py", "b.py"]
    assert recipe.fault(split_program(program), {"prepare.py"}) is None
    for names in (["a.py"], ["agent.ini", "prepare.py"], ["agent.ini", "a.sh"], ["a.py", "agent.ini"]):
        assert "the task's is agent.ini, *.py" in str(recipe.fault(names, {"prepare.py"}))
