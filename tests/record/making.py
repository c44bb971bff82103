"""Records for tests: keys from small numbers, runs with few fields, a network with small quotas."""

import hashlib

import msgspec

from autoresearch.judging.states import commitment_digest
from autoresearch.record.encoding import encode
from autoresearch.record.kinds import BlobRef, Commitment, Run, Task
from autoresearch.record.record import Network, seal
from autoresearch.task.model import seed_for
from autoresearch.trust.keys import KeyPair

NOW_MS = 1_800_000_000_000
NETWORK = Network(name="test")
DEFINITION = {
    "name": "grammar",
    "metric": {"name": "val_bpb", "direction": "minimize", "noise": 0.02},
    "budget": {"unit": "work", "amount": 1e12},
}
SALT = b"s" * 32
BLOB = BlobRef(sha256=b"s" * 32, size=10)


def digest_of(definition=None):
    return hashlib.sha256(encode(definition or DEFINITION)).digest()


def key(number):
    return KeyPair.from_seed(number.to_bytes(32, "big"))


def run_body(value=1.0, *, source=b"source", **fields):
    run_fields = {"task": digest_of(), "status": "ok", "source": BLOB, "budget": 1e12} | fields
    run_fields.setdefault("source_digest", hashlib.sha256(source).digest())
    run_fields.setdefault(
        "seed", seed_for(run_fields["task"], run_fields["source_digest"], run_fields.get("replicate", 0))
    )
    return Run(value=value, **run_fields)


def task_body(definition=None):
    contents = definition or DEFINITION
    return Task(
        digest=digest_of(contents), name="grammar", definition=contents, baseline=BLOB, harness={"prepare.py": BLOB}
    )


def commitment(who, body):
    """What a device says before it reveals a verification."""
    digest = commitment_digest(who.public, SALT, msgspec.to_builtins(body, builtin_types=(bytes,)))
    return Commitment(run=body.run, stage=body.stage, round=body.round, proof=body.proof, digest=digest)


def opened(body):
    """The verification that opens it; it has to link it."""
    return msgspec.structs.replace(body, salt=SALT)


def sealed(author, body, *, kind="run", seq=1, prev=None, time_ms=NOW_MS, links=(), network=NETWORK):
    before = prev if prev is not None else (b"" if seq == 1 else b"p" * 32)
    return seal(author, network, kind, body, seq=seq, prev=before, time_ms=time_ms, links=tuple(links))


def pairs(records):
    return [(record.raw, record.signature) for record in records]
