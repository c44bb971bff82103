"""What is published of a project and fetched again is the same project."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import Refused, UsageError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install
from autoresearch.project.exchange.fetching import write_project
from autoresearch.project.exchange.publishing import (
    environment_files,
    environment_task_files,
    flat_program,
    project_of_run,
)
from autoresearch.project.ini import value_of
from autoresearch.project.model import Project, load_project, with_parameters
from autoresearch.project.runs.records import prepare_run
from autoresearch.run.bench import fault_of_program
from autoresearch.task.folder_state import write_files
from autoresearch.task.loading import load_task
from autoresearch.task.program import split_program
from tests.project.making import ENVIRONMENT, bench, learner, plain, train


def fetched(project: Project, folder: Path) -> Project:
    """The project as somebody else has it after it was published."""
    return write_project(flat_program(project), environment_files(project), folder)


def comparable(project: Project) -> dict[str, object]:
    """What has to be the same."""
    return {
        each.key: (
            each.class_name,
            hashlib.sha256(Path(each.file).read_bytes()).hexdigest(),
            {
                key: value_of(setting.value) if setting.plain else setting.value
                for key, setting in each.settings.items()
            },
            {key: value for key, value in each.pins.items() if key not in ("class_name", "path", "file_path")},
        )
        for each in project.all()
    }


@pytest.mark.slow
def test_an_installed_project_comes_back_the_same_and_runs(tmp_path: Path) -> None:
    folder = learner(tmp_path / "mine")
    project = load_project(folder)
    project = install(project, find_offer("policy", "random", folder), default=False)
    (folder / "parameters.yaml").write_text("trainer:\n  epsilon: 0.25\n")
    train(folder, 60)
    project = with_parameters(load_project(folder))
    theirs = fetched(project, tmp_path / "theirs")
    assert comparable(theirs) == comparable(project)
    assert theirs.defaults == project.defaults
    assert (theirs.folder / ".autoresearch/components/policy/q_table/q_table.py").is_file()
    assert sorted(path.name for path in theirs.folder.iterdir()) == [".autoresearch", "agent.ini", "agent.py"]
    assert flat_program(theirs) == flat_program(project)
    assert environment_files(theirs) == environment_files(project)
    assert bench(theirs.folder, 3).data.metrics["episodes"] == 3


@pytest.mark.slow
def test_ones_own_classes_and_gymnasium_come_back_too(tmp_path: Path) -> None:
    own = load_project(plain(tmp_path / "mine"))
    theirs = fetched(own, tmp_path / "theirs")
    assert comparable(theirs) == comparable(own)
    assert bench(theirs.folder, 2).data.metrics["mean_reward"] == bench(own.folder, 2).data.metrics["mean_reward"]
    gym = install(own, find_offer("environment", "gym:CartPole-v1", own.folder), default=True)
    assert b"id = CartPole-v1" in environment_files(gym)["environment.ini"]
    came = fetched(gym, tmp_path / "pole").component("environment")
    assert (came.name, came.pins["source"]) == ("cartpole", "gym:CartPole-v1")


@pytest.mark.slow
def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    for place, action in (("left", 0), ("right", 1)):
        (folder / place).mkdir(parents=True)
        (folder / place / "policy.py").write_text(
            f"import helper\nclass Walk:\n    def decide(self, observation):\n        return helper.BASE + {action}\n"
        )
    (folder / "helper.py").write_text("BASE = 0\n")
    (folder / "light.py").write_text((plain(tmp_path / "other") / "light.py").read_text())
    (folder / "agent.ini").write_text(
        "[Environment]\nclass_name = light:Light\n[Policy]\ndefault = b\n"
        "[Policy.a]\npath = left\nclass_name = policy:Walk\n"
        "[Policy.b]\nfile_path = right/policy.py\nclass_name = Walk\n"
    )
    project = load_project(folder)
    assert sorted(split_program(flat_program(project))) == [
        "agent.ini",
        "helper.py",
        "left/policy.py",
        "right/policy.py",
    ]
    theirs = fetched(project, tmp_path / "theirs")
    assert theirs.defaults == project.defaults
    assert bench(theirs.folder, 1).data.metrics == bench(folder, 1).data.metrics


# A local project's files, and which lie where in its program and in its task.
WORLD = "from utils import PRICE\n\n" + ENVIRONMENT.replace("-self.price", "-PRICE * (action == 100)")
POL = "import utils\n\n\nclass Pol:\n    def decide(self, observation):\n        return utils.BEST\n"
DEEP = POL.replace("import utils", "from inner import util as utils\nfrom .util import BEST\nfrom ..top import A")
UTILS = {"of_world": "PRICE = 1.0\nBEST = 0\n", "of_pol": "PRICE = 5.0\nBEST = 100\n"}
LAYOUTS: dict[str, tuple[dict[str, str], str, list[str], list[str]]] = {
    "both in folders": (
        {"w/world.py": WORLD, "w/utils.py": UTILS["of_world"], "p/pol.py": POL, "p/utils.py": UTILS["of_pol"]},
        "[Environment]\npath = w\nclass_name = world:Light\n[Policy]\npath = p\nclass_name = pol:Pol\n",
        ["p/pol.py", "p/utils.py"],
        ["utils.py", "world.py"],
    ),
    "the policy beside agent.ini": (
        {"w/world.py": WORLD, "w/utils.py": UTILS["of_world"], "pol.py": POL, "utils.py": UTILS["of_pol"]},
        "[Environment]\npath = w\nclass_name = world:Light\n[Policy]\nclass_name = pol:Pol\n",
        ["agent/pol.py", "agent/utils.py"],
        ["utils.py", "world.py"],
    ),
    "the environment beside agent.ini": (
        {"world.py": WORLD, "utils.py": UTILS["of_world"], "p/pol.py": POL, "p/utils.py": UTILS["of_pol"]},
        "[Environment]\nclass_name = world:Light\n[Policy]\nfile_path = p/pol.py\nclass_name = Pol\n",
        ["p/pol.py", "p/utils.py"],
        ["utils.py", "world.py"],
    ),
    "packages": (
        {
            "lib/worlds/__init__.py": "",
            "lib/worlds/light.py": WORLD.replace("from utils", "from worlds.utils"),
            "lib/worlds/utils.py": UTILS["of_world"],
            "lib/inner/__init__.py": "from . import util\n",
            "lib/inner/more/__init__.py": "",
            "lib/inner/more/deep.py": DEEP.replace("from .util", "from ..util").replace("..top", "...top"),
            "lib/inner/util.py": UTILS["of_pol"],
            "lib/top.py": "A = 1\n",
        },
        "[Environment]\npath = lib\nclass_name = worlds.light:Light\n"
        "[Policy]\npath = lib\nclass_name = inner.more.deep:Pol\n",
        [
            "lib/inner/__init__.py",
            "lib/inner/more/__init__.py",
            "lib/inner/more/deep.py",
            "lib/inner/util.py",
            "lib/top.py",
        ],
        ["environment/lib/worlds/__init__.py", "environment/lib/worlds/light.py", "environment/lib/worlds/utils.py"],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_helpers_of_one_name_and_packages_are_published_as_they_are(layout: str, tmp_path: Path) -> None:
    files, ini, of_program, of_task = LAYOUTS[layout]
    folder = tmp_path / "mine"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "agent.ini").write_text(ini)
    run = bench(folder, 2)
    assert run.data.metrics["mean_reward"] == -3
    project = load_project(folder)
    assert sorted(split_program(flat_program(project))) == sorted([*of_program, "agent.ini"])
    assert sorted(environment_files(project)) == sorted([*of_task, "environment.ini"])
    task = tmp_path / "task"
    task.mkdir()
    write_files(task, environment_task_files(project))
    assert fault_of_program(load_task(task), flat_program(project)) is None
    theirs = fetched(project, tmp_path / "theirs")
    assert bench(theirs.folder, 2).data.metrics["mean_reward"] == -3
    assert (flat_program(theirs), environment_files(theirs)) == (flat_program(project), environment_files(project))
    prepare_run(project, run)
    helper = next(name for name, text in files.items() if text == UTILS["of_pol"])
    (folder / helper).write_text("BEST = 99\n")
    with pytest.raises(Refused, match=r"the code of policy.pol was changed after run"):
        prepare_run(project, run)


@pytest.mark.slow
def test_an_environment_brings_the_files_that_it_reads(tmp_path: Path) -> None:
    folder = plain(tmp_path / "mine")
    (folder / "map.txt").write_text("3")
    text = (folder / "light.py").read_text().replace("self.left = self.length", "self.left = int(open(MAP).read())")
    (folder / "light.py").write_text(f"import os\nMAP = os.path.join(os.path.dirname(__file__), 'map.txt')\n{text}")
    project = load_project(folder)
    assert sorted(environment_files(project)) == ["environment.ini", "light.py", "map.txt"]
    assert bench(fetched(project, tmp_path / "theirs").folder, 1).data.metrics["steps"] == 3


@pytest.mark.slow
def test_an_environment_is_the_same_task_wherever_its_parameters_are_written(tmp_path: Path) -> None:
    files = []
    for number, (ini, yaml) in enumerate(
        (("length = 5\nname = on", "{}"), ("name = on", "{environment: {length: 5}}"))
    ):
        folder = plain(tmp_path / str(number))
        (folder / "agent.ini").write_text(
            f"[Environment]\nclass_name = light:Light\n{ini}\n[Policy]\nclass_name = still:Still\n"
        )
        (folder / "parameters.yaml").write_text(yaml)
        run = bench(folder, 1)
        was = project_of_run(load_project(folder), run)
        assert environment_files(was) == environment_files(with_parameters(load_project(folder)))
        files.append(environment_files(was)["environment.ini"])
    assert files[0] == files[1]
    assert b"name = on\n" in files[0]


def test_the_task_names_its_files_and_its_program(tmp_path: Path) -> None:
    project = load_project(learner(tmp_path / "mine"))
    files = environment_task_files(project)
    task = tomllib.loads(files["task.toml"].decode())
    assert task["name"] == "corridor"
    assert task["metric"] == {"name": "mean_reward", "direction": "maximize", "source": "evaluator"}
    assert (task["budget"], task["evaluation"]["tolerance"]) == ({"unit": "episodes", "amount": 300}, 1e-6)
    assert task["program"]["edit"] == ["agent.ini", "*.py", "*/*.py", "*/*/*.py", "*/*/*/*.py", "requirements.*"]
    assert task["harness"] == {
        name: hashlib.sha256(files[name]).hexdigest() for name in ("corridor.py", "environment.ini")
    }
    assert b"version" not in files["environment.ini"]


def test_a_program_may_bring_packages_and_only_a_locked_list(tmp_path: Path) -> None:
    project, folder = load_project(learner(tmp_path / "mine")), tmp_path / "task"
    folder.mkdir()
    for name, content in environment_task_files(project).items():
        (folder / name).write_bytes(content)
    task = load_task(folder)
    assert task.packages == []
    lists = {"requirements.in": b"tiny\n", "requirements.txt": b"tiny==1.0 --hash=sha256:" + 64 * b"0" + b"\n"}
    assert fault_of_program(task, flat_program(project, lists)) is None
    loose = flat_program(project, {**lists, "requirements.txt": b"tiny\n"})
    assert "is not locked" in (fault_of_program(task, loose) or "")
    write_project(flat_program(project, lists), task.harness, tmp_path / "theirs")
    assert (tmp_path / "theirs/requirements.in").read_bytes() == b"tiny\n"


FAULTS = {
    "a file that is missing": (None, {}, "can't be read"),
    "a folder of another form": ("from my_file import a\n", {"my_file/a.py": ""}, "tools may obey"),
    "a file of data": ("A = open('table.csv').read()\n", {"table.csv": "1"}, "policy.still names table.csv"),
    "no Python": ("def\n", {}, "still.py, line 1"),
    "a boundary": ("A = '''\n==== autoresearch file: x.py ====\n'''\n", {}, "has a line that begins"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_can_not_be_published_is_said(tmp_path: Path, fault: str) -> None:
    text, others, message = FAULTS[fault]
    folder = plain(tmp_path / "mine")
    for name, content in others.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    still = folder / "still.py"
    if text is None:
        still.unlink()
    else:
        still.write_text(text + still.read_text())
    with pytest.raises(UsageError, match=message):
        flat_program(load_project(folder))


def test_a_program_of_a_stranger_names_files_of_its_own_alone(tmp_path: Path) -> None:
    project = load_project(plain(tmp_path / "mine"))
    program, harness = flat_program(project), environment_files(project)
    (tmp_path / "secret.py").write_text("class Still: pass\n")
    for number, change in enumerate((("path = .", "path = .."), ("still:Still", "../secret:Still"))):
        with pytest.raises(UsageError, match="was not published"):
            write_project(program.replace(*change), harness, tmp_path / f"theirs{number}")
    above = program.replace("path = .", "path = .\nroot = ..", 1)
    with pytest.raises(UsageError, match="was not published"):
        write_project(above, harness, tmp_path / "above")
    for name in ("../a.py", "/a.py", "sub/../../a.py", ".git/a.py"):
        with pytest.raises(UsageError, match=r"no plain file name|boundary line"):
            write_project(program, {**harness, name: b""}, tmp_path / "folders")
        with pytest.raises(UsageError, match=r"no plain file name|boundary line"):
            write_project(f"{program}==== autoresearch file: {name} ====\n", harness, tmp_path / "folders")
    added = program.replace("[Policy]", "[Environment.x]\nclass_name = still:Still\n[Policy]")
    with pytest.raises(UsageError, match="an environment of its own"):
        write_project(added, harness, tmp_path / "more")


plain_values = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    plain_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(value=values)
def test_every_value_of_a_parameter_survives(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    import yaml

    folder = plain(tmp_path_factory.mktemp("project"))
    (folder / "parameters.yaml").write_text(yaml.safe_dump({"policy": {"x": value}, "environment": {"y": value}}))
    project = with_parameters(load_project(folder))
    theirs = fetched(project, folder / "theirs")
    setting = theirs.component("policy").settings["x"].value
    assert value_of(setting) == project.component("policy").settings["x"].value
    assert value_of(theirs.component("environment").settings["y"].value) == value_of(setting)
    assert flat_program(theirs) == flat_program(project)


def test_an_environment_with_packages_is_a_task_that_locks_them(tmp_path: Path) -> None:
    project = load_project(plain(tmp_path / "mine") / "agent.ini")
    lock = f"tiny-a==1.0 \\\n    --hash=sha256:{'0' * 64}\n".encode()
    task = tmp_path / "task"
    task.mkdir()
    write_files(task, environment_task_files(project, {"requirements.in": b"tiny-a>=1\n", "requirements.txt": lock}))
    assert [each.name for each in load_task(task).packages] == ["tiny-a"]
