"""Who verifies what, and what it takes to count. Pure."""

from autoresearch.verification import ecvrf

__all__ = ["ecvrf"]
