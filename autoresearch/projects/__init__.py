"""Projects: agents made of components, trained and benchmarked on this machine. Knows no log and no network.

A project is a folder with an ``agent.ini``. ``make_project`` begins one; ``find_offer`` and ``install`` put components
into it; ``do_project_run`` trains or benchmarks it in a process of its own and keeps the run in its folder.
"""

from __future__ import annotations

from autoresearch.projects.beginning import make_project
from autoresearch.projects.components.finding import Source, find_offer
from autoresearch.projects.components.installing import has_chosen_default, install, missing_components, uninstall, use
from autoresearch.projects.components.offers import Offer, Origin
from autoresearch.projects.components.pythons import Pythons
from autoresearch.projects.components.requirements import (
    LOCK,
    LOOSE,
    is_unlocked,
    isolated_packages,
    locked_packages,
    note_locked,
    package_files,
    required,
    required_by,
)
from autoresearch.projects.components.shelf import shipped_offers
from autoresearch.projects.components.trusting import foreign_components, is_fetched, mark_fetched
from autoresearch.projects.exchange.fetching import keep_fetched, write_project
from autoresearch.projects.exchange.learned import LEARNED, DamagedState, pack_learned, unpack_learned
from autoresearch.projects.exchange.published import published_ancestors, record_of, remember_published
from autoresearch.projects.exchange.publishing import (
    BENCHMARK_EPISODES,
    environment_files,
    environment_task_files,
    flat_program,
    is_environment_task,
    packages_asked,
    project_of_run,
    used_components,
)
from autoresearch.projects.model import (
    AGENT,
    HIDDEN,
    INI,
    PARAMETERS,
    TYPES,
    Component,
    Project,
    is_project,
    load_project,
)
from autoresearch.projects.own_process.messages import Checked, Figures, Mode
from autoresearch.projects.parameters import with_parameters
from autoresearch.projects.runs.boxed import Box
from autoresearch.projects.runs.fleet import train_with_actors
from autoresearch.projects.runs.interrupting import RunStopped
from autoresearch.projects.runs.joining import Acted, act_for_learner
from autoresearch.projects.runs.kept import (
    DATA,
    Run,
    RunData,
    Totals,
    ancestors,
    find_run,
    head_run,
    kept_runs,
    read_run,
    set_head,
)
from autoresearch.projects.runs.running import check_project, do_project_run
from autoresearch.projects.runs.serving import LOOPBACK, ServiceEnded, serve_component
from autoresearch.projects.spaces import Discrete

__all__ = [
    "AGENT",
    "BENCHMARK_EPISODES",
    "DATA",
    "HIDDEN",
    "INI",
    "LEARNED",
    "LOCK",
    "LOOPBACK",
    "LOOSE",
    "PARAMETERS",
    "TYPES",
    "Acted",
    "Box",
    "Checked",
    "Component",
    "DamagedState",
    "Discrete",
    "Figures",
    "Mode",
    "Offer",
    "Origin",
    "Project",
    "Pythons",
    "Run",
    "RunData",
    "RunStopped",
    "ServiceEnded",
    "Source",
    "Totals",
    "act_for_learner",
    "ancestors",
    "check_project",
    "do_project_run",
    "environment_files",
    "environment_task_files",
    "find_offer",
    "find_run",
    "flat_program",
    "foreign_components",
    "has_chosen_default",
    "head_run",
    "install",
    "is_environment_task",
    "is_fetched",
    "is_project",
    "is_unlocked",
    "isolated_packages",
    "keep_fetched",
    "kept_runs",
    "load_project",
    "locked_packages",
    "make_project",
    "mark_fetched",
    "missing_components",
    "note_locked",
    "pack_learned",
    "package_files",
    "packages_asked",
    "project_of_run",
    "published_ancestors",
    "read_run",
    "record_of",
    "remember_published",
    "required",
    "required_by",
    "serve_component",
    "set_head",
    "shipped_offers",
    "train_with_actors",
    "uninstall",
    "unpack_learned",
    "use",
    "used_components",
    "with_parameters",
    "write_project",
]
