"""Components of two publishers in one project: each finds its own files, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.components.trusting import ComponentOffer, Origin
from autoresearch.project.model import load_project
from autoresearch.project.modules import files_of
from autoresearch.project.runs.running import Choices, do_project_run
from tests.project.making import now_ms
from tests.project.test_boxed import box, needs_sandbox

# Each use of a file beside it, in the environment and in the policy alike; ``value`` is what stands there.
IMPORTS = {
    "from": "from {name} import VALUE as value",
    "plain": "import {name}\nvalue = {name}.VALUE",
    "late": "def read():\n    from {name} import VALUE\n    return VALUE\nvalue = read()",
    "star": "from {name} import *\nvalue = VALUE",
    "relative": "from .{name} import VALUE as value",
    "by its name": "import importlib\nvalue = importlib.import_module('{name}').VALUE",
    "by a function": "from importlib import import_module as load\nvalue = (lambda: load('{name}'))().VALUE",
    "by __import__": "value = __import__('{name}').VALUE",
    "in a text": "exec('from {name} import VALUE as value')",
    "by a library": "import pkgutil\nvalue = pkgutil.resolve_name('{name}:VALUE')",
    "on sys.path": "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nimport {name}\nvalue = {name}.VALUE",
    "guarded": "try:\n    import {name}\nexcept ImportError:\n    {name} = None\nvalue = {name}.VALUE",
}
ENVIRONMENT = """
{imports}

class World:
    def reset(self):
        self.left = 10
        return 0
    def step(self, action):
        self.left -= 1
        return 0, self.left == 0, value if action == 100 else -1000, {{}}
"""
POLICY = """
{imports}

class Pol:
    def decide(self, observation):
        return value
"""


def offer(kind: str, class_name: str, files: dict[str, str], origin: Origin = "foreign") -> ComponentOffer:
    pins = {"source": "log", "release": f"r-{kind}", "version": "1.0.0"}
    encoded = {name: text.encode() for name, text in files.items()}
    name = class_name.partition(":")[0]
    return ComponentOffer(type=kind, name=name, class_name=class_name, files=encoded, pins=pins, origin=origin)


def project(folder: Path, imports: str, helpers: dict[str, str], origin: Origin = "foreign") -> Path:
    """A project with an environment of one publisher and a policy of another; ``@`` in a helper is 1 or 100."""
    made = make_project(folder)
    for kind, class_name, template, value in (
        ("environment", "world:World", ENVIRONMENT, "1"),
        ("policy", "pol:Pol", POLICY, "100"),
    ):
        files = {name: text.replace("@", value) for name, text in helpers.items()}
        files[f"{class_name.partition(':')[0]}.py"] = template.format(imports=imports)
        made = install(made, offer(kind, class_name, files, origin), default=True)
    return folder


def reward(folder: Path) -> float:
    run = do_project_run(Choices(folder), "bench", 1, now_ms=now_ms, box=box)
    return run.data.metrics["mean_reward"]


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("form", IMPORTS)
def test_each_publisher_s_helper_is_its_own(form: str, tmp_path: Path) -> None:
    imports = IMPORTS[form].format(name="utils")
    for origin in ("foreign", "own"):
        assert reward(project(tmp_path / origin, imports, {"utils.py": "VALUE = @\n"}, origin=origin)) == 10  # type: ignore[arg-type]


# Names that Python, this program, a package or the other publisher has; helpers of helpers, folders, packages.
TOP, DEEP, VALUE = "inner/__init__.py", "inner/deep.py", "VALUE = @\n"
CIRCLE = {"a.py": "import b\ndef get(): return b.VALUE\n", "b.py": "import a\nVALUE = @\n"}
PLANT = "import sys, utils\nsys.modules.setdefault('utils', utils)\nvalue = utils.VALUE"
ABOVE = {
    "inner/more/__init__.py": "",
    "inner/more/far.py": "from ..near import VALUE\nfrom inner.near import VALUE as same\n",
    "inner/near.py": VALUE,
}
THING = "class Thing:\n    value = @\n    def __reduce__(self): return Thing, ()\n"
HELPERS: dict[str, tuple[str, dict[str, str]]] = {
    "a package's": ("import yaml as other\nvalue = other.VALUE", {"yaml.py": VALUE}),
    "this program's": ("import autoresearch_cli as other\nvalue = other.VALUE", {"autoresearch_cli.py": VALUE}),
    "a helper's": ("import a\nvalue = a.VALUE", {"a.py": "from b import VALUE\n", "b.py": VALUE}),
    "a package": ("import inner\nvalue = inner.VALUE", {TOP: "from .deep import VALUE\n", DEEP: VALUE}),
    "an absolute name": ("from inner import VALUE as value", {TOP: "from inner.deep import VALUE\n", DEEP: VALUE}),
    "a module of a package": ("import inner.deep\nvalue = inner.deep.VALUE", {TOP: "", DEEP: VALUE}),
    "a folder without __init__": ("import inner.deep as deep\nvalue = deep.VALUE", {DEEP: VALUE}),
    "a folder on sys.path": (
        "import os, sys\nsys.path.append(os.path.dirname(__file__) + '/lib')\nfrom deep import VALUE as value",
        {"lib/deep.py": VALUE},
    ),
    "a folder above": ("from inner.more.far import VALUE as value", {"inner/__init__.py": "", **ABOVE}),
    "the package of all": (
        "from . import VALUE as value",
        {"__init__.py": "from .utils import VALUE\n", "utils.py": VALUE},
    ),
    "a pickled object": (
        "import pickle, utils\nvalue = pickle.loads(pickle.dumps(utils.Thing())).value",
        {"utils.py": THING},
    ),
    "a file of data": (
        "from importlib import resources\nvalue = int(resources.files(__package__).joinpath('table.txt').read_text())",
        {"table.txt": "@"},
    ),
    "modules that import each other": ("import a\nvalue = a.get()", CIRCLE),
    "what another has planted": (PLANT, {"utils.py": VALUE}),
}


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("what", HELPERS)
def test_no_name_leads_to_the_other_publisher(what: str, tmp_path: Path) -> None:
    imports, helpers = HELPERS[what]
    assert reward(project(tmp_path / "agent", imports, helpers)) == 10


FORMS = """
from importlib import resources
import lib.deep.near
space = {}
exec('from utils import VALUE', space)
table = resources.files(__package__).joinpath('table.txt').read_text()
values = {__import__('utils').VALUE, space['VALUE'], lib.deep.near.VALUE, int(table), *map(int, lib.deep.near.table)}
value = values.pop() if len(values) == 1 else -1
"""
BESIDE = {
    "utils.py": VALUE,
    "table.txt": "@",
    "lib/far.txt": "@",
    "lib/far.py": VALUE,
    "lib/deep/near.py": "import importlib.resources as r, lib\nfrom lib.far import VALUE\n"
    "table = [(r.files(lib) / 'far.txt').read_text()]\n",
}


@pytest.mark.slow
def test_a_folder_of_ones_own_finds_its_files_as_a_release_does(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    made = make_project(folder)
    for kind, name, template, number in (("environment", "World", ENVIRONMENT, "1"), ("policy", "Pol", POLICY, "100")):
        for path, text in {**BESIDE, "main.py": template.format(imports=FORMS)}.items():
            (folder / kind / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / kind / path).write_text(text.replace("@", number))
        made = install(made, find_offer(kind, str(folder / kind), folder, class_name=f"main:{name}"), default=True)
        files = files_of(made.component(kind), folder)
        assert {path.relative_to(folder / kind).as_posix() for path in files} >= {"utils.py", "lib/far.py"}
    assert do_project_run(Choices(folder), "bench", 1, now_ms=now_ms).data.metrics["mean_reward"] == 10


@pytest.mark.slow
@needs_sandbox
def test_the_standard_library_stays_what_it_is(tmp_path: Path) -> None:
    ends = "raise SystemExit\n"
    helpers = {"random.py": ends, "json.py": ends, "utils.py": "import random\nVALUE = @\n"}
    helpers |= {"autoresearch/more.py": ends, "autoresearch/__init__.py": ends, "acr.py": ends}
    imports = "import acr, json, utils\nfrom autoresearch import Policy\nvalue = utils.VALUE if json.dumps([]) else 0"
    assert reward(project(tmp_path / "agent", imports, helpers)) == 10


@pytest.mark.slow
@needs_sandbox
def test_a_file_that_another_publisher_alone_has_is_not_there(tmp_path: Path) -> None:
    folder = project(tmp_path / "agent", "value = 100", {})
    install_code = POLICY.format(imports="import world\nvalue = 100")
    install(load_project(folder), offer("policy", "other:Pol", {"other.py": install_code}), default=True)
    with pytest.raises(AutoresearchError, match="needs the package world, which is not installed"):
        reward(folder)
    relative = POLICY.format(imports="from .world import value")
    install(load_project(folder), offer("policy", "third:Pol", {"third.py": relative}), default=True)
    with pytest.raises(AutoresearchError, match="imports world, which is not among its files"):
        reward(folder)


@pytest.mark.slow
@needs_sandbox
def test_what_one_puts_on_sys_path_is_not_found_by_another(tmp_path: Path) -> None:
    folder = project(
        tmp_path / "agent", "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nvalue = 100", {}
    )
    guarded = "try:\n    import world\nexcept ImportError:\n    value = 100\n"
    files = {"other.py": POLICY.format(imports=guarded)}
    install(load_project(folder), offer("policy", "other:Pol", files), default=True)
    assert reward(folder) == 1000
