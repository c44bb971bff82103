"""Writes the test vectors of docs/protocol.md: ``python -m tests.vectors.making``. Other programs read them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from autoresearch.log.log import Log
from autoresearch.record.encoding import encode
from autoresearch.record.record import DEFAULT_NETWORK, EARLY
from autoresearch.trust.manifest import DEFAULT_MANIFEST, NetworkManifest, constants_of, unusual_constants
from autoresearch.trust.manifest_file import encode_manifest
from tests.record.making import NOW_MS, pairs
from tests.trust.networks.making import TEA
from tests.vectors import admission, exchange, retention, tasks

FOLDER = Path(__file__).parent
NETWORKS = [
    DEFAULT_MANIFEST,
    TEA,
    NetworkManifest(replace(TEA.network, verify_quorum=2, unattested=100)),
    TEA.with_founder(b"f" * 32),
]


def admissions() -> dict[str, object]:
    return {
        "network": DEFAULT_NETWORK.id.hex(),
        "clock_ms": NOW_MS,
        "cases": [
            {"name": name, "verdict": verdict, "record": raw.hex(), "signature": signature.hex()}
            for name, raw, signature, verdict in admission.cases()
        ],
    }


def retentions(folder: Path) -> dict[str, object]:
    cases = []
    for number, case in enumerate(retention.cases()):
        with Log.open(folder / f"{number}.sqlite", case.network, trust=case.trust) as log:
            log.writer.ingest(pairs(case.records), now_ms=NOW_MS + 10**9)
            retained = {record_id for _, record_id in log.records.iter_keys()}
        records = [
            {
                "record": record.raw.hex(),
                "signature": record.signature.hex(),
                "author": record.author.hex(),
                "time": record.time,
                "seq": record.seq,
                "id": record.id.hex(),
                "kept": record.id in retained,
            }
            for record in case.records
        ]
        cases.append(
            {
                "name": case.name,
                "network": case.network.name,
                "constants": unusual_constants(case.network),
                "attestors": sorted(root.hex() for root in case.trust.attestors),
                "participants": sorted(root.hex() for root in case.trust.participants),
                "records": records,
            }
        )
    return {"cases": cases}


def networks() -> dict[str, object]:
    usual = constants_of(DEFAULT_NETWORK)
    return {
        "usual": usual,
        "networks": [
            {
                "name": manifest.network.name,
                "nonce": manifest.network.nonce.hex(),
                "constants": unusual_constants(manifest.network),
                "hashed": encode(hashed(manifest)).hex(),
                "id": manifest.network.id.hex(),
                "manifest": encode_manifest(manifest).hex(),
            }
            for manifest in NETWORKS
        ],
    }


def hashed(manifest: NetworkManifest) -> dict[str, object]:
    """The map that a network's id is the hash of."""
    network, unusual = manifest.network, unusual_constants(manifest.network)
    constants = {name: value for name, value in constants_of(network).items() if name in EARLY or name in unusual}
    return {"name": network.name, **constants} | ({"nonce": network.nonce} if network.nonce else {})


def everything(folder: Path) -> dict[str, dict[str, object]]:
    """The contents of all files; ``folder`` is for logs."""
    return {
        "admission": admissions(),
        "retention": retentions(folder),
        "networks": networks(),
        "exchange": exchange.everything(),
        "tasks": tasks.everything(),
    }


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as logs:
        for title, content in everything(Path(logs)).items():
            (FOLDER / f"{title}.json").write_text(json.dumps(content, indent=1) + "\n")
