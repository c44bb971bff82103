"""Projects: agents made of components, trained and benchmarked on this machine. Knows no log and no network.

A project is a folder with an ``agent.ini``. ``make_project`` begins one; ``find_offer`` and ``install`` put components
into it; ``do_project_run`` trains or benchmarks it in a process of its own and keeps the run in its folder.
"""

from __future__ import annotations

from autoresearch.projects.beginning import make_project
from autoresearch.projects.finding import Source, find_offer
from autoresearch.projects.installing import has_chosen_default, install, missing_components, uninstall, use
from autoresearch.projects.messages import Checked, Figures, Mode
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
from autoresearch.projects.offers import Offer
from autoresearch.projects.parameters import with_parameters
from autoresearch.projects.running import RunStopped, check_project, do_project_run
from autoresearch.projects.runs import Run, RunData, Totals, find_run, head_run, kept_runs, read_run, set_head
from autoresearch.projects.shelf import shipped
from autoresearch.projects.spaces import Discrete

__all__ = [
    "AGENT",
    "HIDDEN",
    "INI",
    "PARAMETERS",
    "TYPES",
    "Checked",
    "Component",
    "Discrete",
    "Figures",
    "Mode",
    "Offer",
    "Project",
    "Run",
    "RunData",
    "RunStopped",
    "Source",
    "Totals",
    "check_project",
    "do_project_run",
    "find_offer",
    "find_run",
    "has_chosen_default",
    "head_run",
    "install",
    "is_project",
    "kept_runs",
    "load_project",
    "make_project",
    "missing_components",
    "read_run",
    "set_head",
    "shipped",
    "uninstall",
    "use",
    "with_parameters",
]
