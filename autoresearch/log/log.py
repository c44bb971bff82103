"""The log: one SQLite file with all records and the tables computed from them. Grows only, the same on every peer."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from autoresearch.errors import Refused
from autoresearch.identity import Trust
from autoresearch.log.reader import Reader
from autoresearch.log.schema import is_up_to_date, open_database
from autoresearch.log.tables import (
    Changes,
    Claims,
    Devices,
    Entries,
    Evidence,
    Mentions,
    Programs,
    Records,
    Releases,
    Runs,
    Tasks,
    Texts,
    Verifications,
)
from autoresearch.log.writer import Writer
from autoresearch.records import Network


class Log:
    """The log of one network in the file ``path``. Open it with :meth:`open`, as a context manager.

    ``reader`` has the connection and the snapshots, ``writer`` all that changes the file. Each of the others answers
    from one group of tables.

    Several processes may have it open; writers take turns. One instance may be used from several threads: its calls
    take turns as well.
    """

    def __init__(self, path: Path, network: Network, *, read_only: bool = False, trust: Trust | None = None) -> None:
        self.path = path
        self.network = network
        self.reader = Reader(open_database(path, network, read_only=read_only))
        self.writer = Writer(self.reader, path, network, trust or Trust(), read_only=read_only)
        self.records = Records(self.reader)
        self.devices = Devices(self.reader, self.records)
        self.tasks = Tasks(self.reader)
        self.runs = Runs(self.reader)
        self.claims = Claims(self.reader)
        self.programs = Programs(self.reader)
        self.entries = Entries(self.reader)
        self.verifications = Verifications(self.reader, self.records)
        self.mentions = Mentions(self.reader)
        self.texts = Texts(self.reader)
        self.releases = Releases(self.reader)
        self.evidence = Evidence(self.reader)
        self.changes = Changes(self.reader, self.runs)
        if not is_up_to_date(self.reader.connection):
            if read_only:
                self.close()
                raise Refused(f"The log {path} has to be brought up to date first.", hint="autoresearch up, once")
            self.writer.rebuild()

    @classmethod
    def open(cls, path: Path, network: Network, *, read_only: bool = False, trust: Trust | None = None) -> Log:
        """Open the log, creating it unless ``read_only``, which takes a missing file for an empty log.

        ``trust`` says whose verifications count in what is read from it; without it nobody's. It may be set anew.

        Raises Refused when a newer version or another network wrote the file, or it is no log.
        """
        return cls(path, network, read_only=read_only, trust=trust)

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.reader.close()

    @property
    def trust(self) -> Trust:
        """Whose verifications count."""
        return self.writer.trust

    @trust.setter
    def trust(self, trust: Trust) -> None:
        self.writer.trust = trust
