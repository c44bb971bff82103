"""A project as others can fetch it: its environment is a task, its other components are a program. Nothing is sent.

A program is ``agent.ini`` with the Python files of all components but the environment's, those of an installed one in a
folder of its own, and with its list of packages where it needs any. The task follows from the environment alone: its
files, its packages, and ``environment.ini`` with its class and parameters. So all agents of an environment are on one
board.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec

from autoresearch.errors import UsageError
from autoresearch.project import model
from autoresearch.project.components.installing import known_title
from autoresearch.project.exchange.flat_files import (
    BENCHMARK,
    ENVIRONMENT_INI,
    data_of,
    environment_places,
    places_of,
)
from autoresearch.project.ini import Ini, ParameterValue, value_of
from autoresearch.project.learned import LEARNED
from autoresearch.project.modules import dotted
from autoresearch.project.runs.kept import LocalRun
from autoresearch.task.loading import MANIFEST
from autoresearch.task.needs import LOCK, LOOSE
from autoresearch.task.program import MAX_PROGRAM_FILES, check_file_name, join_files, source_digest, split_program

ENVIRONMENT = "environment"
BENCHMARK_EPISODES = 100
# What an agent of the search is trained for; a published run states its own.
TRAINING_EPISODES = 300
# The packages of an environment, beside those that an agent brings.
ENVIRONMENT_LOOSE, ENVIRONMENT_LOCK = "environment_packages.txt", "environment.txt"
_NOTHING = object()
_INSIDE = "python -m autoresearch.project.inside"
_TASK = """\
# The environment {name} as a task: programs are agents, and the number is what their learned state earns in it.
name = {name}
summary = {summary}
baseline = {baseline}

[metric]
name = "mean_reward"
direction = "maximize"
source = "evaluator"

[budget]
unit = "episodes"           # each run states how many it was trained for
amount = {episodes}.0

[limits]
seconds = 1800.0
memory_mib = 4096
disk_mib = 512
processes = 64
output_kib = 1024
program_kib = 256

[program]
command = "{inside} train"
edit = ["{ini}", "*.py", "*/*.py", "*/*/*.py", "*/*/*/*.py", "requirements.*"]

[evaluation]                # the environment and the program run in sandboxes of their own
command = "{inside} examine"
answers = "{inside} answer"
artifact = "{learned}"
fresh = true
tolerance = 1e-6            # beside the standard error of the mean reward

[harness]
{harness}
"""
_PYTHON = f"""
[python]                    # the packages that the environment needs besides those of a node
requirements = "{ENVIRONMENT_LOCK}"
base = true
"""
# The first program of every environment: what an agent is worth that learned nothing.
_BASELINE = {
    model.INI: """\
[Agent]
path = .
class_name = untrained:Untrained

[Policy.random]
path = .
class_name = untrained:Random
""",
    "untrained.py": '''\
"""Acts at random and learns nothing."""

from autoresearch import Agent, Policy


class Untrained(Agent):
    def train(self):
        pass


class Random(Policy):
    def decide(self, observation):
        space = self.environment.action_space
        if space is None:
            return 0
        return int(self.rng.integers(space.n)) if hasattr(space, "n") else space.sample()
''',
}


def project_of_run(project: model.Project, run: LocalRun) -> model.Project:
    """A project as it was at one of its runs: ``agent.ini`` and parameters of then, the code of now.

    Raises:
        UsageError: a file of the run is damaged.
    """
    ini = run.folder / model.INI
    was = model.project_of(model.load_ini(ini), project.folder / model.INI)
    return model.with_parameters(msgspec.structs.replace(was, ini=ini), file=run.folder / model.PARAMETERS)


def flat_program(project: model.Project, packages: Mapping[str, bytes] = MappingProxyType({})) -> str:
    """The program of a project, as one text: parameters stand in its ``agent.ini``, as they are in force.

    ``packages`` are the files of :func:`.package_files`, where its agent needs more than every node has.

    Raises:
        UsageError: a file is missing, two have one name, there are too many, one reads other files, or a value can't
            stand in the file.
    """
    components = [each for each in project.all() if each.type != ENVIRONMENT]
    places = places_of(components, project, environment_files(project).keys() - {ENVIRONMENT_INI})
    environment = environment_places(project.component(ENVIRONMENT), project.folder)
    present_data = set(data_of(environment, project.folder))
    ini = model.load_ini(project.ini)
    for section in list(ini.sections):
        if section.title.partition(".")[0].strip().lower() == ENVIRONMENT:
            ini.remove(section.title)
    contents: dict[str, bytes] = {}
    for component in components:
        contents |= {name: _content(component, path, project) for path, name in places[component.key].items()}
        if lacking := set(data_of(places[component.key], project.folder)) - present_data:
            raise UsageError(
                f"{component.key} names {min(lacking).name}, and of an agent only Python files are published",
                hint="write its content into a .py file, or keep it in state_dict()",
            )
        title = known_title(ini, component.type, component.name)
        for key in ("file_path", "root"):
            ini.remove(title, key)
        for key, text in _class_keys(component, places[component.key]).items():
            ini.set(title, key, text)
        for key, text in _texts(ini, component).items():
            present = ini.section(title)
            if present is None or key not in present.items or present.items[key].text != text:
                ini.set(title, key, text)
    files = {model.INI: ini.text.encode(), **dict(sorted({**contents, **packages}.items()))}
    if len(files) > MAX_PROGRAM_FILES:
        raise UsageError(
            f"the project has {len(files)} files without those of its environment",
            hint=f"at most {MAX_PROGRAM_FILES} can be published: autoresearch uninstall what it does not need",
        )
    return join_files({name: _text(name, content) for name, content in files.items()})


def environment_files(project: model.Project) -> dict[str, bytes]:
    """The files of a project's default environment by their plain names, and ``environment.ini``.

    Raises:
        NotFound: the project has no environment.
        UsageError: a file is missing, two have one name, there are too many, or a value can't stand in the file.
    """
    component = project.component(ENVIRONMENT)
    places = environment_places(component, project.folder)
    contents = {name: _content(component, path, project) for path, name in places.items()}
    for path in data_of(places, project.folder):
        name = (Path(next(places[each] for each in places if each.parent == path.parent)).parent / path.name).as_posix()
        check_file_name(name)
        if name in (MANIFEST, LOOSE, LOCK, ENVIRONMENT_LOOSE, ENVIRONMENT_LOCK, *contents):
            raise UsageError(f"{component.key} reads {path.name}, which can't be published", hint="rename that file")
        contents[name] = _content(component, path, project)
    lines = [f"[{ENVIRONMENT}.{component.name}]"]
    keys = _class_keys(component, places)
    lines += [f"{key} = {text}" for key, text in (("class_name", keys.pop("class_name")), *keys.items())]
    texts = _texts(model.load_ini(project.ini), component)
    lines += [f"{key} = {text}" for key, text in sorted(texts.items())]
    lines += ["", f"[{BENCHMARK}]", f"episodes = {BENCHMARK_EPISODES}"]
    contents[ENVIRONMENT_INI] = "".join(f"{line}\n" for line in lines).encode()
    if len(contents) > MAX_PROGRAM_FILES:
        raise UsageError(
            f"the environment {component.name} has {len(contents)} files",
            hint=f"at most {MAX_PROGRAM_FILES} are allowed",
        )
    return dict(sorted(contents.items()))


def _class_keys(component: model.Component, places: Mapping[Path, str]) -> dict[str, str]:
    """Where a component's class is, among files of these names: keys of its section."""
    name, inside = places[Path(component.file)], Path(component.file).relative_to(component.root).as_posix()
    folder = name.removesuffix(inside).strip("/") if name.endswith(inside) else ""
    module = dotted(Path(folder), Path(name)) or model.INIT_FILE.removesuffix(".py")
    keys = {"path": folder or ".", "class_name": f"{module}:{component.class_name}"}
    return keys | ({"root": folder} if folder and "source" not in component.pins else {})


def _content(component: model.Component, path: Path, project: model.Project) -> bytes:
    try:
        return model.read_code(path, project.folder)
    except OSError as error:
        hint = "copy the file there, or don't name it"
        raise UsageError(f"{component.key} names {path}: {error.strerror}", hint=hint) from None


def environment_task_files(
    project: model.Project, packages: Mapping[str, bytes] = MappingProxyType({})
) -> dict[str, bytes]:
    """The task folder of a project's environment, by file names. Its name is the environment's.

    ``packages`` are the files of :func:`.package_files`, where the environment needs more than every node has.

    Raises:
        NotFound, UsageError: those of :func:`environment_files`.
    """
    listed = dict(zip((ENVIRONMENT_LOOSE, ENVIRONMENT_LOCK), packages.values(), strict=True)) if packages else {}
    harness = environment_files(project) | listed
    if taken := harness.keys() & _BASELINE.keys():
        raise UsageError(f"the environment has a file {', '.join(taken)}, as the task's baseline", hint="rename it")
    name = project.component(ENVIRONMENT).name.lower()
    manifest = _TASK.format(
        name=json.dumps(name),
        summary=json.dumps(f"Agents in the environment {name}: mean reward over {BENCHMARK_EPISODES} episodes"),
        baseline=json.dumps(source_digest(join_files(_BASELINE)).hex()),
        episodes=TRAINING_EPISODES,
        inside=_INSIDE,
        learned=LEARNED,
        ini=model.INI,
        harness="\n".join(f'"{name}" = "{hashlib.sha256(content).hexdigest()}"' for name, content in harness.items()),
    )
    if packages:
        manifest += _PYTHON
    return {MANIFEST: manifest.encode(), **harness, **{name: text.encode() for name, text in _BASELINE.items()}}


def packages_asked(project: model.Project, required: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The lines of packages that not every node has, with the key of the component that asks for each, if it is known.

    ``required`` is what the project asks for, see :func:`.required_by`. An environment of Gymnasium may ask for more.
    """
    from autoresearch.project.components.finding import gym_packages
    from autoresearch.run.package_locks import every_node_has  # the command line starts without them

    environment, lines = project.component(ENVIRONMENT), dict.fromkeys(required)
    if not any(key == environment.key for _, key in lines):
        lines |= dict.fromkeys((line, environment.key) for line in gym_packages(environment))
    return {line: key for line, key in lines if not every_node_has(line)}


def used_components(program: str) -> dict[str, dict[str, str]]:
    """The components that a published project uses, as ``policy.q_table``, with their pins; none of another program.

    Of each type it is the default one. The environment is its task's and not among them.
    """
    try:
        text = split_program(program).get(model.INI)
        project = model.project_of(Ini(text, model.INI), Path(model.INI)) if text is not None else None
    except UsageError:
        return {}
    components = [project.component(kind) for kind in project.defaults] if project else []
    return {each.key: each.pins for each in components}


def default_policy(program: str) -> str:
    """The default policy of a published project, as ``policy.q_table``; empty where it has none."""
    return next((key for key in used_components(program) if key.startswith("policy.")), "")


def _texts(ini: Ini, component: model.Component) -> dict[str, str]:
    """The parameters that are in force as text: as it is written where that means the same."""
    section = ini.section(known_title(ini, component.type, component.name))
    written = section.items if section else {}
    return {
        key: written[key].text
        if key in written and _same(value_of(written[key].text), _value(setting))
        else _ini_text(component, key, setting)
        for key, setting in component.settings.items()
    }


def _ini_text(component: model.Component, key: str, setting: ParameterValue) -> str:
    """A parameter as text that is read as the same value. Raises UsageError where there is none."""
    if setting.plain or (isinstance(setting.value, str) and _is_plain(key, setting.value)):
        text = str(setting.value)
    else:
        try:
            text = json.dumps(setting.value)
        except (TypeError, ValueError):
            text = ""
        # A comment's beginning or a quote inside of a quoted text would end it.
        text = re.sub(r'\\\\|\\"|[#;]', lambda match: _ESCAPES.get(match[0], match[0]), text)
    if not _same(_read_back(key, text), _value(setting)):
        raise UsageError(
            f"{setting.origin}: the value of {component.key}: {key} can't stand in {model.INI}",
            hint="use numbers, text, lists and mappings of them",
        )
    return text


def _is_plain(key: str, text: str) -> bool:
    return _same(_read_back(key, text), text)


def _read_back(key: str, text: str) -> object:
    """What a text means as the value of a key; an object that equals nothing where it can't be one."""
    try:
        ini = Ini(f"[probe]\n{key} = {text}\n", model.INI)
    except UsageError:
        return _NOTHING
    is_one_line = len(ini.sections) == 1 and len(ini.text.splitlines()) == 2
    item = ini.sections[0].items.get(key)
    return value_of(item.text) if item is not None and is_one_line else _NOTHING


_ESCAPES = {'\\"': "\\u0022", "#": "\\u0023", ";": "\\u003b"}


def _value(setting: ParameterValue) -> object:
    return value_of(setting.value) if setting.plain else setting.value


def _same(value: object, other: object) -> bool:
    """Whether two values are equal and of one kind: 1 and true are not."""
    try:
        return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError):
        return False


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8", hint="save it as UTF-8") from None
