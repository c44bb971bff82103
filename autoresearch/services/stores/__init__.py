"""Rows between actors and learners: where they wait, how they travel, and which of them a store has already."""

from autoresearch.services.stores.base import DataStoreBase, ledger_of, newer_than, source_of
from autoresearch.services.stores.columns import from_columns, to_columns
from autoresearch.services.stores.ledger import NONE_YET, Ledger
from autoresearch.services.stores.limits import SamplesPerInsert
from autoresearch.services.stores.queued import QueuedDataStore

__all__ = [
    "NONE_YET",
    "DataStoreBase",
    "Ledger",
    "QueuedDataStore",
    "SamplesPerInsert",
    "from_columns",
    "ledger_of",
    "newer_than",
    "source_of",
    "to_columns",
]
