"""A published run of a project as a folder of this machine: the agent, its parameters, what it had learned.

Also which published runs used a component, by the programs of their agents, as far as these are on this machine.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from autoresearch.ask.desk import Desk
from autoresearch.ask.lookup import task_of
from autoresearch.ask.records import UsedComponent
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.ask.runs.boards import MOST_ROWS, top_answer
from autoresearch.errors import Refused, UsageError
from autoresearch.paths import put_folder
from autoresearch.project import model
from autoresearch.project.components.finding import GYM_CLASS, gym_offer, shipped_offers
from autoresearch.project.components.installing import COMPONENTS, known_title
from autoresearch.project.components.trusting import mark_fetched
from autoresearch.project.exchange.flat_files import BENCHMARK, ENVIRONMENT_INI
from autoresearch.project.exchange.publishing import ENVIRONMENT, ENVIRONMENT_LOCK, ENVIRONMENT_LOOSE, used_components
from autoresearch.project.ini import Ini, value_of
from autoresearch.project.learned import unpack_learned
from autoresearch.project.modules import code_digest, files_of
from autoresearch.project.runs.kept import DATA, LocalRun, RunData, Totals, head_run, keep_run, new_run_folder
from autoresearch.propose.mind.recall import text_of
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.record.kinds import Run as RunBody
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.record.record import Record
from autoresearch.run.experiment import EVALUATION_SEED
from autoresearch.task.folder_state import write_files
from autoresearch.task.folders import is_taken
from autoresearch.task.needs import LOCK, LOOSE
from autoresearch.task.program import check_file_names, split_program
from autoresearch.text import one_line


def write_project(program: str, harness: Mapping[str, bytes], folder: Path) -> model.Project:
    """Write a published project into an empty folder: what was installed lies where ``install`` puts it.

    ``harness`` are the fixed files of its task, by name. Returns the project.

    Raises:
        UsageError: the program is no project, or a component of it names a file that is not there.
    """
    files = {name: text.encode() for name, text in split_program(program).items()}
    # What the agent brings a list of has the environment's packages, too.
    lists = {LOOSE: ENVIRONMENT_LOOSE, LOCK: ENVIRONMENT_LOCK}
    files |= {name: harness[of] for name, of in lists.items() if of in harness and LOCK not in files}
    harness = {name: content for name, content in harness.items() if name not in lists.values()}
    if model.INI not in files or ENVIRONMENT_INI not in harness:
        raise UsageError("this is no project: no agent.ini, or no environment", hint="autoresearch task get TASK")
    if both := files.keys() & harness.keys():
        raise UsageError(f"program and task both have {one_line(', '.join(sorted(both)), 80)}", hint="get another run")
    files |= harness
    check_file_names(files)
    folder.mkdir(parents=True, exist_ok=True)
    write_files(folder, files)
    ini = _decoded(files[model.INI], model.INI)
    agent = model.project_of(ini, folder / model.INI)
    world = model.project_of(
        _decoded(harness[ENVIRONMENT_INI], ENVIRONMENT_INI), folder / model.INI, besides=frozenset((BENCHMARK,))
    )
    environment = world.component(ENVIRONMENT)
    for component in (*agent.all(), environment):
        if component.type == ENVIRONMENT and component is not environment:
            raise UsageError("the program names an environment of its own", hint="its task's is the one that counts")
        # A component's file must be among those that were fetched.
        file, inside = Path(component.file), (component.file, component.root)
        lies_elsewhere = any(not Path(path).resolve().is_relative_to(folder.resolve()) for path in inside)
        if lies_elsewhere or not file.is_file():
            sentence = f"{component.key} names a file that was not published: {one_line(component.file, 80)}"
            raise UsageError(sentence, hint="get another run")
    _add_environment(ini, environment, harness)
    (folder / ENVIRONMENT_INI).unlink()
    (folder / model.INI).write_text(ini.text, "utf-8")
    installed = [each for each in model.load_project(folder).all() if each.pins.get("source")]
    moved = [path for component in installed for path in _move(ini, component, folder)]
    (folder / model.INI).write_text(ini.text, "utf-8")
    project = model.load_project(folder)
    _remove_unused(project, installed, moved)
    return project


def keep_fetched(project: model.Project, data: RunData, learned: Path | None) -> LocalRun:
    """Keep a published run as the newest of a project that was just written, with what it had ``learned`` (packed).

    ``data`` is completed by the project's components.

    Raises:
        DamagedState: the file holds no learned state.
    """
    effective = model.with_parameters(project)
    components = {
        each.key: {"class": each.class_name, "sha256": code_digest(each, effective), **each.pins}
        for each in effective.all()
    }
    with new_run_folder(project) as folder:
        if learned is not None:
            unpack_learned(learned, folder / DATA)
        policy = f"policy.{effective.defaults['policy']}" if "policy" in effective.defaults else ""
        whole = msgspec.structs.replace(data, components=components, policy=policy)
        return keep_run(project, folder, whole, model.parameters_text(effective.all()))


def _add_environment(ini: Ini, environment: model.Component, harness: Mapping[str, bytes]) -> None:
    """The environment's section, with where it is known to come from."""
    title = model.section_title(ENVIRONMENT, environment.name)
    ini.insert_section(title)
    for key, value in {**_known_pins(environment, harness), **environment.pins}.items():
        ini.set(title, key, value)
    for key, setting in environment.settings.items():
        ini.set(title, key, setting.value)


def _known_pins(environment: model.Component, harness: Mapping[str, bytes]) -> dict[str, str]:
    """The pins of an environment that ships, or is Gymnasium's: a task has the files alone."""
    code, class_name = Path(environment.file).name, f"{Path(environment.file).stem}:{environment.class_name}"
    gym_id = environment.settings.get("id")
    offers = [each for each in shipped_offers() if each.type == ENVIRONMENT]
    if class_name == GYM_CLASS and gym_id is not None:
        offers = [gym_offer(str(value_of(gym_id.value)))]
    for offer in offers:
        if offer.class_name == class_name and offer.files.get(code) == harness.get(code):
            return offer.pins
    return {}


def _move(ini: Ini, component: model.Component, folder: Path) -> list[Path]:
    """Copy the files of an installed component to where ``install`` puts them, and name that place. Returns them."""
    path, files = f"{model.HIDDEN}/{COMPONENTS}/{component.type}/{component.name}", list(files_of(component, folder))
    for file in files:
        name = file.relative_to(component.root).as_posix()
        write_files(folder, {f"{path}/{name}": model.read_code(file, folder)})
    title = known_title(ini, component.type, component.name)
    ini.remove(title, "root")
    ini.set(title, "path", path)
    return files


def _remove_unused(project: model.Project, installed: list[model.Component], moved: list[Path]) -> None:
    """Remove from the project's folder what only installed components need."""
    own = {each.key for each in installed}
    needed = {file for each in project.all() if each.key not in own for file in files_of(each, project.folder)}
    for file in set(moved) - needed:
        file.unlink(missing_ok=True)
        for above in itertools.takewhile(lambda each: each != project.folder, file.parents):
            with suppress(OSError):  # others are in it
                above.rmdir()


def _decoded(content: bytes, name: str) -> Ini:
    try:
        return Ini(content.decode("utf-8"), name)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8", hint="get another run") from None


_SEED = "training_seed"


def write_run(
    record: Record, program: str, harness: Mapping[str, bytes], learned: Path | None, folder: Path, *, own: bool
) -> LocalRun:
    """Write a run's project as a new folder, which appears whole or not; its newest run is the published one.

    ``learned`` is the file with what it had learned, None where none was kept. What is not ``own`` is marked as another
    participant's: it runs in the sandbox.

    Raises:
        Refused: the folder exists and is not empty.
        UsageError: the program is no project.
        DamagedState: the file holds no learned state.
    """
    body = record.body
    assert isinstance(body, RunBody)
    if is_taken(folder):
        raise Refused(f"{folder} exists already", hint="give a new folder: autoresearch get RUN DIR")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        project = write_project(program, harness, temporary)
        keep_fetched(project, _run_data(record, body, has_learned=learned is not None), learned)
        if not own:
            mark_fetched(project, format_id(record.id))
        put_folder(temporary, folder)
    except OSError as error:
        raise UsageError(f"{folder} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    run = head_run(model.load_project(folder))
    assert run is not None, "it was just kept"
    return run


def _run_data(record: Record, body: RunBody, *, has_learned: bool) -> RunData:
    """What a record says of its run, as a project keeps it. The run of a program is one that trained for its budget."""
    names = set(Totals.__struct_fields__)
    totals = {name: int(number) for name, number in body.metrics.items() if name in names and number >= 0}
    metrics = {
        name: int(number) if name in ("episodes", "steps") else number
        for name, number in body.metrics.items()
        if name not in {*names, _SEED, EVALUATION_SEED}
    }
    is_program = body.mode == "experiment"
    return RunData(
        mode="train" if body.mode == "experiment" else body.mode,
        status="ok",
        started=record.time,
        seconds=body.duration_ms / 1000,
        seed=int(body.metrics.get(_SEED, body.seed if is_program else 0)),
        asked_episodes=int(metrics.get("episodes", 0)),
        metrics=metrics,
        totals=msgspec.convert({"training_episodes": int(body.budget), **totals}, Totals) if has_learned else Totals(),
        curve=body.curve,
        components={},
        files={},
        environment=body.environment,
        sandbox=body.sandbox,
        record=format_id(record.id),
    )


def component_key(text: str) -> str:
    """What ``policy/q_table`` means in a project: ``policy.q_table``. Raises UsageError where it is no such name."""
    kind, slash, name = text.partition("/")
    if not slash or not kind.isidentifier() or not name:
        raise UsageError(f"“{one_line(text, 60)}” names no component", hint="--component policy/q_table")
    return f"{kind.lower()}.{name}"


def boards_with(desk: Desk, uses: Callable[[Mapping[str, Mapping[str, str]]], bool]) -> tuple[list[TopAnswer], int]:
    """The leaderboards of all environments that have agents with such components, and their rows alone.

    ``uses`` is asked about the components of each agent, with their pins. The number is that of agents whose programs
    are not on this machine.
    """
    boards, unknown = [], 0
    for digest in dict.fromkeys(row.digest for row in desk.log.tasks.all(visible=True)):
        rules, task = desk.log.tasks.rules(digest), task_of(desk.log, digest)
        if rules is None or not rules.any_budget or task is None:
            continue
        board = top_answer(desk.log, task, limit=MOST_ROWS, author=desk.me, archived=desk.archived())
        programs = {row.id: text_of(desk.log, desk.blobs, parse_id(row.id)) for row in board.programs}
        unknown += sum(program is None for program in programs.values())
        rows = [row for row in board.programs if uses(used_components(programs[row.id] or ""))]
        if rows:
            boards.append(msgspec.structs.replace(board, programs=rows))
    return boards, unknown


def components_of_run(desk: Desk, run: bytes) -> list[UsedComponent]:
    """What the agent of a published run uses, its environment first; nothing where its files are not here."""
    body = desk.log.records.get(run).body
    task = desk.log.tasks.find(body.task) if isinstance(body, RunBody) else None
    task_body = desk.log.records.get(task.id).body if task else None
    if not isinstance(task_body, TaskBody) or ENVIRONMENT_INI not in task_body.harness:
        return []
    digests = {name: blob.sha256 for name, blob in task_body.harness.items()}
    harness = {name: desk.blobs.get(digest) for name, digest in digests.items() if desk.blobs.has(digest)}
    used = used_components(text_of(desk.log, desk.blobs, run) or "")
    if ENVIRONMENT_INI in harness:
        ini = _decoded(harness[ENVIRONMENT_INI], ENVIRONMENT_INI)
        environment = model.project_of(ini, Path(ENVIRONMENT_INI), besides=frozenset((BENCHMARK,))).component(
            ENVIRONMENT
        )
        used = {environment.key: _known_pins(environment, harness), **used}
    return [
        UsedComponent(
            type=kind, name=name or kind, **{each: pins.get(each, "") for each in ("version", "source", "release")}
        )
        for (kind, _, name), pins in ((key.partition("."), pins) for key, pins in used.items())
    ]
