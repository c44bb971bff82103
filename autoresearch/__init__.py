"""What records mean: encoding, log, views, tasks, proposers, running. Knows no network, no HTTP, no tensors."""

from importlib import import_module
from typing import TYPE_CHECKING

from autoresearch.version import __version__ as __version__

if TYPE_CHECKING:
    from autoresearch.ask.agent import AsyncResearchAgent, ResearchAgent
    from autoresearch.project import acr
    from autoresearch.project.interfaces import Agent, Dataset, Environment, Policy, Trainer

__all__ = [
    "Agent",
    "AsyncResearchAgent",
    "Dataset",
    "Environment",
    "Policy",
    "ResearchAgent",
    "Trainer",
    "acr",
]
_INTERFACES = ("Agent", "Dataset", "Environment", "Policy", "Trainer")


def __getattr__(name: str) -> object:
    """Load what a script asks for by name: commands start without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "acr":
        return import_module("autoresearch.project.acr")
    module = "autoresearch.project.interfaces" if name in _INTERFACES else "autoresearch.ask.agent"
    value: object = getattr(import_module(module), name)
    return value
