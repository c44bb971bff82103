"""A stranger's folder with links and pipes in the place of files: nothing elsewhere is read, published or changed.

Each act is tried with each kind, by its public function; the whole path of some is in :mod:`tests.cli.test_links`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copytree

import pytest

from autoresearch.ask.registry.preparing import prepare, read_registry
from autoresearch.ask.requests import Description
from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, uninstall
from autoresearch.project.components.trusting import mark_fetched
from autoresearch.project.exchange.publishing import environment_files, flat_program
from autoresearch.project.learned import load_state, pack_learned
from autoresearch.project.model import load_project, with_parameters
from autoresearch.project.runs.kept import carry_files, kept_runs, new_run_folder, set_head
from autoresearch.project.runs.process import packed_code
from autoresearch.run.folder import OUTCOME, log_of, read_outcome
from autoresearch.run.package_locks import lock_folder
from autoresearch.task.declared import declared_packages
from autoresearch.task.folder_state import (
    keep_baseline,
    keep_edit,
    kept_baselines,
    remember_edit,
    remembered_edit,
    replace_file,
    started_from,
)
from autoresearch.task.folders import copy_task, pin_baseline, side_file, write_program, write_task
from autoresearch.task.guessing import guess_recipe
from autoresearch.task.inputs import sources
from autoresearch.task.loading import load_task, program_in
from autoresearch.task.model import Recipe
from autoresearch.task.needed import needed_files
from autoresearch.task.notebook import convert_notebook
from tests.daemon.toy import write_toy_task
from tests.links import CANARY, plant
from tests.project.making import learner

PROGRAM = (
    'LR = 0.1\nimport helper\nrows = open("data/points.csv").read()\nopen("settings.json")\nprint("val_loss:", LR)\n'
)
# All kinds are tried in tests.test_beneath.
KINDS = ["absolute", "climbing", "chain", "through a folder", "dangling", "loop", "endless", "root of a process"]
KINDS += ["pipe", "link to a pipe"]
Act = Callable[[Path], object]


def written(folder: Path) -> object:
    """A task of a program with a module, data and settings."""
    write_task(folder, metric="val_loss")
    task = load_task(folder)
    return dict(task.harness), task.program, sources(task), list(kept_baselines(folder))


def flat(folder: Path) -> object:
    project = with_parameters(load_project(folder))
    return flat_program(project), environment_files(project), packed_code(project, within=True)


def component(folder: Path) -> object:
    return prepare(folder, Description(type="policy", version="1.0")).bundle


READS: dict[str, tuple[str, Act]] = {
    "a task's manifest": ("task/task.toml", load_task),
    "a task's program": ("task/train.py", load_task),
    "a task's harness": ("task/prepare.py", load_task),
    "any file of a program": ("task/extra.json", lambda place: program_in(place, Recipe(edit=("*.json", "train.py")))),
    "a folder of a program": ("task/deep", lambda place: program_in(place, Recipe(edit=("deep/*", "train.py")))),
    "patches": ("task/changes.toml", lambda place: side_file("changes.toml", {}, place)),
    "names": ("task/names.toml", lambda place: side_file("names.toml", {}, place)),
    "a copy of a task": ("task/changes.toml", lambda place: copy_task(load_task(place), place.with_name("copy"))),
    "the kept baseline": ("task/.autoresearch/baseline.py", lambda place: list(kept_baselines(place))),
    "the parent": ("task/.autoresearch/parent", started_from),
    "the edit": ("task/.autoresearch/edit", remembered_edit),
    "a list of packages": ("task/requirements.in", lock_folder),
    "a locked list": ("task/requirements.txt", lock_folder),
    "packages of a program": ("program/requirements.txt", lambda place: declared_packages(place, {})),
    "a project's table": ("program/pyproject.toml", lambda place: declared_packages(place, {})),
    "a program": ("program/train.py", lambda place: program_in(place, guess_recipe(place))),
    "a script": ("program/run.sh", lambda place: program_in(place, guess_recipe(place, command="bash run.sh"))),
    "its module": ("program/helper.py", written),
    "its data": ("program/data/points.csv", written),
    "its folder of data": ("program/data", written),
    "its settings": ("program/settings.json", written),
    "what it needs": ("program/prepare.py", lambda place: needed_files(place, guess_recipe(place)).fixed),
    "a notebook": ("program/x.ipynb", lambda place: convert_notebook(place, "x.ipynb")),
    "a project's components": ("project/agent.ini", flat),
    "a project's parameters": ("project/parameters.yaml", flat),
    "a project's code": ("project/agent.py", flat),
    "an installed component": ("project/.autoresearch/components/policy/q_table/q_table.py", flat),
    "the newest run": ("project/.autoresearch/head", lambda place: kept_runs(load_project(place))),
    "a run of a project": ("project/.autoresearch/runs/0123456789ab", lambda place: kept_runs(load_project(place))),
    "a learned state": ("learned/policy.q.json", lambda place: load_state(place, "policy.q")),
    "a component": ("component/main.py", component),
    "a component's folder": ("component/lib", component),
    "a component's description": ("component/component.ini", component),
    "a registry": ("component/registry.yaml", lambda place: read_registry(place / "registry.yaml")),
    "an outcome": (f"run/{OUTCOME}", lambda place: (log_of(place), read_outcome(place))),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    place = tmp_path / "home/.ssh/id"
    place.parent.mkdir(parents=True)
    place.write_bytes(CANARY)
    place.with_name("policy.q.json").write_bytes(b'{"secret": "private-4b1d"}')
    return place


@pytest.fixture
def stranger(template: Path, tmp_path: Path) -> Path:
    """Folders as a clone or an archive has them."""
    return copytree(template, tmp_path / "clone")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("template")
    write_toy_task(place / "task")
    for name, text in {
        "program/train.py": PROGRAM,
        "program/helper.py": "X = 1\n",
        "program/data/points.csv": "1,2\n",
        "program/settings.json": "{}\n",
        "component/main.py": "class Policy:\n    pass\n",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    learner(place / "project")
    for name in ("learned", "run", "task/.autoresearch", "project/.autoresearch/runs"):
        (place / name).mkdir(exist_ok=True)
    return place


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READS)
def test_nothing_elsewhere_is_read(stranger: Path, secret: Path, name: str, kind: str) -> None:
    file, act = READS[name]
    place = stranger / file
    if place.is_dir():
        place.rename(stranger / "moved")
    plant(kind, place, secret)
    content: object = None
    with suppress(AutoresearchError):
        content = act(stranger / file.partition("/")[0])
    assert "private-4b1d" not in repr(content)
    for path in (path for path in stranger.rglob("*") if path.is_file() and not path.is_symlink()):
        assert CANARY not in path.read_bytes(), path
    assert secret.read_bytes() == CANARY


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("train.py", load_task),
        ("prepare.py", load_task),
        ("task.toml", load_task),
        ("task.toml", lock_folder),
        ("task.toml", pin_baseline),
        ("extra.json", lambda place: program_in(place, Recipe(edit=("*.json", "train.py")))),
        ("deep", lambda place: program_in(place, Recipe(edit=("deep/*", "train.py")))),
        ("train.py", guess_recipe),
    ],
)
def test_a_sentence_says_what_leads_where_and_what_to_do(stranger: Path, secret: Path, name: str, act: Act) -> None:
    folder = stranger / "task"
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    with pytest.raises(UsageError) as refused:
        act(folder)
    assert str(refused.value).endswith(f"{name} can't be read: a link leads out of the folder, to {secret}")
    assert act is lock_folder or refused.value.hint == "copy the file there"


def log(place: Path) -> None:
    """Write the log of a project's run, as its process does."""
    load_project(place).to_write(".autoresearch/log.txt").write_text("done\n")


def begin(place: Path) -> None:
    """Begin a run of a project."""
    with new_run_folder(load_project(place)) as folder:
        (folder / "agent.ini").write_text("")


def put(place: Path) -> None:
    """Install a component."""
    install(load_project(place), find_offer("policy", "random", place), default=False)


WRITES: dict[str, tuple[str, Act]] = {
    "a program": ("task/train.py", lambda place: write_program(place, "X = 2\n")),
    "the baseline": ("task/.autoresearch/baseline.py", lambda place: keep_baseline(place, b"X = 1\n")),
    "the state's folder": ("task/.autoresearch/", lambda place: keep_baseline(place, b"X = 1\n")),
    "an edit": ("task/.autoresearch/edit", lambda place: remember_edit(place, "X = 1\n", "why")),
    "an edit put aside": ("task/.autoresearch/kept/", lambda place: keep_edit(place, "train.py", b"X = 1\n", "2026")),
    "the pin": ("task/task.toml", pin_baseline),
    "a new task": ("program/task.toml", lambda place: write_task(place, metric="val_loss")),
    "a copy": ("copy/prepare.py", lambda place: copy_task(load_task(place.with_name("task")), place)),
    "an agent's file": ("task/history.md", lambda place: replace_file(place, "history.md", b"")),
    "a project's state": ("project/.autoresearch/", begin),
    "its runs": ("project/.autoresearch/runs/", begin),
    "its lock": ("project/.autoresearch/lock", begin),
    "what git ignores": ("project/.autoresearch/.gitignore", begin),
    "its head": ("project/.autoresearch/head", lambda place: set_head(load_project(place), None)),
    "its log": ("project/.autoresearch/log.txt", log),
    "its mark": ("project/.autoresearch/fetched", lambda place: mark_fetched(load_project(place), "x")),
    "its components": ("project/.autoresearch/components/", put),
    "a kind of components": ("project/.autoresearch/components/policy/", put),
    "a component": ("project/.autoresearch/components/policy/random/", put),
    "a new component": ("project/.autoresearch/components/policy/.random.new/", put),
    "an old component": ("project/.autoresearch/components/policy/.random.old/", put),
    "its manifest": ("project/agent.ini", put),
    "a removed component": (
        "project/.autoresearch/components/policy/q_table/",
        lambda place: uninstall(load_project(place), "policy", "q_table"),
    ),
}


@pytest.mark.parametrize("kind", [*KINDS, "hard"])
@pytest.mark.parametrize("name", WRITES)
def test_nothing_elsewhere_is_written(stranger: Path, secret: Path, name: str, kind: str) -> None:
    file, act = WRITES[name]
    place = stranger / file
    if place.is_dir():
        place.rename(stranger / "moved")
    place.parent.mkdir(parents=True, exist_ok=True)
    plant(kind, place, secret.parent if file.endswith("/") and kind != "hard" else secret)
    with suppress(AutoresearchError, OSError):  # the command line says an OSError, too
        act(stranger / file.partition("/")[0])
    assert secret.read_bytes() == CANARY
    assert sorted(path.name for path in secret.parent.iterdir()) == ["id", "policy.q.json"]
    assert [path.name for path in secret.parents[1].iterdir()] == [".ssh"]


def test_a_state_that_is_a_link_is_packed_by_nothing(stranger: Path, secret: Path, tmp_path: Path) -> None:
    states = stranger / "learned"
    (states / "policy.q.json").symlink_to(secret.with_name("policy.q.json"))
    (states / "policy.r.json").write_text("{}")
    carry_files(states, stranger / "run")
    pack_learned(states, tmp_path / "learned.zip")
    assert [path.name for path in (stranger / "run").iterdir()] == ["policy.r.json"]
    assert b"private" not in (tmp_path / "learned.zip").read_bytes()


def test_a_section_names_no_folder_elsewhere_to_be_removed(stranger: Path, secret: Path) -> None:
    ini = stranger / "project/agent.ini"
    path = ".autoresearch/components/policy/q_table"
    text = ini.read_text()
    assert path in text
    for other in (f".autoresearch/components/../../../../{secret.parents[1].name}", ".autoresearch/components/."):
        ini.write_text(text.replace(path, other))
        with suppress(AutoresearchError):
            uninstall(load_project(stranger / "project"), "policy", "q_table")
        assert secret.read_bytes() == CANARY
        assert (stranger / "project/.autoresearch/components/policy/q_table").is_dir()


def test_links_inside_a_folder_are_followed(stranger: Path) -> None:
    folder = stranger / "program"
    (folder / "v3.py").write_text(PROGRAM)
    (folder / "train.py").unlink()
    (folder / "train.py").symlink_to("v3.py")
    (folder / "data").rename(folder / "data_v2")
    (folder / "data").symlink_to("data_v2")
    write_task(folder, metric="val_loss", recipe=guess_recipe(folder))
    task = load_task(folder)
    assert PROGRAM in task.program.decode()
    assert b"1,2\n" in task.harness.values()
