"""Bringing a whole home to the format of this version, before a process that writes opens any of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from autoresearch.log.blobs import make_index
from autoresearch.log.connection import connect_read_only, is_of_now, open_database, refusals, transaction
from autoresearch.log.local import LocalFile, make_local
from autoresearch.log.settling import rebuild
from autoresearch.paths import NETWORKS, Paths


def bring_home(paths: Paths) -> None:
    """Check the format of all databases of a home, then make over those of before, in all its networks.

    The caller holds the home's device key. After a kill in the middle of it the next process goes on.

    Raises Refused when one was written by a newer version; nothing was changed then.
    """
    folders = {folder.name for root in (paths.data, paths.state) for folder in (root / NETWORKS).glob("*")}
    places = [paths.of_network(name) for name in ("", *sorted(folders))]
    databases = {place.local: make_local for place in places}
    databases |= {place.blobs / "index.sqlite": make_index for place in places}
    databases |= {place.log: rebuild for place in places}
    older = [file for file in databases if file.exists() and not _is_of_now(file)]
    for place in places:
        _copy_ledgers(place)
    for file in older:
        open_database(file, databases[file], read_only=False).close()


def _is_of_now(file: Path) -> bool:
    with refusals(file), closing(connect_read_only(file)) as connection:
        return is_of_now(connection, file)


def _copy_ledgers(place: Paths) -> None:
    """Move the rows of the small files that were before format 12 to ``local.sqlite``.

    It goes at the next change of the format, with its test.
    """
    calls = "model_call(rowid, time_ms, proposer, failure, tokens, cost, seconds, retry_ms) SELECT rowid, *"
    mails = {"pending": "challenge SELECT *", "act": "act SELECT *", "barred": "barred SELECT *"}
    files = {"choices": {"choice": "choice SELECT *"}, "proposers": {"asked": calls}, "attestor": mails}
    for name, tables in files.items():
        file = place.local.with_name(f"{name}.sqlite")
        if not file.exists():
            continue
        with refusals(file), LocalFile(place.local) as local:
            local.connection.execute("ATTACH ? AS old", (str(file),))
            there = {row[0] for row in local.connection.execute("SELECT name FROM old.sqlite_master")}
            with transaction(local.connection, durable=True):
                for table in tables.keys() & there:
                    # A second time, after a kill, it changes nothing.
                    local.connection.execute(f"INSERT OR IGNORE INTO main.{tables[table]} FROM old.{table}")
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
