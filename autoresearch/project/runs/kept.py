"""The runs of a project on this disk: a folder each, named by the hash of its ``run_data.yaml``. Never changed later.

A folder holds ``agent.ini``, ``parameters.yaml``, ``run_data.yaml`` and, in ``data``, what the components had learned.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import filelock
import msgspec
import yaml

from autoresearch.beneath import is_file_beneath, remove_beneath, resolve_beneath
from autoresearch.errors import AmbiguousId, NotFound, Refused, UsageError
from autoresearch.project.child.messages import Mode
from autoresearch.project.model import AGENT, HIDDEN, INI, PARAMETERS, Project, load_ini, project_of, set_default
from autoresearch.text import one_line

RUN_DATA = "run_data.yaml"
DATA = "data"
_ID_CHARACTERS = 12
_PARTIAL = ".partial-"
_HEAD = "head"
_DAMAGED = "move its folder away: autoresearch list --runs has the others"


class Totals(msgspec.Struct, frozen=True):
    """What the policy of a run saw in it and its ancestors. A run that changed what it had learned was training."""

    training_episodes: int = 0
    training_steps: int = 0
    benchmark_episodes: int = 0
    benchmark_steps: int = 0

    def plus(self, mode: Mode, metrics: dict[str, int | float]) -> Totals:
        """The sums after one more run. An episode of training that was cut counts, and so does learning without any."""
        episodes, steps = int(metrics.get("episodes", 0)), int(metrics.get("steps", 0))
        if mode == "train":
            episodes = max(episodes, bool(steps)) + int(metrics.get("offline_updates", 0))
            return msgspec.structs.replace(
                self, training_episodes=self.training_episodes + episodes, training_steps=self.training_steps + steps
            )
        return msgspec.structs.replace(
            self, benchmark_episodes=self.benchmark_episodes + episodes, benchmark_steps=self.benchmark_steps + steps
        )


class RunData(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as ``run_data.yaml`` has it.

    ``started`` is in Unix milliseconds, ``seconds`` how long it took, ``curve`` mean rewards of equal parts of it.
    ``components`` has the class and the digest of the code of each that was used, ``files`` digests (SHA-256) of the
    files beside this one. ``status`` is "ok", or "stopped" where a person ended a training run early. ``sandbox`` is
    the level of the sandbox that it ran in. ``trusted`` are other participants' components that ran without, by choice.
    ``record`` is the id of the published run that it is a copy of. ``policy`` is the default policy; empty in runs that
    an earlier version kept, whose ``totals`` may count other policies too.
    """

    version: int = 1
    mode: Mode
    status: str
    started: int
    seconds: float
    seed: int
    asked_episodes: int
    metrics: dict[str, int | float]
    totals: Totals
    curve: list[float]
    components: dict[str, dict[str, str]]
    files: dict[str, str]
    environment: dict[str, str]
    sandbox: int = 0
    trusted: list[str] = []
    parent: str = ""
    record: str = ""
    learns_on_run: bool = False
    policy_changed: bool = False
    policy: str = ""


class LocalRun(msgspec.Struct, frozen=True):
    """A run that is kept: its id, its folder, what is known of it."""

    id: str
    folder: Path
    data: RunData


def kept_runs(project: Project) -> list[LocalRun]:
    """All runs of a project, the oldest first; a folder that is damaged is left out."""
    runs: list[LocalRun] = []
    for folder in project.runs.glob("*/"):
        if not folder.name.startswith("."):
            with suppress(UsageError):
                runs.append(read_run(project, folder.name))
    return sorted(runs, key=lambda run: (run.data.started, run.id))


def read_run(project: Project, name: str) -> LocalRun:
    """The run with an id. Raises UsageError when its file is missing, damaged, or not the one that the id names."""
    inside = f"{HIDDEN}/runs/{name}"
    folder = project.folder / inside
    try:
        text = project.read(f"{inside}/{RUN_DATA}")
        data = msgspec.convert(yaml.safe_load(text), RunData)
        with suppress(FileNotFoundError):
            resolve_beneath(project.folder, f"{inside}/{DATA}")
    except (OSError, yaml.YAMLError, msgspec.ValidationError, ValueError, RecursionError) as error:
        raise UsageError(f"{folder / RUN_DATA} is damaged: {one_line(str(error), 80)}", hint=_DAMAGED) from None
    if run_id(text) != folder.name:
        raise UsageError(f"{folder / RUN_DATA} was changed: its hash is not {folder.name}", hint=_DAMAGED)
    return LocalRun(folder.name, folder, data)


def find_run(project: Project, name: str) -> LocalRun:
    """The run whose id begins with ``name``.

    Raises:
        NotFound: there is none.
        AmbiguousId: there are several.
    """
    matching = [run for run in kept_runs(project) if name and run.id.startswith(name.lower())]
    if not matching:
        raise NotFound(f"this project has no run {one_line(name, 40)}", hint="autoresearch list --runs")
    if len(matching) > 1:
        raise AmbiguousId(f"several runs begin with {one_line(name, 40)}", [run.id for run in matching])
    return matching[0]


def ancestors(project: Project, run: LocalRun) -> Iterator[LocalRun]:
    """The kept runs that a run went on from, the nearest first. They end where one was removed by hand."""
    above, seen = run, {run.id}
    while (name := above.data.parent) and name.isalnum() and name not in seen:
        seen.add(name)
        try:
            above = read_run(project, name)
        except UsageError:
            return
        yield above


def policy_of(data: RunData) -> str:
    """The policy of a run, as ``policy.q_table``; of an earlier version's run the only one that was used, if any."""
    used = [key for key in data.components if key.startswith("policy.")]
    return data.policy or (used[0] if len(used) == 1 else "")


def state_of(files: Mapping[str, str], policy: str) -> dict[str, str]:
    """What a policy and the agent had learned, as digests of its files, among those of a run."""
    return {name: digest for name, digest in files.items() if name.startswith(f"{DATA}/") and _is_of(name, policy)}


def _is_of(name: str, policy: str) -> bool:
    return Path(name).name.rpartition(".")[0] in (policy, AGENT)


def totals_after(
    project: Project, parent: LocalRun | None, policy: str, folder: Path, mode: Mode, metrics: dict[str, int | float]
) -> Totals:
    """The sums of a policy after a run in ``folder``: a run that changed what it had learned is training."""
    files = {f"{DATA}/{path.name}": path for path in (folder / DATA).glob("*")}
    state = {name: digest_of(path) for name, path in files.items() if _is_of(name, policy)}
    is_training = state != (state_of(parent.data.files, policy) if parent else {})
    before = _sums(project, parent, policy) if parent else Totals()
    return before.plus("train" if is_training else mode, metrics)


def added_totals(project: Project, run: LocalRun) -> Totals:
    """The sums over a run and its ancestors for its policy, added up anew from what each of them did.

    Of a run that was fetched the sums in its record are taken, and of the oldest whose ancestors were removed its own.
    """
    return _sums(project, run, policy_of(run.data))


def _sums(project: Project, run: LocalRun, policy: str) -> Totals:
    """What a policy saw in a run and its ancestors: those that have it, and all others that changed what it learned."""
    line = [run, *ancestors(project, run)]
    totals, state = Totals(), dict[str, str]()
    if line[-1].data.parent or line[-1].data.record:  # what was before is not here
        while line and policy_of(line[-1].data) != policy:
            state = state_of(line.pop().data.files, policy)
        if line:
            oldest = line.pop().data
            totals, state = oldest.totals, state_of(oldest.files, policy)
    for data in (each.data for each in reversed(line)):
        is_training = state_of(data.files, policy) != state
        if is_training or policy_of(data) == policy:
            totals = totals.plus("train" if is_training else data.mode, data.metrics)
        state = state_of(data.files, policy)
    return totals


def check_state(run: LocalRun) -> None:
    """Raises Refused where a file of what a run had learned is another one than it kept."""
    written = {name: digest for name, digest in run.data.files.items() if name.startswith(f"{DATA}/")}
    present = {f"{DATA}/{path.name}": path for path in (run.folder / DATA).glob("*")}
    for name in written.keys() | present.keys():
        if name not in present or digest_of(present[name]) != written.get(name):
            raise Refused(
                f"{run.folder / name} is not what run {run.id} had learned: the file was changed after it",
                hint="autoresearch agent reset begins anew; --from RUN takes what another run had learned",
            )


def head_run(project: Project) -> LocalRun | None:
    """The run that the next one goes on from; None in a new project and after ``reset``."""
    try:
        name = project.read(f"{HIDDEN}/{_HEAD}").decode().strip()
    except (OSError, UnicodeDecodeError):
        return None
    with suppress(UsageError):
        return read_run(project, name) if name.isalnum() else None
    return None


def set_head(project: Project, run: LocalRun | None) -> None:
    """Have the next run go on from this one; from none, begin anew."""
    if run is None:
        remove_beneath(project.folder, f"{HIDDEN}/{_HEAD}")
    else:
        project.write(f"{HIDDEN}/{_HEAD}", f"{run.id}\n")


def run_id(text: bytes) -> str:
    """The id of a run: the beginning of the hash of its ``run_data.yaml``."""
    return hashlib.sha256(text).hexdigest()[:_ID_CHARACTERS]


@contextmanager
def new_run_folder(project: Project) -> Iterator[Path]:
    """A folder for a run in hand. What is not kept by ``keep_run`` is removed, also what a killed one left.

    Raises:
        Refused: another command runs this project.
    """
    if not os.path.lexists(project.hidden / ".gitignore"):
        project.write(f"{HIDDEN}/.gitignore", "runs/\nhead\nlock\n*.txt\n")
    folder = project.to_write(f"{HIDDEN}/runs/{_PARTIAL}{os.getpid()}")
    lock = filelock.FileLock(project.to_write(f"{HIDDEN}/lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise Refused("another command trains or runs this project", hint="wait until it has ended") from None
    try:
        for left in folder.parent.glob(f"{_PARTIAL}*"):
            remove_beneath(left.parent, left.name, tree=True)
        (folder / DATA).mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()


def keep_run(project: Project, folder: Path, data: RunData, parameters: str) -> LocalRun:
    """Complete the folder of a run and make it the project's newest. Either the whole run is kept or nothing."""
    ini = load_ini(project.ini)
    for kind, name in project.defaults.items():
        if name != project_of(ini, project.ini).defaults.get(kind):  # it was chosen for this run
            set_default(ini, kind, name)
    (folder / INI).write_text(ini.text, "utf-8")
    (folder / PARAMETERS).write_text(parameters, "utf-8")
    files = {str(path.relative_to(folder)): digest_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    text = yaml.safe_dump(_plain(msgspec.structs.replace(data, files=files)), sort_keys=False).encode()
    (folder / RUN_DATA).write_bytes(text)
    for path in folder.rglob("*"):
        _flush(path)
    final = folder.with_name(run_id(text))
    folder.replace(final)
    _flush(final.parent)
    run = read_run(project, final.name)
    set_head(project, run)
    return run


def carry_state(parent: LocalRun | None, folder: Path) -> None:
    """Give a new run the state of its parent where it has none of its own: also that of components not used in it."""
    if parent is not None:
        carry_files(parent.folder / DATA, folder)


def carry_files(source: Path, folder: Path) -> None:
    """Give a folder of state files those of another one for components that have none of their own there."""
    own = {path.stem for path in folder.glob("*.json")}
    for path in source.glob("*"):
        if path.stem not in own and is_file_beneath(source, path.name):
            plain = resolve_beneath(source, path.name)
            try:
                os.link(plain, folder / path.name, follow_symlinks=False)
            except OSError:  # another disk, or one without links
                shutil.copyfile(plain, folder / path.name, follow_symlinks=False)


def digest_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _plain(data: RunData) -> Any:  # noqa: ANN401
    return msgspec.to_builtins(data)


def _flush(path: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
