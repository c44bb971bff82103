"""What a run is called where it has one line."""

from __future__ import annotations

from autoresearch.api import ProgramView, RunView

# What the search makes has no words of a person: its headline says more than its title.
SEARCH = "search"


def told(run: ProgramView | RunView) -> str:
    """The headline of a run of the search; of a person's or a model's run its own title."""
    return run.headline if run.proposer == SEARCH and run.headline else run.title
