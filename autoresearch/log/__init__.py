"""The log on disk: records with their views in SQLite, blobs in files."""

from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.collecting import KeptBlob, excess, victims
from autoresearch.log.lock import lock_device
from autoresearch.log.log import Log
from autoresearch.log.manifest import CHUNK_BYTES, Manifest, decode_manifest, encode_manifest
from autoresearch.log.partial import PartialBlob
from autoresearch.log.projection import SIGHTINGS_MOST, task_of
from autoresearch.log.scoring import CountedRun, TaskRules, mean, pool, rank, task_rules
from autoresearch.log.verdicts import (
    Alike,
    ClaimRow,
    CommitmentRow,
    EntryRow,
    Extent,
    Fork,
    FraudRow,
    Head,
    HeardRow,
    HistoryRow,
    LikeRow,
    MeasuredRow,
    SightingRow,
    State,
    StoredRun,
    SubjectRow,
    TaskRow,
    Verdict,
    VerificationRow,
)

__all__ = [
    "CHUNK_BYTES",
    "SIGHTINGS_MOST",
    "Alike",
    "BlobStore",
    "ClaimRow",
    "CommitmentRow",
    "CountedRun",
    "EntryRow",
    "Extent",
    "Fork",
    "FraudRow",
    "Head",
    "HeardRow",
    "HistoryRow",
    "KeptBlob",
    "LikeRow",
    "Log",
    "Manifest",
    "MeasuredRow",
    "MissingBlob",
    "PartialBlob",
    "SightingRow",
    "State",
    "StoredRun",
    "SubjectRow",
    "TaskRow",
    "TaskRules",
    "Verdict",
    "VerificationRow",
    "decode_manifest",
    "encode_manifest",
    "excess",
    "lock_device",
    "mean",
    "pool",
    "rank",
    "task_of",
    "task_rules",
    "victims",
]
