"""A notebook with records of every kind: long titles and names, verifications, marks, a fork, an attestation."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Attestation, BlobRef, Claim, Identity, Note, Proposer, Release, Withdrawal, Yank
from autoresearch.record.record import Record
from autoresearch.task.program import source_digest
from autoresearch.trust.identity import create_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.log.standing.test_evidence import fork
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE, PEOPLE, ROOTS, STRANGER, TRUST, Village
from tests.record.making import NETWORK, run_body

# Some take two columns of a terminal for a character.
NAMES = ("ada lovelace", "安妮 of the long name", "ben of the tea house 24 c", "cem", "dot", "eve")
TITLE = "bigram table, cosine schedule, weight averaging (+17)"
WIDE_TITLE = "検証者 によって 測定された 変更, measured by others only ✅ 和其他人的"
LONG_TITLE = f"LR 0.0083 -> 0.006, WEIGHT_DECAY 0.1 -> 0.19, {TITLE}"
TEXT = "A table knows the pair at once, so that the first layer need not spend attention on the byte before. " * 4
PROGRAM = "LR = {rate}\nprint('---')\nprint(f'val_bpb: {{LR}}')\n"


@dataclass(frozen=True)
class Crowded:
    """The ids of all records, of the newest of each kind, and of some runs."""

    records: list[str]
    kinds: list[str]
    best: str
    parent: str
    refuted: str
    lucky: str


def fill(paths: Paths) -> Crowded:
    """Make a home with that notebook, and with keys of its own."""
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK, trust=TRUST))
    create_identity(paths.keys)
    paths.daemon_log.write_text(
        '{"timestamp": "2026-11-22T07:00:27Z", "level": "info", "event": "sandbox", "leaks": []}\n'
    )
    with Log.open(paths.log, NETWORK, trust=TRUST) as log, BlobStore(paths.blobs) as blobs:
        return _Filling(Village(log), blobs).all()


class _Filling:
    def __init__(self, village: Village, blobs: BlobStore) -> None:
        self.village, self.blobs = village, blobs
        for device, root, name in zip(PEOPLE, ROOTS, NAMES, strict=True):
            village.append(device, "identity", Identity(action="profile", root=root.public, name=name))

    def all(self) -> Crowded:
        parent = self._run(1.22, TITLE, 0.01, by=ANN)
        self.village.confirm(parent, 2.0, 1.22)
        best = self._run(1.15, LONG_TITLE, 0.02, by=BEN, parent=parent, hypothesis=TEXT[:1000])
        self.village.confirm(best, 1.22, 1.15)
        checked = self._run(1.1, WIDE_TITLE, 0.03, by=CEM)
        self.village.evaluate(checked, 1.1, ANN, BEN, DOT)
        self._run(1.0, f"reported: {TITLE}", 0.04, by=CEM, parent=best)
        refuted = self._run(0.9, "refuted", 0.05, by=DOT)
        self._run(0.95, "its child", 0.06, by=CEM, parent=refuted)
        self.village.refute(refuted, 1.9)
        idea = self.village.run(1.3, "idea", by=ANN)
        self.village.run(1.1, "idea", by=BEN)
        fork(self.village, of=idea)
        lucky = self.village.run(0.5, "lucky", by=EVE, seed=7)
        self.village.run(1.35, "more", by=EVE)
        self.village.run(0.5, "incredible", by=STRANGER)
        reason = "ValueError: 0.5 is not a learning rate that this schedule can end with"
        self._run(None, "crash", 0.5, by=ANN, status="crashed", reason=reason)
        self._others()
        records = self.village.log.records.newest(limit=1000)
        kinds = {record.kind: format_id(record.id) for record in reversed(records)}
        ids = [format_id(record.id) for record in records]
        return Crowded(ids, list(kinds.values()), *(format_id(run.id) for run in (best, parent, refuted, lucky)))

    def _run(
        self,
        value: float | None,
        title: str,
        rate: float,
        *,
        by: KeyPair,
        parent: Record | None = None,
        **fields: object,
    ) -> Record:
        source, above = PROGRAM.format(rate=rate), parent or self.village.baseline
        assert above is not None
        body = run_body(
            value,
            task=self.village.task,
            title=title,
            parent=above.id,
            source_digest=source_digest(source),
            genome={"LR": rate, "+bigram": True, "+muon": False, "WEIGHT_DECAY": 0.19},
            metrics={"steps": 1345, "tokens": 1_377_280, "params": 496_640},
            environment={"python": "3.11.7", "torch": "2.13.0+cpu", "system": "Linux x86_64"},
            proposer=Proposer(name="search", version="1"),
            device="AMD EPYC",
            log=self.blobs.put(b"step 1\n---\n"),
            **fields,
        )
        whole = msgspec.structs.replace(body, source=self.blobs.put(source.encode()))
        return self.village.append(by, "run", whole, [above.id])

    def _others(self) -> None:
        """A record of each kind that a run does not need."""
        village, blob = self.village, BlobRef(sha256=b"b" * 32, size=4)
        until = village.now_ms + 86_400_000
        claim = Claim(task=village.task, source_digest=b"c" * 32, genome={"LR": 0.07}, title=LONG_TITLE, until=until)
        village.append(CEM, "claim", claim)
        village.append(CEM, "note", Note(topic="insight", text=TEXT, task=village.task, metrics={"steps": 3}))
        release = Release(name="tokenizer", version="1.2.0", summary=TEXT, bundle=blob, metadata={"licence": "MIT"})
        village.append(CEM, "release", release)
        component = {"type": "environment", "tree": f"h1:{'ab' * 32}", "description": TEXT, "class_name": "main:World"}
        for author in (ANN, CEM):
            release = Release(name="corridor", version="2.0.0", summary=TEXT[:100], bundle=blob, metadata=component)
            released = village.append(author, "release", release)
        village.append(CEM, "yank", Yank(release=released.id, reason=TEXT), [released.id])
        note = village.append(ANN, "note", Note(topic="history", text="an old result", origin="results.tsv"))
        village.append(ANN, "withdrawal", Withdrawal(reason="a mistake"), [note.id])
        attested = Attestation(
            subject=STRANGER.public, tag=b"t" * 32, method="code", domain="large", issued=until, expires=until
        )
        village.append(ROOTS[0], "attestation", attested)
        village.merge(ANN)
