"""Every field of every kind at its ends: all questions and pages answer, and no honest record is missing."""

from __future__ import annotations

import asyncio
import random
import re
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import msgspec
import pytest
from autoresearch_daemon.api.app import EVENTS, OPERATIONS
from autoresearch_daemon.log_thread import LogThread
from autoresearch_daemon.pages.routes import PAGES
from autoresearch_daemon.peers import ingest
from autoresearch_daemon.peers.ingest import Ingester

from autoresearch.face.pages.chart import CHOICES
from autoresearch.log.blobs import BlobStore
from autoresearch.log.bundle import Imported, import_bundle, write_bundle
from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import KINDS, Claim, Note
from autoresearch.record.record import Refusal, admit
from tests.face.pages.conftest import site_of
from tests.face.pages.every_state import empty_world
from tests.hostile.ends import Hostile
from tests.log.dumping import dump
from tests.log.standing.village import ANN, BEN, CEM, EVE, NETWORK, ROOTS, STRANGER, TRUST, settled
from tests.record.making import NOW_MS, pairs

# So many records are taken in at once.
BATCH = 200


@pytest.fixture(autouse=True)
def _clock(monkeypatch):
    monkeypatch.setattr(ingest, "now_ms", lambda: NOW_MS + 10**8)


@contextmanager
def honest_world(folder):
    """A world with a few honest runs that are verified, a claim and a note; and what hostile records speak of."""
    with empty_world(folder) as world:
        village = world.village
        first = world.publish(1.9, "first", by=ANN, log=b"val_bpb: 1.9\n")
        second = world.publish(1.8, "second", by=BEN, parent=first)
        village.confirm(first, 2.0, 1.89)
        village.evaluate(second, 1.8, ANN, CEM)
        claim = Claim(task=village.task, source_digest=b"c" * 32, until=village.now_ms + 10**7, title="soon")
        village.append(ANN, "claim", claim)
        village.append(ANN, "note", Note(topic="insight", text="depth helps", task=village.task), [first.id])
        world.node.notebook.now_ms = village.now_ms
        yield world


def defaults(world):
    """Usual values of fields by name, so that hostile records are about what is there."""
    first, task = world.runs["first"], world.village.task
    budget = world.village.definition["budget"]["amount"]
    return {"task": task, "run": first.id, "parent": first.id, "budget": budget, "status": "ok", "value": 1.5,
            "stage": "evaluate", "verdict": "pass", "title": "an end", "root": ROOTS[5].public, "device": EVE.public,
            "participant": STRANGER.public, "subject": STRANGER.public, "genome": {"DEPTH": 3, "LR": 0.1},
            "topic": "insight", "until": world.village.now_ms + 10**6, "definition": world.village.definition,
            "cpu_ms": 1000, "duration_ms": 1000}  # fmt: skip


def hostile(world, kinds=KINDS, people=(EVE, STRANGER)):
    """A record for each end of each field of these kinds, by each of these people, with the field's name."""
    for who in people:
        head = world.village.log.devices.head(who.public)
        yield from Hostile(who, defaults(world), head.seq if head else 0, world.village.now_ms).records(kinds)


def addresses(world, ids=(), tasks=()):
    """The address of every operation that reads and of every page, about each of these records and tasks."""
    own = [operation for operation in OPERATIONS.values() if operation.method == "GET" and operation is not EVENTS]
    paths = {operation.path: {f.name for f in msgspec.structs.fields(operation.takes)} for operation in own}
    paths |= {page: {"task", *re.findall(r"{(\w+)}", page)} for page in PAGES}
    for path, names in paths.items():
        parts = re.findall(r"{(\w+)}", path)
        about = [
            (format_id(record_id) if "key" not in parts and "participant" not in parts else who)
            for record_id, who in ids
        ]
        for part in about if parts else [""]:
            yield re.sub(r"{\w+}", part, path)
        if "task" in names and not parts:
            yield from (f"{path}?task={task.hex()}" for task in tasks)
    for record_id, _ in ids:
        yield from (
            f"{path}={format_id(record_id)}" for path in ("/lineage?of", "/compare?run", "/v1/diff?new", "/find?q")
        )


def charts():
    """The address of every chart."""
    for name, values in CHOICES.items():
        yield from (f"{page}?{name}={value}" for page in ("/", "/chart.svg", "/chart.json") for value in values)


@asynccontextmanager
async def asking(world, folder):
    """Gives what an address answers, as status and text."""
    async with site_of(world.node, folder) as site, aiohttp.ClientSession() as session:
        headers = {"Authorization": "Bearer secret"}

        async def ask(address):
            async with session.get(site + address, headers=headers) as response:
                return response.status, (await response.read()).decode(errors="replace")

        yield ask


async def take_in(world, records):
    """Store records as those of a peer; one verdict each."""
    thread, arrived = LogThread(world.village.log), []
    ingester = Ingester(thread, arrived.append)
    keeping = asyncio.create_task(ingester.keep())
    try:
        for start in range(0, len(records), BATCH):
            await ingester.store(pairs(records[start : start + BATCH]), "peer")
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        thread.close()
    return [verdict for part in arrived for verdict in part.verdicts]


def is_right(record, now_ms):
    """Whether admission takes a record."""
    return not isinstance(admit(record.raw, record.signature, NETWORK, now_ms=now_ms), Refusal)


async def check(world, tmp_path, made, honest, *, most):
    """Take the records in among honest ones: everything answers then as before, and about ``most`` of the records."""
    village, log, chance = world.village, world.village.log, random.Random(7)
    before = {record.id for record in log.records.newest(limit=10_000)}
    ids = [(world.runs["first"].id, ANN.public.hex())]
    async with asking(world, tmp_path) as ask:
        usual = {address: (await ask(address))[0] for address in addresses(world, ids)} if most else {}
        mixed = [record for _, record in made] + honest
        chance.shuffle(mixed)
        stored = {verdict.id for verdict in await take_in(world, mixed) if verdict.state is State.STORED}
        assert {record.id for record in honest} <= stored
        assert log.records.has(before) == before
        right = [(field, record) for field, record in made if is_right(record, NOW_MS + 10**8)]
        assert {record.id for _, record in right} == stored - {record.id for record in honest}
        settle(log, seconds=60)
        world.node.notebook.now_ms = village.now_ms + 10**5
        for address in (*addresses(world, ids), *(charts() if most else ())):
            status, text = await ask(address)
            assert status in ([usual.get(address, 200)] if most else [200, 400, 404]), (address, text)
        chance.shuffle(right)
        by_field = {field: (record.id, STRANGER.public.hex()) for field, record in right}
        tasks = [record.body["digest"] for _, record in right if record.kind == "task"]
        for address in addresses(world, [*by_field.values()][:most], tasks[: most // 2]) if most else ():
            status, text = await ask(address)
            assert status in (200, 400, 404), (address, text)
    contents = dump(settled(log))
    log.writer.rebuild()
    assert dump(settled(log)) == contents


def carry_over(world, tmp_path):
    """Import the log elsewhere, as a bundle: the same is there."""
    log = settled(world.village.log)
    with BlobStore(tmp_path / "others") as blobs, Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as other:
        with (tmp_path / "bundle").open("wb") as file:
            write_bundle(log, world.blobs, file)
        with (tmp_path / "bundle").open("rb") as file:
            import_bundle(file, other, blobs, imported := Imported(), now_ms=NOW_MS + 10**8)
        assert imported.refused == 0
        assert dump(settled(other)) == dump(log)


def more(world, count):
    """Honest runs that come from a peer."""
    made = Hostile(CEM, defaults(world), world.village.log.devices.head(CEM.public).seq, world.village.now_ms)
    for at in range(count):
        made.defaults["value"] = 1.7 + at / 1000
        yield from made.usual("run")


@pytest.mark.slow
async def test_numbers_of_runs_at_their_ends_cost_nothing(tmp_path):
    with honest_world(tmp_path) as world:
        made = [record for record in hostile(world, ["run"]) if record[0] in ("run.cpu_ms", "run.value")]
        await check(world, tmp_path, made, list(more(world, 5)), most=0)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["task"], sorted(KINDS.keys() - {"task"})], ids=["task", "all others"])
async def test_every_field_at_its_ends_costs_nothing(tmp_path, kinds):
    with honest_world(tmp_path) as world:
        made = list(hostile(world, kinds, [EVE, STRANGER][: len(kinds)]))
        if len(kinds) > 1:  # the one has the ends of every other field, the other those between
            fields = [*dict.fromkeys(field for field, _ in made)]
            authors = {field: (EVE, STRANGER)[number % 2].public for number, field in enumerate(fields)}
            made = [(field, record) for field, record in made if record.author == authors[field]]
        await check(world, tmp_path, made, list(more(world, 20)), most=16)
        carry_over(world, tmp_path)


@pytest.mark.slow
def test_each_record_alone_in_an_order_of_its_own_leaves_the_same(tmp_path):
    with honest_world(tmp_path) as world, Log.open(tmp_path / "other.sqlite", NETWORK, trust=TRUST) as other:
        made = [record for kind in KINDS if kind != "task" for _, record in hostile(world, [kind], [EVE])]
        world.village.log.writer.ingest(pairs(made), now_ms=NOW_MS + 10**8)
        for pair in reversed(list(world.village.log.records.iter_raw())):
            verdict = other.writer.ingest([pair], now_ms=NOW_MS + 10**8)[0]
            assert verdict.state is State.STORED, verdict.refusal
        assert dump(settled(other)) == dump(settled(world.village.log))
