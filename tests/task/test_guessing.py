"""Which program lies in a folder, how it is started, and what it needs beside it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.task.guessing import FLAGS, guess_recipe
from autoresearch.task.model import USUAL, Recipe
from autoresearch.task.needed import missed_files, needed_files

CPP = 'int main() { puts("latency: 1"); }\n'


def folder_of(place: Path, *names: str) -> Path:
    for name in names:
        (place / name).parent.mkdir(exist_ok=True)
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

    assert "--edit " in caught.value.hint


def test_what_is_given_is_not_guessed(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "a.cpp", "b.cpp", "run.sh", "Makefile", "b.py")

    assert guess_recipe(place, edit=["b.cpp"]).build == "g++ -O2 -o b b.cpp"
    assert guess_recipe(place, command="sh ./run.sh b.cpp").edit == ("run.sh", "b.cpp")
    assert guess_recipe(place, command="make run", build="make", edit=["a.cpp"]).build == "make"
    for recipe_fields, message in (
        ({"edit": ["c.cpp"]}, "c.cpp does not exist"),
        ({"edit": ["Makefile"]}, "how it is started"),
        ({"command": "make run"}, "names no file"),
        ({"command": "sh 'x"}, "can't be read"),
    ):
        with pytest.raises(UsageError, match=message):
            guess_recipe(place, **recipe_fields)  # type: ignore[arg-type]


def test_settings_that_a_python_program_names_belong_to_it(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "train.py", "config.yaml", "hparams_small.json", "data.json", "other_config.toml")
    (place / "train.py").write_text('read("config.yaml", "hparams_small.json", "data.json")\n')

    assert guess_recipe(place).edit == ("train.py", "config.yaml", "hparams_small.json")


def test_settings_lie_in_a_folder_of_settings_too(tmp_path: Path) -> None:
    place = folder_of(tmp_path, "train.py", "configs/small.yaml", "conf/default.yaml", "data/labels.json")
    (place / "train.py").write_text('read("configs/small.yaml", "conf/default.yaml", "data/labels.json")\n')
    assert set(guess_recipe(place).edit) == {"train.py", "configs/small.yaml", "conf/default.yaml"}
    with pytest.raises(UsageError) as refused:
        guess_recipe(place, edit=["configs/small.yaml"])
    assert refused.value.hint == "name the program too: --edit train.py --edit configs/small.yaml"
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
    recipe = guess_recipe(place, command="python src/main.py -i words.txt")
    assert (recipe.edit, set(needed_files(place, recipe).fixed)) == (("src/main.py",), {"src/net.py", "words.txt"})
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


def test_of_several_programs_the_one_that_does_anything_is_it(tmp_path: Path) -> None:
    files = {
        "add_test.py": "from package.adding.model import Net\nfor step in range(9): print(step)\n",
        "model.py": '"""A net."""\nimport logging\nlog = logging.getLogger()\nclass Net:\n    pass\n',
        "utils.py": "SIZE: int = 3\n\ndef data():\n    return SIZE\n",
    }
    place = repository(tmp_path, files)
    assert guess_recipe(place).edit == ("add_test.py",)
    repository(place, {"utils.py": "def main(): print(1)\nloss = main()\n"})
    with pytest.raises(UsageError, match=r"several programs: add_test\.py, utils\.py") as refused:
        guess_recipe(place)
    assert "--edit add_test.py" in refused.value.hint
    repository(place, {"utils.py": "def main(): print(1)\n\nif __name__ == '__main__': main()\n"})
    with pytest.raises(UsageError, match=r"several programs: add_test\.py, utils\.py"):
        guess_recipe(place)


def test_files_that_only_define_are_no_programs(tmp_path: Path) -> None:
    place = repository(tmp_path, {"net.py": "class Net:\n    pass\n", "data.py": "def read():\n    return 3\n"})

    with pytest.raises(UsageError, match=r"no program: data\.py, net\.py only define functions and classes") as refused:
        guess_recipe(place)
    assert "--edit data.py" in refused.value.hint
    repository(place, {"pyproject.toml": '[project]\nname = "x"\n[project.scripts]\nx = "data:read"\n'})
    assert guess_recipe(place).command == "python -c 'from data import read; read()'"
    (place / "pyproject.toml").unlink()
    repository(place, {"src/main.py": "print(1)\n"})
    assert guess_recipe(place).edit == ("src/main.py",)


SCRIPTS = '[project]\nname = "x"\n[project.scripts]\nx = "net.cli:run"\n'


@pytest.mark.parametrize(
    ("files", "command", "fixed"),
    [
        (
            {"net/train.py": "from .config import LR\n", "net/config.py": "", "net/__init__.py": ""},
            "python -m net.train",
            {"net/config.py", "net/__init__.py"},
        ),
        (
            {"net/train.py": "from net.config import LR\n", "net/config.py": ""},
            "python -m net.train",
            {"net/config.py"},
        ),
        ({"net/train.py": "import config\n", "net/config.py": ""}, "python net/train.py", {"net/config.py"}),
        (
            {"src/net/train.py": "from net.m import W\n", "src/net/m.py": "", "src/net/__init__.py": ""},
            "python -m net.train",
            {"src/net/m.py", "src/net/__init__.py"},
        ),
        ({"scripts/train.py": "from net import m\n", "src/net/m.py": ""}, "python scripts/train.py", {"src/net/m.py"}),
        ({"net/__main__.py": "from . import m\n", "net/m.py": "", "other.txt": ""}, "python -m net", {"net/m.py"}),
        (
            {"a/b/train.py": "from ..lib.net import W\n", "a/lib/net.py": ""},
            "python -m a.b.train",
            {"a/lib/net.py"},
        ),
        (
            {"net/cli.py": "from .m import W\ndef run():\n    pass\n", "net/m.py": "", "pyproject.toml": SCRIPTS},
            "python -c 'from net.cli import run; run()'",
            {"net/m.py"},
        ),
        (
            {"src/net/cli.py": "import net.m\nif __name__ == '__main__':\n    pass\n", "src/net/m.py": ""}
            | {"pyproject.toml": SCRIPTS, "old/main.py": "", "new/main.py": ""},
            "python -m net.cli",
            {"src/net/m.py"},
        ),
    ],
)
def test_what_is_part_of_a_package_is_started_as_a_module_of_it(
    tmp_path: Path, files: dict[str, str], command: str, fixed: set[str]
) -> None:
    recipe = guess_recipe(repository(tmp_path, files))

    assert (recipe.command, set(needed_files(tmp_path, recipe).fixed)) == (command, fixed)
    assert guess_recipe(tmp_path, command=command).edit == recipe.edit, "a command names the files that it starts"


@pytest.mark.parametrize(
    ("command", "files", "edit", "fixed", "inputs"),
    [
        (
            "make run",
            {"Makefile": "run:\n\tg++ a.cpp\n", "a.cpp": "u.h", "u.h": ""},
            {"a.cpp"},
            {"u.h"},
            True,
        ),
        (
            "make",
            {"Makefile": "S=$(wildcard src/*.c)\n", "src/a.c": '#include "u.h"', "src/u.h": "", "b.c": ""},
            {"src/a.c"},
            {"src/u.h"},
            True,
        ),
        (
            "make",
            {
                "Makefile": "include common.mk\nall:\n\tpython m.py\n",
                "common.mk": "X=1",
                "m.py": "import n",
                "n.py": "",
            },
            {"m.py"},
            {"common.mk", "n.py"},
            True,
        ),
        ("just run", {"justfile": "run:\n python m.py\n", "m.py": ""}, {"m.py"}, set(), True),
        (
            "./train.sh --fast",
            {"train.sh": ". ./e.sh\n./bin/go\n", "e.sh": "", "bin/go": "python src/m.py", "src/m.py": ""},
            {"train.sh"},
            {"e.sh", "bin/go", "src/m.py"},
            False,
        ),
        (
            "bash run.sh",
            {"run.sh": "cd src && python train.py\n", "src/train.py": "import m", "src/m.py": "", "train.sh": ""},
            {"run.sh"},
            {"src/train.py", "src/m.py"},
            False,
        ),
    ],
)
def test_the_files_that_a_command_and_its_scripts_name_are_there(
    tmp_path: Path, command: str, files: dict[str, str], edit: set[str], fixed: set[str], inputs: bool
) -> None:
    recipe = guess_recipe(repository(tmp_path, files), command=command)
    needed = needed_files(tmp_path, recipe)

    assert (set(recipe.edit), set(needed.fixed)) == (edit, fixed)
    assert set(needed.inputs) == ({"Makefile", "justfile"} & files.keys() if inputs else set())


def test_what_the_program_writes_and_results_of_earlier_runs_are_left_out(tmp_path: Path) -> None:
    program = """\
import os, torch
out_dir = "out"
os.makedirs(out_dir)
if os.path.exists("best.pt"):
    torch.load("best.pt")
torch.save(1, "best.pt")
torch.load("start.pt")
torch.save(1, os.path.join(out_dir, "ckpt.pt"))
"""
    place = repository(tmp_path, {"train.py": program, "out/log.txt": ""})
    for name in ("out/ckpt.pt", "best.pt", "start.pt"):
        (place / name).write_bytes(bytes(2 << 20))
    needed = needed_files(place, USUAL)

    assert (needed.fixed, list(needed.inputs)) == ({}, ["start.pt"])
    assert f"--mount {place / 'out'}" in needed.left_out["out"]
    assert "the program writes it" in needed.left_out["best.pt"]
    forced = needed_files(place, USUAL, [str(place / "out")])
    assert (set(forced.inputs), forced.folders) == ({"out", "start.pt"}, (str(place / "out"),))


@pytest.mark.slow
def test_a_crowded_folder_is_looked_through_in_a_bounded_time(tmp_path: Path) -> None:
    place = repository(tmp_path, {"train.py": "open('images/7.png')\nimport net\n", "images/net.txt": "", "net.py": ""})
    for number in range(3000):
        (place / f"images/{number}.png").touch()
    deep = place / "deep"
    for name in ("a", "b"):
        deep.mkdir(exist_ok=True)
        (deep / f"back_{name}").symlink_to(place)
        (deep / f"self_{name}").symlink_to(deep)
    needed = needed_files(place, USUAL)

    assert (list(needed.fixed), needed.inputs["images"].files) == (["net.py"], 3001)
    assert needed.left_out["deep/self_a"] == "a link to a folder that it lies in"


def test_modules_among_many_files_of_data_are_shown_with_their_folder(tmp_path: Path) -> None:
    files = {f"data/{number}.csv": "" for number in range(80)} | {"data/__init__.py": "", "data/load.py": ""}
    place = repository(tmp_path, {"train.py": "from data import load\nos.listdir('data')\n", **files})
    needed = needed_files(place, USUAL)
    assert (needed.fixed, needed.inputs["data"].files) == ({}, 82)

    recipe = Recipe(edit=("train.py", "data/load.py"))
    with pytest.raises(UsageError, match="files that the program needs, and that are not pinned"):
        needed_files(place, recipe)


@pytest.mark.slow
def test_a_file_that_is_named_is_seen_among_so_many_that_they_are_not_all_looked_at(tmp_path: Path) -> None:
    place = repository(tmp_path, {"train.py": "open('zz.dat'); open('./more/zz.dat'); open('.env'); open('gone')\n"})
    (place / "more").mkdir()
    for number in range(1200):
        (place / f"{number}.dat").touch()
        (place / f"more/{number}.dat").touch()
    for name in ("zz.dat", "more/zz.dat", ".env"):
        (place / name).write_text(name)
    needed = needed_files(place, USUAL)

    assert (set(needed.fixed), set(needed.inputs)) == ({"zz.dat"}, {"more"})


@pytest.mark.slow
def test_links_in_folders_of_links_are_followed_so_far(tmp_path: Path) -> None:
    place = repository(tmp_path, {"train.py": "", **{f"x{number}/a.txt": "" for number in range(30)}})
    for number in range(29):
        for name in ("left", "right"):
            (place / f"x{number}/{name}").symlink_to(place / f"x{number + 1}")
    left_out = needed_files(place, USUAL).left_out

    assert left_out["x0/left/right/left/left"] == "a link in a folder that is reached by links"


def test_what_is_no_file_or_can_not_be_shown_is_named_with_its_reason(tmp_path: Path) -> None:
    place = repository(tmp_path / "task", {"train.py": "open('gone.txt')\n", "venv/pyvenv.cfg": "", "conda/x.py": ""})
    (place / "conda/conda-meta").mkdir()
    os.mkfifo(place / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(place)  # the name of a socket is short
        listener.bind("sock")
        os.chdir(before)
    (place / "gone.txt").symlink_to("nowhere")
    (place / "around").symlink_to("around")
    (place / "bad\nname.txt").touch()
    (place / os.fsdecode(b"latin-\xe9.txt")).touch()
    (place / "out.txt").symlink_to("/etc/hostname")
    left_out = needed_files(place, USUAL).left_out

    assert next(iter(left_out)) == "gone.txt", "what the program names comes first"
    assert left_out["gone.txt"] == left_out["around"] == "a link that leads nowhere"
    assert (left_out["pipe"], left_out["sock"]) == ("a pipe, and no file", "a socket, and no file")
    assert "can't be printed" in left_out["'bad\\nname.txt'"]
    assert "can't be printed" in left_out["'latin-\\udce9.txt'"]
    assert left_out["out.txt"].endswith("--mount /etc/hostname")
    assert len(left_out) == 7


def test_a_folder_with_a_file_that_may_change_is_not_shown_as_a_whole(tmp_path: Path) -> None:
    place = repository(tmp_path, {"pk/train.py": "open('x.csv')\n", "pk/x.csv": ""})
    with pytest.raises(UsageError, match=r"pk/train\.py lies in a folder that is shown"):
        needed_files(place, guess_recipe(place), [str(place / "pk")])


@pytest.mark.parametrize(
    ("error", "missed"),
    [
        ("No such file or directory: 'data/b.csv'", {"data/a.csv", "data/b.csv"}),
        ("No such file or directory: b'./data/b.csv'", {"data/a.csv", "data/b.csv"}),
        ("No such file or directory: '/tmp/run/data/b.csv'", {"data/a.csv", "data/b.csv"}),
        ("No such file or directory: 'data'", {"data/a.csv", "data/b.csv"}),
        ("No such file or directory: 'x.txt'", {"x.txt"}),
        ("No such file or directory: 'nowhere.txt'", set()),
        ("No such file or directory: ''", set()),
    ],
)
def test_what_a_run_did_not_find_is_read_from_its_words(tmp_path: Path, error: str, missed: set[str]) -> None:
    place = repository(tmp_path, {"train.py": "", "data/a.csv": "", "data/b.csv": "", "data/c.py": "", "x.txt": ""})
    assert missed_files(place, f"FileNotFoundError: [Errno 2] {error}\n") == missed
