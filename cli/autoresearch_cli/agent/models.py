"""Answers about a project: its components, its runs, how far a run is; and what it installs.

Its Python packages are locked, agreed to, installed once. Other participants' components need a sandbox, or a person's
word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import typer

from autoresearch.ask.registry.choosing import Spec, resolve
from autoresearch.ask.registry.installing import checked_release
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.face.columns.column import short
from autoresearch.log.standing.answers import Answer
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import isolated_packages, locked_packages, note_locked, required
from autoresearch.project.components.trusting import ComponentOffer, Origin, Pythons
from autoresearch.project.model import AGENT, Project
from autoresearch.record.encoding import format_id
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import find_obstacle
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.services import Service
from autoresearch.task.needs import LOOSE, Package, lock_digest
from autoresearch.task.release import TYPE
from autoresearch.text import counted, one_line
from autoresearch_cli import home
from autoresearch_cli.acts.packages import can_ask, name_packages
from autoresearch_cli.local_log import fetch_blob, open_desk
from autoresearch_cli.rendering.output import say

if TYPE_CHECKING:
    from autoresearch.run.sandbox.layout import Interpreter


class ProjectComponent(Answer, frozen=True, kw_only=True):
    """One component. ``missing`` and ``error`` are what ``list --check`` found."""

    type: str
    name: str
    is_default: bool
    class_name: str
    file: str
    source: str = ""
    version: str = ""
    parameters: dict[str, object] = {}
    missing: list[str] = []
    error: str = ""


class ProjectRun(Answer, frozen=True, kw_only=True):
    """One run: ``mode`` is "train" or "bench", ``status`` "ok" or "stopped", ``curve`` mean rewards of equal parts.

    ``totals`` are sums over the run and its ancestors with its policy. ``started`` is in Unix milliseconds. ``sandbox``
    is the level of its sandbox, 0 for none; ``trusted`` are other participants' components that ran without one.
    """

    id: str
    mode: str
    status: str
    parent: str = ""
    started: int
    seconds: float
    seed: int
    metrics: dict[str, int | float]
    totals: dict[str, int]
    curve: list[float]
    components: list[str]
    policy_changed: bool = False
    sandbox: int = 0
    trusted: list[str] = []
    folder: str


class ProjectAnswer(Answer, frozen=True, kw_only=True):
    """A project: its components; with ``--runs`` its runs, the oldest first. ``head`` is where the next run goes on."""

    schema: str = "autoresearch.project/1"
    folder: str
    components: list[ProjectComponent]
    runs: list[ProjectRun] = []
    head: str = ""


class ProjectRunAnswer(Answer, frozen=True, kw_only=True):
    """A training or benchmark run that was kept."""

    schema: str = "autoresearch.project_run/1"
    run: ProjectRun


class ProjectFigures(Answer, frozen=True, kw_only=True):
    """How far a run is. ``recent_reward`` is the mean of the last 100 episodes."""

    schema: str = "autoresearch.project_figures/1"
    mode: str
    episodes: int
    asked_episodes: int
    steps: int
    seconds: float
    recent_reward: float | None = None


class ActedAnswer(Answer, frozen=True, kw_only=True):
    """What an actor played for the learner at ``learner``: the standard metrics of its episodes."""

    schema: str = "autoresearch.acted/1"
    learner: str
    metrics: dict[str, int | float]


class ServiceAnswer(Answer, frozen=True, kw_only=True):
    """A service that has begun, and again when it ends; ``run`` then keeps what a trainer has learned in it."""

    schema: str = "autoresearch.service/1"
    service: Service
    run: str = ""


class ServiceKeyAnswer(Answer, frozen=True, kw_only=True):
    """This node's key for services: the public key, in hexadecimal digits, and the file that holds the secret one."""

    schema: str = "autoresearch.service_key/1"
    public_key: str
    file: str


class SweepRow(Answer, frozen=True, kw_only=True):
    """One combination of a sweep: the parameters that were set, the run that trained, the one that measured."""

    parameters: dict[str, str]
    train: str
    bench: str
    mean_reward: float | None


class SweepAnswer(Answer, frozen=True, kw_only=True):
    """A sweep: its combinations, the best first. The next run goes on from the best."""

    schema: str = "autoresearch.sweep/1"
    rows: list[SweepRow] = msgspec.field(default_factory=list)


class GotAnswer(Answer, frozen=True, kw_only=True):
    """A published run as a folder. ``run`` is its id there; empty where it is a task's folder with its program.

    With `--reproduce` there is no folder, and ``reproduced`` is the value that this machine came to.
    """

    schema: str = "autoresearch.got/1"
    folder: str = ""
    id: str
    task: str
    value: float | None = None
    run: str = ""
    reproduced: float | None = None


def offer_from_log(
    kind: str,
    name: str,
    version: str,
    *,
    trust: bool,
    beside: Sequence[str] = (),
    isolated: bool = False,
    pinned: bytes | None = None,
) -> ComponentOffer | None:
    """The component that a name means among the releases of the log; None where there is none of this name.

    ``pinned`` is the release that a project names. The code of another participant runs in the sandbox, or with
    ``trust`` without one. Where no sandbox holds it is taken with ``trust`` alone. Its packages have to fit the lines
    ``beside``, which the project asks for besides; ``isolated``: it gets an environment of its own.

    Raises:
        AmbiguousName: several publishers have that name.
        Refused: it is another participant's and there is neither sandbox nor ``trust``, or its files are not what its
            record says.
        CannotRunHere: its requirements do not fit.
        NotFound: its files are on no node that answers.
    """
    with open_desk() as desk:
        log, blobs = desk.log, desk.blobs
        try:
            choice = resolve(log, kind, f"{name}=={version}" if version else name, pinned=pinned, me=desk.me)
        except NotFound:
            return None
        release = choice.release.row.id
        label = short(format_id(release))
        origin: Origin = "own" if choice.release.own else "trusted" if trust else "foreign"
        if origin == "foreign" and detect_level()[0] < Level.LANDLOCK:
            cause, remedy = find_obstacle()
            raise Refused(
                f"{kind} {name} ({label}) is another participant's, and there is no sandbox that holds here: {cause}",
                hint=f"{remedy}; or read it (autoresearch show {label}) and use --trust",
            )
        checked = checked_release(log, blobs, release, beside=() if isolated else beside, fetch=fetch_blob)
    for warning in choice.warnings:
        say(warning)
    about = checked.component
    if not about.metadata.class_name:
        raise UsageError(f"the release {label} names no class", hint="ask its publisher for class_name")
    if isolated and not checked.packages:
        raise UsageError(
            f"{about.name} asks for no Python packages, so it needs no environment of its own",
            hint=f"autoresearch install {kind} {name}",
        )
    if origin == "foreign":
        say(f"{about.name} is another participant's: it runs in the sandbox")
    return ComponentOffer(
        type=kind,
        name=about.name,
        class_name=about.metadata.class_name,
        files={file.path: file.content for file in checked.files},
        description=about.metadata.description or about.summary,
        pins={
            "source": "log",
            "release": format_id(release),
            "version": about.version,
            "commit": about.metadata.commit,
            "tree": about.metadata.tree,
        },
        origin=origin,
        requirements=list(checked.requirements),
        packages=list(checked.packages),
        isolated=isolated,
        needs=list(about.metadata.needs),
    )


def project_pythons(project: Project, *, allowed: bool = False) -> Pythons:
    """The Pythons with the packages that a project and its isolated components ask for.

    Packages are installed if they are not here, once a person agreed; ``allowed``: they have.

    Raises:
        UsageError: ``requirements.in`` is wrong, or was not locked since it was changed.
        PackagesNotAllowed: nobody can be asked here.
        Refused: the answer is no.
        CannotRunHere: a package can't be installed.
    """
    requirements, isolated = required(project), isolated_packages(project)
    main: Interpreter | None = None
    if requirements:
        from autoresearch.run.package_locks import has_packages

        if not has_packages(requirements):
            main = python_with(project.folder.name, locked_packages(project), allowed=allowed)
    own = {key: python_with(key, packages, allowed=allowed) for key, packages in isolated.items()}
    return Pythons(main, own)


def python_with(name: str, locked: list[Package], *, allowed: bool = False) -> Interpreter:
    """The Python with a locked list beside the node's packages; ``name`` is what needs it.

    Raises:
        PackagesNotAllowed, Refused, CannotRunHere: as :func:`project_pythons`.
    """
    from autoresearch.run.packages import ALLOWED, PackageSet

    packages = PackageSet(name, locked, base=True)
    place = home.paths().environments
    if not packages.is_installed(place):
        if not allowed:
            _ask(packages.name, packages.packages)
        agree(packages.packages)
        say(f"installing {counted(len(packages.packages), 'Python package')}")
    return packages.python(place, ALLOWED)


def lock_project(project: Project) -> None:
    """Lock the packages of ``requirements.in`` anew.

    Raises:
        UsageError: a line is no package.
        Refused: ``requirements.txt`` is a list of the person's own.
        CannotRunHere: no versions fit together, with the resolver's own words.
    """
    from autoresearch.run.package_locks import resolve_packages

    packages, _ = resolve_packages(required(project), what=f"{LOOSE} can't be locked")
    note_locked(project, packages)
    agree(packages)
    say(f"{LOOSE} is locked: {counted(len(packages), 'Python package')}")
    project_pythons(project)


def with_packages(offer: ComponentOffer, beside: Sequence[str]) -> ComponentOffer:
    """A component with the packages that fit what it asks for, and the lines ``beside`` that the project asks for.

    Raises:
        CannotRunHere: no versions fit together, with the resolver's own words; or there is no network.
    """
    if not offer.requirements or offer.packages:
        return offer
    from autoresearch.run.package_locks import resolve_packages

    say(f"{offer.name} needs {', '.join(offer.requirements)}")
    what = f"{offer.name} is not installed: its packages don't fit"
    packages, _ = resolve_packages([*beside, *offer.requirements], what=what)
    return msgspec.structs.replace(offer, packages=packages)


# So many components may be needed by one that is installed, and by those in turn.
NEEDED_MOST = 32


def with_needed(project: Project, offer: ComponentOffer) -> list[ComponentOffer]:
    """A component, then those that it needs and the project has not, and what these need. Nothing is written.

    The packages of each fit what the project and those before it ask for.

    Raises:
        UsageError: what it needs is no name, or too much.
        NotFound, AmbiguousName: nobody published what it needs, or several did.
        Refused: the project has another version of it, or its files are not what its record says.
        CannotRunHere: the packages don't fit together, with the resolver's own words.
    """
    beside = required(project, besides=offer.key)
    offers = [with_packages(offer, beside)]
    for each in offers:  # which grows
        beside += each.requirements
        for need in each.needs:
            kind, slash, text = need.partition("/")
            if not slash or not TYPE.fullmatch(kind) or kind == AGENT or len(offers) > NEEDED_MOST:
                reason = f"{each.key} needs “{one_line(need, 60)}”, which is no component that can be installed"
                raise UsageError(reason, hint="needs = policy/NAME==VERSION in its component.ini; ask its publisher")
            spec = Spec.parse(text)
            planned = {(other.type, other.name): other.pins for other in offers}
            present = {(other.type, other.name): other.pins for other in project.all()} | planned
            pins = present.get((kind, spec.name))
            if pins is None:
                say(f"{each.key} needs {kind} {text}")
                sources = [partial(offer_from_log, trust=False, beside=beside)]
                offers.append(with_packages(find_offer(kind, text, project.folder, sources=sources), beside))
            elif spec.version and pins.get("version") != spec.version:
                version = pins.get("version") or "of your own"
                reason = f"{each.key} needs {kind} {spec.name} {spec.version}, and this project has {version}"
                raise Refused(reason, hint=f"autoresearch install {kind} {spec.name}=={spec.version}, then this again")
    return offers


def agree(packages: Sequence[Package]) -> None:
    """Note that a person agreed to have a list of packages installed: they installed what asks for it."""
    from autoresearch.run.consent import allow

    allow(home.paths().allowed, lock_digest(list(packages)))


def _ask(name: str, packages: list[Package]) -> None:
    from autoresearch.run.consent import is_allowed
    from autoresearch.run.packages import ALL, PackagesNotAllowed

    if home.settings().work.allow_packages == ALL or is_allowed(home.paths().allowed, lock_digest(packages)):
        return
    name_packages(name, packages)
    if not can_ask():
        raise PackagesNotAllowed(name, len(packages), hint="autoresearch run --allow-packages")
    if not typer.confirm("Install them?", err=True):
        raise Refused("nothing was installed, and nothing runs", hint="install what the project needs by hand")
