"""The log: one SQLite file with all records and the tables computed from them.

It grows only, and is the same on every peer. Own records are signed and appended, those of others admitted and stored.
"""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.connection import Reader, open_database, refusals
from autoresearch.log.derive.driver import Driver
from autoresearch.log.derive.storing import rebuild
from autoresearch.log.tables.tables import Tables
from autoresearch.log.writer import Writer
from autoresearch.record.record import Network
from autoresearch.trust.roster import Trust

_WAL_BYTES = 64 << 20


class Log(Tables):
    """The log of one network in the file ``path``. Open it with :meth:`open`, as a context manager.

    Several processes may have it open; writers take turns. One instance may be used from several threads: its calls
    take turns as well.
    """

    def __init__(self, path: Path, network: Network, *, read_only: bool = False, trust: Trust | None = None) -> None:
        reader = Reader(open_database(path, rebuild, read_only=read_only))
        writer = Writer(reader, path, network, trust or Trust(), derivation=Driver(self), read_only=read_only)
        super().__init__(path, network, reader, writer)
        self._refuse_other_network(read_only=read_only)
        # While a node catches up, the same pages of the indexes change again and again: 64 MiB of each, not 2 and 4.
        page_size: int = self.reader.read("PRAGMA page_size", ())[0][0]
        for pragma in ("cache_size = -65536", f"wal_autocheckpoint = {_WAL_BYTES // page_size}"):
            self.reader.read(f"PRAGMA {pragma}", ())

    def _refuse_other_network(self, *, read_only: bool) -> None:
        """Raises Refused when the file is of another network; a new file becomes this one's."""
        meta = "SELECT value FROM meta WHERE key = 'network'"
        try:
            with refusals(self.path):
                if not read_only and not self.reader.read(meta, ()):
                    insert = "INSERT OR IGNORE INTO meta VALUES('network', ?)"
                    self.reader.connection.execute(insert, (self.network.id,))
                if self.reader.read(meta, ()) not in ([], [(self.network.id,)]):
                    raise Refused(
                        f"The log {self.path} belongs to another network.",
                        hint="its manifest was changed by hand: put it back, or join the other network:"
                        " autoresearch network join",
                    )
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, path: Path, network: Network, *, read_only: bool = False, trust: Trust | None = None) -> Log:
        """Open the log, creating it unless ``read_only``, which takes a missing file for an empty log.

        ``trust`` says whose verifications count in what is read from it; without it nobody's. It may be set anew.

        Raises Refused when a newer version or another network wrote the file, or it is no log.
        """
        return cls(path, network, read_only=read_only, trust=trust)

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.reader.close()
