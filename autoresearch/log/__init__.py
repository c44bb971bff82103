"""The log on disk: records with their views in SQLite, blobs in files."""

from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.collecting import KeptBlob, excess, victims
from autoresearch.log.durability import sync_folder
from autoresearch.log.lock import lock_device
from autoresearch.log.log import Log
from autoresearch.log.manifest import CHUNK_BYTES, Manifest, decode_manifest, encode_manifest
from autoresearch.log.models import (
    Alike,
    Bound,
    ClaimRow,
    CommitmentRow,
    EntryRow,
    Fork,
    FraudRow,
    Head,
    HeardRow,
    HistoryRow,
    LikeRow,
    MeasuredRow,
    MentionRow,
    ProgramRow,
    ReleaseRow,
    Revision,
    RunColumns,
    Said,
    SignedRun,
    State,
    StoredRun,
    TaskRow,
    Verdict,
    VerificationRow,
    YankRow,
)
from autoresearch.log.partial import PartialBlob
from autoresearch.log.projection import MENTIONS_MOST, task_of
from autoresearch.log.reader import in_parts
from autoresearch.log.scoring import CountedRun, TaskRules, mean, pool, rank, task_rules
from autoresearch.log.tables import FirstEntries, FoundText, TextKind
from autoresearch.log.unattested import NAMING

__all__ = [
    "CHUNK_BYTES",
    "MENTIONS_MOST",
    "NAMING",
    "Alike",
    "BlobStore",
    "Bound",
    "ClaimRow",
    "CommitmentRow",
    "CountedRun",
    "EntryRow",
    "FirstEntries",
    "Fork",
    "FoundText",
    "FraudRow",
    "Head",
    "HeardRow",
    "HistoryRow",
    "KeptBlob",
    "LikeRow",
    "Log",
    "Manifest",
    "MeasuredRow",
    "MentionRow",
    "MissingBlob",
    "PartialBlob",
    "ProgramRow",
    "ReleaseRow",
    "Revision",
    "RunColumns",
    "Said",
    "SignedRun",
    "State",
    "StoredRun",
    "TaskRow",
    "TaskRules",
    "TextKind",
    "Verdict",
    "VerificationRow",
    "YankRow",
    "decode_manifest",
    "encode_manifest",
    "excess",
    "in_parts",
    "lock_device",
    "mean",
    "pool",
    "rank",
    "sync_folder",
    "task_of",
    "task_rules",
    "victims",
]
