"""What the tables of the log answer, each by one object. Withdrawn runs, tasks and claims are in none of these rows."""

from autoresearch.log.tables.changes import Changes
from autoresearch.log.tables.claims import Claims
from autoresearch.log.tables.devices import Devices
from autoresearch.log.tables.entries import Entries, FirstEntries
from autoresearch.log.tables.evidence import Evidence
from autoresearch.log.tables.mentions import Mentions
from autoresearch.log.tables.programs import Programs
from autoresearch.log.tables.records import Records
from autoresearch.log.tables.releases import Releases
from autoresearch.log.tables.runs import Runs
from autoresearch.log.tables.tasks import Tasks
from autoresearch.log.tables.texts import FoundText, TextKind, Texts
from autoresearch.log.tables.verifications import Verifications

__all__ = [
    "Changes",
    "Claims",
    "Devices",
    "Entries",
    "Evidence",
    "FirstEntries",
    "FoundText",
    "Mentions",
    "Programs",
    "Records",
    "Releases",
    "Runs",
    "Tasks",
    "TextKind",
    "Texts",
    "Verifications",
]
