"""Hypothesis strategies for sets of records that touch each other: forks, merges, withdrawals, quotas."""

from hypothesis import strategies as st

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.judging.states import EVALUATE
from autoresearch.record.kinds import BlobRef, Claim, Identity, Merge, Note, Verification, Withdrawal
from autoresearch.record.record import DAY_MS, Network
from tests.record.making import NOW_MS, commitment, digest_of, key, opened, run_body, sealed, task_body

SMALL = Network(name="small", per_day_seq=2, per_day=5, per_author=8)
AMPLE = Network(name="ample")
OTHER_KINDS = ("withdrawal", "merge", "identity", "task", "claim", "note", "verification", "checked", "commitment")
# Settings: none known, one, several with parts, more than a pair is made of.
GENOMES = (
    {}, {"LR": 0.1}, {"LR": 0.2, "N": 3}, {"LR": 0.1, "N": 4, "ACT": "relu"}, {"LR": 0.2, "+muon": True, "ACT": "gelu"},
    {"LR": 0.1, "+muon": False, "N": True}, {f"S{number}": number for number in range(20)},
    {f"S{number}": number + 1 for number in range(20)},
)  # fmt: skip
MODELS = (None, None, BlobRef(sha256=b"m" * 32, size=5))
ROOT, DEVICES = key(100), (key(1), key(2))
# They publish runs that link others', too.
WITNESSES = (key(3), key(4))


@st.composite
def records(draw, network=SMALL, max_size=24):
    """Signed records of two devices, their root and two others; later ones may name earlier ones."""
    made = []
    for _ in range(draw(st.integers(1, max_size))):
        made.append(draw(_record(network, made)))
    unique = {record.id: record for record in made}
    return list(unique.values())


@st.composite
def _record(draw, network, made):
    ids = [record.id for record in made] or [b"?" * 32]
    kind = draw(st.sampled_from(["run"] * 8 + list(OTHER_KINDS)))
    links = []
    author = ROOT if kind in ("merge", "identity") else draw(st.sampled_from(DEVICES))
    if kind == "run" and draw(st.booleans()):
        author = draw(st.sampled_from(WITNESSES))
        links = draw(st.lists(st.sampled_from([*ids, b"!" * 32]), max_size=4))
    common = {
        "kind": kind,
        "seq": draw(st.integers(1, 5)),
        "time_ms": NOW_MS - draw(st.integers(0, 2)) * DAY_MS + draw(st.integers(0, 3)),
        "network": network,
    }
    if kind == "run":
        value, status = draw(
            st.sampled_from([(0.1, "ok"), (1.1, "ok"), (1e11, "ok"), (-1e11, "ok"), (None, "diverged")])
        )
        body = run_body(
            value,
            source=draw(st.sampled_from([b"a", b"b"])),
            seedless=draw(st.sampled_from([None, None, b"a" * 32])),
            status=status,
            replicate=draw(st.integers(0, 2)),
            budget=draw(st.sampled_from([1e12, 1e11])),
            parent=draw(st.none() | st.sampled_from(ids)),
            checkpoint=draw(st.sampled_from(MODELS)),
            genome=draw(st.sampled_from(GENOMES)),
            base=draw(st.sampled_from([None, None, b"b" * 32])),
            **draw(st.sampled_from([{}, {}, {}, {"seed": 7}])),
        )
    elif kind == "withdrawal":
        body, links = Withdrawal(), draw(st.lists(st.sampled_from(ids), max_size=2))
    elif kind == "merge":
        device = draw(st.sampled_from(DEVICES))
        body = Merge(device=device.public, heads=draw(st.lists(st.sampled_from(ids), min_size=1, max_size=2)))
    elif kind == "identity":
        body = Identity(action="delegate", root=ROOT.public, device=draw(st.sampled_from(DEVICES)).public)
    elif kind == "task":
        body = task_body()
    elif kind == "claim":
        body = Claim(task=digest_of(), source_digest=b"d" * 32, until=NOW_MS + draw(st.integers(0, 2)))
    elif kind == "note":
        body = Note(topic="insight", text=draw(st.sampled_from(["x", "y"])), task=digest_of())
    elif kind in ("checked", "commitment"):
        common["kind"] = "commitment" if kind == "commitment" else "verification"
        run = draw(st.sampled_from(ids))
        proof = ecvrf.prove(bytes(author.key), question(run, EVALUATE, 0))
        check = Verification(
            run=run, stage=EVALUATE, verdict="pass", value=draw(st.sampled_from([0.1, 2.0])), proof=proof
        )
        body = commitment(author, check) if kind == "commitment" else opened(check)
        links = [record.id for record in made if record.kind == "commitment"][:8]
    else:
        body = Verification(run=draw(st.sampled_from(ids)), stage="L1", verdict="pass", value=1.0)
    return sealed(author, body, links=links, **common)
