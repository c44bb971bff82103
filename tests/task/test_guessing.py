"""Which program lies in a folder, how it is started, and what it needs beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.task.folders import FLAGS, fixed_files, guess_recipe
from autoresearch.task.model import USUAL, Recipe

CPP = 'int main() { puts("latency: 1"); }\n'


def folder_of(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).write_text("" if name.endswith(".py") else CPP)
    return place


@pytest.mark.parametrize(
    ("names", "recipe"),
    [
        (("train.py", "other.py", "run.sh"), USUAL),
        (("model.py", "prepare.py"), Recipe(command="python model.py", edit=("model.py",))),
        (("a.cpp",), Recipe(command="./a", build="g++ @compile_flags.txt -o a a.cpp", edit=("a.cpp", FLAGS))),
        (("a.c", "a.h"), Recipe(command="./a", build="gcc @compile_flags.txt -o a a.c", edit=("a.c", FLAGS))),
        (
            ("a.cpp", "run.sh"),
            Recipe(command="bash run.sh", build="g++ @compile_flags.txt -o a a.cpp", edit=("a.cpp", "run.sh", FLAGS)),
        ),
        (("a.cpp", "b.cpp", "run.sh"), Recipe(command="bash run.sh", edit=("run.sh",))),
        (("a.cpp", "Makefile", "run.sh"), Recipe(command="bash run.sh", edit=("run.sh",))),
    ],
)
def test_a_program_is_found_by_its_files(tmp_path: Path, names: tuple[str, ...], recipe: Recipe) -> None:
    assert guess_recipe(folder_of(tmp_path, *names)) == recipe


def test_a_compiled_program_has_its_flags_in_a_file_and_those_that_are_there_stay(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "a.cpp")
    guess_recipe(place)
    assert (place / FLAGS).read_text() == "-O2\n"
    (place / FLAGS).write_text("-Iinclude -O3\n")
    assert guess_recipe(place).edit == ("a.cpp", FLAGS)
    assert guess_recipe(place, command="./a", build="g++ @compile_flags.txt a.cpp").edit == (FLAGS, "a.cpp")
    assert (place / FLAGS).read_text() == "-Iinclude -O3\n"


@pytest.mark.parametrize("names", [(), ("notes.txt",), ("a.py", "b.py"), ("a.cpp", "b.cpp"), ("a.cpp", "Makefile")])
def test_what_is_not_one_program_is_said(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        guess_recipe(folder_of(tmp_path, *names))

    assert "--edit FILE" in caught.value.hint


def test_what_is_given_is_not_guessed(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "a.cpp", "b.cpp", "run.sh", "Makefile", "b.py")

    assert guess_recipe(place, edit=["b.cpp"]).build == "g++ -O2 -o b b.cpp"
    assert guess_recipe(place, command="sh ./run.sh b.cpp").edit == ("run.sh", "b.cpp")
    assert guess_recipe(place, command="make run", build="make", edit=["a.cpp"]).build == "make"
    for given, said in (
        ({"edit": ["c.cpp"]}, "c.cpp does not exist"),
        ({"edit": ["Makefile"]}, "how it is started"),
        ({"command": "make run"}, "names no file"),
        ({"command": "sh 'x"}, "can't be read"),
    ):
        with pytest.raises(UsageError, match=said):
            guess_recipe(place, **given)  # type: ignore[arg-type]


def test_settings_that_a_python_program_names_belong_to_it(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "train.py", "config.yaml", "hparams_small.json", "data.json", "other_config.toml")
    (place / "train.py").write_text('read("config.yaml", "hparams_small.json", "data.json")\n')

    assert guess_recipe(place).edit == ("train.py", "config.yaml", "hparams_small.json")
    assert guess_recipe(place, edit=["train.py"]).edit == ("train.py",)


def test_what_a_program_names_and_imports_is_fixed(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "util.h", "deep.h", "unused.h", "run.sh", "data.csv", "helper.py", "prepare.py")
    (place / "a.cpp").write_text('#include "util.h"\nstd::ifstream in("data.csv"); // not task.toml\n')
    (place / "util.h").write_text('#include "deep.h"\n')
    (place / "model.py").write_text("import helper\n")
    (place / "task.toml").write_text("")

    assert list(fixed_files(place, ["a.cpp", "run.sh"])) == ["data.csv", "deep.h", "util.h"]
    assert list(fixed_files(place, ["model.py"])) == ["helper.py", "prepare.py"]
    (place / "data.csv").write_bytes(bytes(2 << 20))
    with pytest.raises(UsageError, match=r"data\.csv is named in the program and larger"):
        fixed_files(place, ["a.cpp"])
