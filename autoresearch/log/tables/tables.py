"""All tables of one log behind one connection, and the results that follow from them until they change."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from autoresearch.log.connection import Reader
from autoresearch.log.rows import Revision
from autoresearch.log.tables.beliefs import Beliefs
from autoresearch.log.tables.differences import Pairs
from autoresearch.log.tables.filters import Listing
from autoresearch.log.tables.hidden import Hidden
from autoresearch.log.tables.records import Claims, Devices, Records
from autoresearch.log.tables.runs import Entries, Programs, Runs, Tasks
from autoresearch.log.tables.standings import Credits, Standings
from autoresearch.log.tables.texts import Releases, Texts
from autoresearch.log.tables.todo import Todo
from autoresearch.log.tables.verifications import Evidence, Mentions, Verifications
from autoresearch.log.writer import Writer
from autoresearch.record.record import Network
from autoresearch.trust.roster import Trust


class Results:
    """What was computed from a log, until it changes: see :func:`autoresearch.log.standing.cache.cached`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bool, bool], tuple[object, dict[Hashable, object]]] = {}

    def at(self, revision: Revision, trust: Trust, *, lasting: bool, hides: bool) -> dict[Hashable, object]:
        """The results at a revision; the ``lasting`` ones follow from who is who and from tasks alone.

        ``hides``: what a person hides is left out.
        """
        state = (revision.people, revision.tasks, revision.drops, revision.failures) if lasting else revision
        place = (lasting, hides or lasting)
        results = self._kept.get(place)
        if results is None or results[0] != (state, trust):
            results = self._kept[place] = (state, trust), {}
        return results[1]


class Tables:
    """Questions to the tables of the log in the file ``path``, each answered by one group of them.

    ``reader`` has the connection and the snapshots, ``writer`` all that changes the file.
    """

    def __init__(self, path: Path, network: Network, reader: Reader, writer: Writer) -> None:
        self.path = path
        self.network = network
        self.reader = reader
        self.writer = writer
        self.records = Records(self.reader)
        self.devices = Devices(self.reader, self.records)
        self.tasks = Tasks(self.reader)
        self.runs = Runs(self.reader)
        self.claims = Claims(self.reader)
        self.pairs = Pairs(self.reader)
        self.programs = Programs(self.reader)
        self.entries = Entries(self.reader)
        self.verifications = Verifications(self.reader)
        self.standings = Standings(self.reader)
        self.credits = Credits(self.reader)
        self.beliefs = Beliefs(self.reader)
        self.hidden = Hidden(self.reader)
        self.listing = Listing(self.reader)
        self.mentions = Mentions(self.reader)
        self.texts = Texts(self.reader)
        self.releases = Releases(self.reader)
        self.evidence = Evidence(self.reader)
        self.todo = Todo(self.reader)
        self.results = Results()

    @property
    def trust(self) -> Trust:
        """Whose verifications count."""
        return self.writer.trust

    @trust.setter
    def trust(self, trust: Trust) -> None:
        self.writer.trust = trust
