"""Which program lies in a folder, how it is started, and what it needs beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.task.guessing import FLAGS, guess_recipe
from autoresearch.task.model import USUAL, Recipe
from autoresearch.task.needed import needed_files

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

    assert list(
        needed_files(
            place,
            Recipe(
                edit=(
                    "a.cpp",
                    "run.sh",
                )
            ),
        ).fixed
    ) == ["data.csv", "deep.h", "util.h"]
    assert list(needed_files(place, Recipe(edit=("model.py",))).fixed) == ["helper.py", "prepare.py"]
    (place / "data.csv").write_bytes(bytes(2 << 20))
    needed = needed_files(place, Recipe(edit=("a.cpp",)))
    assert (list(needed.fixed), list(needed.inputs)) == (["deep.h", "util.h"], ["data.csv"])


def repository(place: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_modules_and_data_in_folders_are_found(tmp_path: Path) -> None:
    place = repository(
        tmp_path,
        {
            "train.py": "from models.net import Net\nimport lib\nopen('data/a.csv')\nos.listdir('images/')\n",
            "models/__init__.py": "",
            "models/net.py": "from . import layers\nfrom ..other import unused\nfrom .deep.part import x\n",
            "models/layers.py": "",
            "models/deep/part.py": "",
            "models/unused.py": "",
            "lib/__init__.py": "from lib import used\n",
            "lib/used.py": "x = Path('data') / 'b.csv'\n",
            "data/a.csv": "",
            "data/b.csv": "",
            "data/c.csv": "",
            "images/1.txt": "",
            "images/small/2.txt": "",
            "venv/pyvenv.cfg": "",
            "venv/lib.py": "",
            ".hidden/net.py": "",
        },
    )

    assert set(needed_files(place, Recipe(edit=("train.py",))).fixed) == {
        "models/__init__.py",
        "models/net.py",
        "models/layers.py",
        "models/deep/part.py",
        "lib/__init__.py",
        "lib/used.py",
        "data/a.csv",
        "data/b.csv",
        "images/1.txt",
        "images/small/2.txt",
    }
    assert (
        "models/net.py"
        not in needed_files(
            place,
            Recipe(
                edit=(
                    "train.py",
                    "models/net.py",
                )
            ),
        ).fixed
    )


def test_a_program_in_a_folder_finds_what_lies_beside_it(tmp_path: Path) -> None:
    place = repository(tmp_path, {"src/main.py": "import net\n", "src/net.py": "", "src/other.py": ""})

    assert guess_recipe(place) == Recipe(command="python src/main.py", edit=("src/main.py",))
    assert set(needed_files(place, Recipe(edit=("src/main.py",))).fixed) == {"src/net.py"}
    assert guess_recipe(place, command="python -m src.main").edit == ("src/main.py",)
    repository(place, {"words.txt": "", "setup.py": ""})
    given = guess_recipe(place, command="python src/main.py -i words.txt")
    assert (given.edit, set(needed_files(place, given).fixed)) == (("src/main.py",), {"src/net.py", "words.txt"})
    assert guess_recipe(place).edit == ("src/main.py",), "setup.py is no program"
    repository(place, {"old/main.py": ""})
    with pytest.raises(UsageError, match=r"several programs: old/main\.py, src/main\.py"):
        guess_recipe(place)


def test_of_several_programs_the_one_that_imports_the_others_is_it(tmp_path: Path) -> None:
    place = repository(tmp_path, {"run_it.py": "import model\n", "model.py": "import data\n", "data.py": ""})

    assert guess_recipe(place).edit == ("run_it.py",)
    assert guess_recipe(place, edit=["data.py", "run_it.py"]).command == "python data.py"
    repository(place, {"settings.yaml": "", "compare.py": "import model\nprint 'Python 2'\n"})
    assert guess_recipe(place, edit=["settings.yaml", "run_it.py"]).command == "python run_it.py"
    with pytest.raises(UsageError, match=r"several programs: compare\.py, run_it\.py"):
        guess_recipe(place)
