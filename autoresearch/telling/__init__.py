"""How a run differs from its parent, told to people: chips, a headline, a reason. Pure."""

from autoresearch.telling.changes import changes, is_jump
from autoresearch.telling.sentences import because, headline

__all__ = ["because", "changes", "headline", "is_jump"]
