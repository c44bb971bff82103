"""How well a run is walled in here: the ladder of isolation levels and its words."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """Isolation, from none to best. ``execute`` refuses below ``LANDLOCK`` what others wrote."""

    NONE = 0
    LANDLOCK = 1
    BUBBLEWRAP = 2

    @property
    def label(self) -> str:
        """Short text form: S0, S1 or S2."""
        return f"S{self.value}"

    @property
    def sentence(self) -> str:
        """What the level means, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Level.NONE: "no isolation: only your own code may run here",
    Level.LANDLOCK: "landlock and a system-call filter: no network, no foreign files, but processes share one view",
    Level.BUBBLEWRAP: "bubblewrap and a system-call filter: own file system, processes and network",
}
