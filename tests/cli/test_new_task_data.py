"""``task new`` in folders with data of any size and name: what runs see, read-only, and what is left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autoresearch.run.sandbox.filters import LEAST_LANDLOCK, landlock_version
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.test_ideas import ran
from tests.task.test_guessing import repository
from tests.task.test_notebook import notebook

READER = """\
LR = 0.1
data = open("data/train.bin", "rb").read()
try:
    open("data/train.bin", "ab")
    raise SystemExit("it could write")
except OSError:
    print("val_loss:", len(data) * LR)
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def walls(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two sandboxes: the better one is used where its program is on the path."""
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap on the path")
    if request.param == "landlock":
        if landlock_version() < LEAST_LANDLOCK:
            pytest.skip("the kernel's landlock is too old")
        (tmp_path / "bin").mkdir()
        for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
            for program in folder.glob("*"):
                if program.name not in {"bwrap", "apptainer"} and not os.path.lexists(tmp_path / "bin" / program.name):
                    (tmp_path / "bin" / program.name).symlink_to(program)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return str(request.param)


@pytest.mark.slow
def test_large_data_in_the_folder_is_shown_to_runs_and_never_written(
    process: Process, tmp_path: Path, walls: str
) -> None:
    folder = repository(tmp_path / walls, {"train.py": READER})
    (folder / "data").mkdir()
    (folder / "data/train.bin").write_bytes(bytes(12_000_000))
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert "data/train.bin (11.4 MiB) is shown to runs, read only" in result.stderr
    run = ran(process, folder).run
    assert run
    assert (run.run.value, run.run.sandbox) == (1_200_000, 2 if walls == "bubblewrap" else 1)
    assert (folder / "data/train.bin").stat().st_size == 12_000_000


@pytest.mark.slow
def test_any_name_and_any_number_of_files_is_read(process: Process, tmp_path: Path, walls: str) -> None:
    program = """\
import os
LR = 0.1
here = open("my data/x.txt").read() + open("data/été.txt").read() + open("link/y.txt").read()
count = len(os.listdir("images")) + len(list(os.walk("deep (1)")))
print("val_loss:", (len(here) + count) * LR)
"""
    files = {"my data/x.txt": "12345", "data/été.txt": "1", "store/y.txt": "123", "deep (1)/二/z.csv": "1"}
    files |= {f"images/{number}.png": "" for number in range(100)}
    folder = repository(tmp_path / walls, {"train.py": program, **files})
    (folder / "link").symlink_to("store")
    (folder / "loop").symlink_to(".")
    os.mkfifo(folder / "pipe")
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert "it printed val_loss: 11.1000" in result.stderr
    assert "images/ (0 B, 100 files) is shown to runs" in result.stderr
    assert "left out: pipe, a pipe, and no file" in result.stderr
    assert "left out: loop, a link to a folder that it lies in" in result.stderr
    assert ran(process, folder).run


def test_a_link_that_leads_out_is_named_and_shown_with_the_mount_that_is_named(
    process: Process, tmp_path: Path
) -> None:
    program = 'LR = 0.1\nprint("val_loss:", len(open("data/big/y.txt").read()) * LR)\n'
    folder = repository(tmp_path / "mine", {"train.py": program})
    repository(tmp_path / "elsewhere", {"big/y.txt": "1234"})
    (folder / "data").symlink_to("../elsewhere")
    result = process("task", "new", str(folder), "--once")
    mount = f"--mount {tmp_path / 'elsewhere'}"
    assert result.returncode == 2, result.stderr
    assert "→ its runs don't see that: a link that leads out" in result.stderr
    assert f"left out: data, a link that leads out of the folder; to show it to runs: {mount}" in result.stderr
    assert not (folder / "task.toml").exists()
    result = process("task", "new", str(folder), "--once", "--mount", str(tmp_path / "nowhere"))
    assert result.returncode == 4
    assert f"there is no {tmp_path / 'nowhere'}\n→ --mount names a folder or a file" in result.stderr
    result = process("task", "new", str(folder), "--once", *mount.split())
    assert result.returncode == 0, result.stderr
    assert "it printed val_loss: 0.4000" in result.stderr
    assert load_task(folder).mounts["./data"] == str(tmp_path / "elsewhere")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["path", "finder"])
def test_a_package_that_is_installed_for_editing_is_taken_from_the_folder(
    process: Process, tmp_path: Path, walls: str, how: str
) -> None:
    files = {"src/pk/__init__.py": "", "src/pk/m.py": "import dep\nW = dep.W\n", "src/pk/more.py": "V = 1\n"}
    program = 'from pk.m import W\nLR = 0.1\nfrom pk import more\nprint("loss:", LR * W * more.V)\n'
    folder = repository(tmp_path / "mine", {"scripts/train.py": program, **files})
    with tempfile.TemporaryDirectory(dir="/var/tmp") as venv:
        Path(venv).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = Path(venv).glob("lib/python*/site-packages")
        (site / "dep.py").write_text("W = 2\n")
        if how == "path":
            (site / "__editable__.pk.pth").write_text(f"{folder}/src\n")
        else:
            (site / "__editable__.pk.pth").write_text("import pk_finder; pk_finder.install()\n")
            (site / "pk_finder.py").write_text(FINDER.format(place=f"{folder}/src/pk/__init__.py"))
        result = process("task", "new", str(folder), "--venv", venv, "--once")
        assert result.returncode == 0, result.stderr
        assert "it printed loss: 0.2000" in result.stderr
        run = ran(process, folder).run
    assert run
    assert run.run.value == pytest.approx(0.2)


FINDER = """\
import importlib.util, sys

class Finder:
    def find_spec(name, path=None, target=None):
        if name == "pk":
            return importlib.util.spec_from_file_location(name, {place!r})

def install():
    sys.meta_path.append(Finder)
"""


@pytest.mark.slow
def test_a_command_has_its_makefile_and_its_scripts(process: Process, tmp_path: Path, walls: str) -> None:
    files = {
        "Makefile": "include common.mk\nrun:\n\t./scripts/run.sh\n",
        "common.mk": "export RATE = 2\n",
        "scripts/run.sh": "#!/bin/sh\ncd src\nexec python net/train.py\n",
        "src/net/train.py": 'import os, size\nLR = 0.1\nprint("loss:", LR * size.N * int(os.environ["RATE"]))\n',
        "src/net/size.py": "N = 3\n",
    }
    folder = repository(tmp_path / "made", files)
    (folder / "scripts/run.sh").chmod(0o755)
    result = process("task", "new", str(folder), "--command", "make run", "--once")
    assert result.returncode == 0, result.stderr
    assert "it printed loss: 0.6000" in result.stderr
    run = ran(process, folder).run
    assert run
    assert run.run.value == pytest.approx(0.6)


@pytest.mark.slow
def test_a_notebook_and_a_byte_order_mark_are_no_hindrance(process: Process, tmp_path: Path) -> None:
    folder = tmp_path / "note"
    folder.mkdir()
    notebook(folder / "My Model.ipynb", "%matplotlib inline\nimport helper", "LR = 0.1", "loss = LR * helper.W\nloss")
    (folder / "helper.py").write_bytes(b"\xef\xbb\xbfW = 2\n")
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert "left out of it: %matplotlib inline" in result.stderr
    assert "it printed loss: 0.2000" in result.stderr
    program = folder / "My_Model.py"
    program.write_bytes(b"\xef\xbb\xbf" + program.read_bytes())
    first = ran(process, folder).run
    assert first
    program.write_bytes(program.read_bytes().replace(b"LR = 0.1", b"LR = 0.05"))
    second = ran(process, folder).run
    assert second
    assert (first.run.value, second.run.value) == (pytest.approx(0.2), pytest.approx(0.1))
    assert process("run", "checkout", str(folder)).returncode == 0


LISTS = {
    "pyproject.toml": '[project]\nname = "mine"\ndependencies = ["listed-nowhere>=2"]\n',
    "requirements.txt": "also-listed==1\n",
    "helper.py": "import msgspec\nimport cv2_nowhere\n",
    "train.py": "import helper\nimport sklearn_nowhere\ndef main():\n    import yaml_nowhere\n",
}


@pytest.mark.slow
def test_all_that_a_program_lacks_is_named_at_once_with_one_command(process: Process, tmp_path: Path) -> None:
    folder = repository(tmp_path / "mine", LISTS)
    result = process("task", "new", str(folder), "--once")
    names = "also-listed==1, cv2_nowhere, listed-nowhere>=2, sklearn_nowhere, yaml_nowhere"
    assert result.returncode == 2
    assert f"needs packages that the Python of this node lacks: {names}" in result.stderr
    pip = "install also-listed==1 cv2_nowhere 'listed-nowhere>=2' msgspec sklearn_nowhere yaml_nowhere && "
    assert f"→ python -m venv {folder}/.venv && {folder}/.venv/bin/pip {pip}" in result.stderr
    assert f"autoresearch task new {folder} --venv {folder}/.venv" in result.stderr
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    (site,) = folder.glob(".venv/lib/python*/site-packages")
    for name in ("cv2_nowhere", "sklearn_nowhere", "yaml_nowhere", "msgspec"):
        (site / f"{name}.py").touch()
    result = process("task", "new", str(folder), "--once")
    assert f"→ {folder}/.venv/bin/python -m pip install also-listed==1 'listed-nowhere>=2' && " in result.stderr
    (folder / "pyproject.toml").unlink()
    (folder / "requirements.txt").unlink()
    result = process("task", "new", str(folder), "--once")
    assert f"→ autoresearch task new {folder} --venv {folder}/.venv (to share" in result.stderr
    assert not (folder / "task.toml").exists()


@pytest.mark.slow
def test_a_file_that_the_first_run_did_not_find_is_shown_to_the_next(process: Process, tmp_path: Path) -> None:
    program = 'LR = 0.1\nname = "".join(["da", "ta"])\nprint("loss:", len(open(f"{name}/a.csv").read()) * LR)\n'
    folder = repository(tmp_path / "mine", {"train.py": program, "data/a.csv": "1234", "data/b.csv": ""})
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert "its run did not find a file of its folder; fixed too: data/a.csv, data/b.csv" in result.stderr
    assert set(load_task(folder).harness) == {"data/a.csv", "data/b.csv"}


@pytest.mark.slow
def test_data_that_is_links_into_a_store_of_the_folder_is_read(process: Process, tmp_path: Path, walls: str) -> None:
    program = """\
import os
LR = 0.1
texts = [open(f"data/{name}").read() for name in os.listdir("data")]
print("loss:", len("".join(texts)) * LR)
"""
    store = ".store/ab" if walls == "landlock" else "store"
    folder = repository(tmp_path / walls, {"train.py": program, **{f"{store}/{n}": "123" for n in range(100)}})
    (folder / "data").mkdir()
    for number in range(100):
        (folder / f"data/{number}.txt").symlink_to(f"../{store}/{number}")
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert "it printed loss: 30" in result.stderr
    assert set(load_task(folder).inputs) == {"data", store}
