"""A component of one file."""


class Corridor:
    """Walk to its end."""
