"""What records mean: encoding, log, views, tasks, proposers, running. Knows no network, no HTTP, no tensors."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autoresearch.agent import AsyncResearchAgent, ResearchAgent

__version__ = "0.1.0"
__all__ = ["AsyncResearchAgent", "ResearchAgent"]


def __getattr__(name: str) -> object:
    """Load what a script asks for by name: commands start without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from autoresearch import agent

    found: object = getattr(agent, name)
    return found
