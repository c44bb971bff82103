"""Components of a project: ``init``, ``install``, ``uninstall``, ``use``, ``list``."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import Annotated

import typer

from autoresearch.errors import Refused, UsageError
from autoresearch.paths import typed_path
from autoresearch.project.components import installing
from autoresearch.project.components.finding import METHODS, find_offer, shipped_offers, unchecked_id
from autoresearch.project.components.installing import install as put
from autoresearch.project.components.installing import uninstall as take
from autoresearch.project.components.installing import use as choose
from autoresearch.project.components.trusting import ComponentOffer, own_code, reaches_of
from autoresearch.project.model import INI, Project, load_project
from autoresearch.project.runs.kept import kept_runs
from autoresearch.project.runs.running import check_project
from autoresearch.record.encoding import parse_id
from autoresearch.run.consent import allow_reaches, check_reaches, is_allowed, list_digest
from autoresearch.task.guessing import programs_in
from autoresearch.text import did_you_mean
from autoresearch_cli import home
from autoresearch_cli.agent import models
from autoresearch_cli.agent.projects import Type, print_project, project_answer, project_path, sandbox
from autoresearch_cli.catalogue import Answered, CommandApp, Json
from autoresearch_cli.rendering.lists import project_run_columns
from autoresearch_cli.rendering.output import print_json, print_list, say

app = CommandApp()
# So many files of a program are named before a project is made beside them.
PROGRAMS_NAMED = 3


@app.command(
    "init",
    ("autoresearch init", "a project in this folder"),
    ("autoresearch init walker", "in a new folder"),
    ("autoresearch run walker/agent.ini", "run it"),
    see="install, train, run, list",
)
def init(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder. Left out: this one.")] = "",
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Make it also where a program lies.")] = False,
) -> Answered:
    """Make a project: a folder with an agent that runs at once, a random policy in a corridor.

    For a program of your own, such as a train.py, it is: autoresearch task new DIR.
    """
    place, typed = typed_path(folder or ".").absolute(), shlex.quote(folder or ".")
    if not yes and not (place / INI).exists() and (programs := programs_in(place)):
        more = f" and {len(programs) - PROGRAMS_NAMED} more" if len(programs) > PROGRAMS_NAMED else ""
        raise Refused(
            f"a program lies in {place}: {', '.join(programs[:PROGRAMS_NAMED])}{more}. A project of components is an "
            "agent of its own",
            hint=f"to have the program improved: autoresearch task new {typed}; a project beside it: "
            f"autoresearch init {typed} --yes",
        )
    project = installing.make_project(place)
    allow_reaches(project.folder, [own_code(project), *reaches_of(project)], home.paths())
    answer = project_answer(project)
    yield answer
    print_project(answer)
    say(f"the project is in {project.folder}")
    say(f"→ autoresearch run{f' {folder}' if folder else ''}")


Name = Annotated[str, typer.Argument(metavar="NAME", help="The component's name.")]
Ini = Annotated[
    str, typer.Option("--file", "-f", metavar="INI", help="The project's agent.ini. Left out: this folder's.")
]


@app.command(
    "install",
    ("autoresearch install policy q_table", "a component that ships"),
    ("autoresearch install environment gym:CartPole-v1", "any environment of Gymnasium"),
    ("autoresearch install policy ./mine.py --class Mine", "a file of your own"),
    see="uninstall, use, list, init",
)
def install(  # noqa: PLR0913 - each is an option of the command
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="environment, policy, trainer, dataset …")] = "",
    reference: Annotated[str, typer.Argument(metavar="NAME", help="A name, ./a/file.py, gym:ID, openenv:URL.")] = "",
    *,
    class_name: Annotated[str, typer.Option("--class", metavar="[FILE:]CLASS", help="The class, for a file.")] = "",
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What to call it in this project.")] = "",
    default: Annotated[
        bool | None, typer.Option("--default/--no-default", help="Make it the default of its type, or not.")
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run another participant's component without a sandbox, by your choice.")
    ] = False,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Give it Python packages of its own, in a process of its own.")
    ] = False,
    ini: Ini = "",
    json: Json = False,
) -> None:
    """Install a component into the project. It becomes the default unless another default was chosen before.

    A name is looked for among the components that ship, then among those that participants published.

    Without TYPE and NAME it installs the components of agent.ini whose files are missing.
    """
    project = load_project(project_path(ini))
    if not kind:
        _restore(project, trust=trust, json=json)
        return
    if not reference:
        raise UsageError("the name of the component is missing", hint=f"autoresearch install {kind} NAME")
    beside = installing.required(
        project, besides=f"{kind.lower()}.{name or reference.partition('==')[0].rpartition('/')[2]}"
    )
    sources = [partial(models.offer_from_log, trust=trust, beside=beside, isolated=isolated)]
    offer = find_offer(kind, reference, project.folder, class_name=class_name, name=name, sources=sources)
    offer, *needed = models.with_needed(project, offer)
    _say_shadowed(project, offer)
    if reason := unchecked_id(offer):
        say(reason)
        say("→ autoresearch list --check")
    if isolated and not offer.isolated:
        raise UsageError(
            "--isolated is for components that participants published", hint="autoresearch search --kind component"
        )
    if default is None:
        default = _wants_default(project, offer)
    if not offer.files and any((each.type, each.name) == (offer.type, offer.name) for each in shipped_offers()):
        say(f"your {offer.type} {offer.name} takes the place of the one that ships")
    is_owners = is_allowed(home.paths().allowed, list_digest(project.folder, reaches_of(project)))
    changed = put(project, offer, default=default)
    for each in needed:
        changed = put(changed, each, default=False)
        say(f"installed {each.type} {each.name}, which {offer.type} {offer.name} needs")
    if is_owners or not reaches_of(project):
        allow_reaches(changed.folder, reaches_of(changed), home.paths())
    for each in (offer, *needed):
        if each.requirements:
            models.agree(each.packages)
    if any(each.requirements for each in (offer, *needed)):
        models.project_pythons(changed)
    _show(changed, json=json)
    is_default = changed.defaults.get(offer.type) == offer.name
    say(f"installed {offer.type} {offer.name}{', the default' if is_default else ''}")
    if offer.type not in {*METHODS, *project.components} and (usual := did_you_mean(offer.type, METHODS)):
        say(f"{offer.type} is a new type of this project: {usual}")
    following = "train" if "trainer" in changed.defaults else "run"
    say(f"→ autoresearch {following if is_default else f'use {offer.type} {offer.name}'}")


@app.command(
    "uninstall",
    ("autoresearch uninstall policy random", "out of this project"),
    ("autoresearch uninstall environment cartpole", "another type"),
    ("autoresearch uninstall policy mine -f ../walker/agent.ini", "out of another project"),
    see="install, use, list",
)
def uninstall(kind: Type, name: Name, *, ini: Ini = "", json: Json = False) -> None:
    """Take a component out of the project. Files of your own stay, and so do the runs that used it."""
    _show(take(load_project(project_path(ini)), kind.lower(), name), json=json)
    say(f"uninstalled {kind.lower()} {name}")


@app.command(
    "use",
    ("autoresearch use policy dqn", "train and run take this policy"),
    ("autoresearch use environment 2048", "another environment"),
    ("autoresearch list", "which are the defaults"),
    see="install, list, train",
)
def use(kind: Type, name: Name, *, ini: Ini = "", json: Json = False) -> None:
    """Make an installed component the default of its type."""
    _show(choose(load_project(project_path(ini)), kind.lower(), name), json=json)
    say(f"{kind.lower()} {name} is the default")


@app.command(
    "list",
    ("autoresearch list", "the components of this project"),
    ("autoresearch list --check", "what each lacks of its interface"),
    ("autoresearch list --runs", "the runs, the oldest first"),
    see="install, use, train, run",
)
def list_components(
    ini: Annotated[str, typer.Argument(metavar="INI", help="The project's agent.ini. Left out: this folder's.")] = "",
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Load each component, and compare it with its interface.")
    ] = False,
    runs: Annotated[bool, typer.Option("--runs", help="List the runs instead.")] = False,
    json: Json = False,
) -> None:
    """List the components of a project, or its runs."""
    path = project_path(ini)
    project = load_project(path)
    if check:
        check_reaches(project.folder, reaches_of(project), home.paths().allowed)
    answer = project_answer(
        project,
        checked=check_project(path, box=sandbox, pythons=models.project_pythons(project)) if check else (),
        runs=kept_runs(project) if runs else (),
    )
    if json:
        print_json(answer)
    elif runs:
        print_list(project_run_columns(answer.head), answer.runs)
        if not answer.runs:
            say("there are no runs yet → autoresearch train")
    else:
        print_project(answer)
    for each in answer.components:
        title = f"{each.type} {each.name}" if each.type != each.name else each.type
        if each.missing:
            say(f"{title} has no {', '.join(each.missing)}: it may not work with other components")
        if each.error:
            say(f"{title} can't be loaded: {each.error}")
    if check and not any(each.missing or each.error for each in answer.components):
        say("every component has its interface")
    if any(each.error for each in answer.components):
        raise typer.Exit(1)


def _restore(project: Project, *, trust: bool, json: bool) -> None:
    """Bring the files of installed components that are missing; of the log, the very releases that are pinned."""
    missing = installing.missing_components(project)
    for each in missing:
        source = each.pins["source"]
        reference = source if ":" in source else each.name
        if source == "log":  # one of this name may ship, which is not meant
            reference = f"{each.name}=={each.pins.get('version', '')}"
        pinned = parse_id(each.pins["release"]) if each.pins.get("release") else None
        beside = installing.required(project, besides=each.key)
        isolated = each.pins.get("isolated") == "yes"
        sources = [partial(models.offer_from_log, trust=trust, beside=beside, isolated=isolated, pinned=pinned)]
        offer = models.with_packages(
            find_offer(each.type, reference, project.folder, name=each.name, sources=sources), beside
        )
        project = put(project, offer, default=False)
    if installing.is_unlocked(project):
        models.lock_project(project)
    _show(project, json=json)
    say(f"installed {', '.join(each.key for each in missing)}" if missing else "nothing is missing")


def _wants_default(project: Project, offer: ComponentOffer) -> bool:
    """Whether a new component becomes the default: unless one was chosen; then a person at a terminal is asked."""
    present = project.defaults.get(offer.type, "")
    if not present or present == offer.name or not installing.has_chosen_default(project, offer.type):
        return True
    if not sys.stdin.isatty():
        say(f"the default {offer.type} stays {present}")
        return False
    return typer.confirm(f"Make {offer.name} the default {offer.type} instead of {present}?", default=True, err=True)


def _say_shadowed(project: Project, offer: ComponentOffer) -> None:
    """Say which of its files have the name of a module of Python's own, which an import of that name means."""
    place = project.folder / offer.path
    files = [*offer.files, *(each.name for each in place.glob("*.py") if offer.path)]
    for name in sorted(name for name in files if name.removesuffix(".py") in sys.stdlib_module_names):
        module = name.removesuffix(".py")
        say(f"{offer.key} has a file {name}: “import {module}” means Python's own; “from . import {module}” the file")


def _show(project: Project, *, json: bool) -> None:
    answer = project_answer(project)
    if json:
        print_json(answer)
    else:
        print_project(answer)
