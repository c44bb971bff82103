"""The log on disk: records with their views in SQLite, blobs in files."""

from autoresearch.log.blobs import BlobStore
from autoresearch.log.lock import lock_device
from autoresearch.log.log import Log
from autoresearch.log.manifest import CHUNK_BYTES, Manifest, decode_manifest, encode_manifest
from autoresearch.log.scoring import TaskRules, mean, rank, task_rules
from autoresearch.log.verdicts import (
    ClaimRow,
    Fork,
    Head,
    HistoryRow,
    State,
    StoredRun,
    SubjectRow,
    TaskRow,
    Verdict,
    VerificationRow,
)

__all__ = [
    "CHUNK_BYTES",
    "BlobStore",
    "ClaimRow",
    "Fork",
    "Head",
    "HistoryRow",
    "Log",
    "Manifest",
    "State",
    "StoredRun",
    "SubjectRow",
    "TaskRow",
    "TaskRules",
    "Verdict",
    "VerificationRow",
    "decode_manifest",
    "encode_manifest",
    "lock_device",
    "mean",
    "rank",
    "task_rules",
]
