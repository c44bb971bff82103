"""A seeded world of whole nodes: they search, verify, lie, crash, are cut off from each other, and it is healed."""

import hashlib
import heapq
import itertools
import random

from autoresearch_daemon.service.inputs import Tick

from autoresearch.log.derive.driver import settle
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.credit import credit
from autoresearch.log.standing.participants import track_records
from autoresearch.log.standing.queries import board, leaderboard
from autoresearch.log.standing.verification import judgement, state_of
from autoresearch.record.kinds import Attestation
from autoresearch.record.record import DAY_MS, Network
from autoresearch.task.loading import load_task
from autoresearch.task.program import source_digest
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState
from tests.daemon.toy import TRAIN, write_toy_task
from tests.log.dumping import dump
from tests.record.making import key, sealed
from tests.sim.node import synchronise
from tests.sim.participant import Participant

START_MS = 1_800_000_000_000 // DAY_MS * DAY_MS + DAY_MS // 2
TICK_MS = 120_000
HOUR_MS = 3_600_000
LOSS, BREAK = 0.2, 0.3
ATTESTORS = [key(400), key(401)]


class World:
    """``seed`` decides everything. Of six participants one cheats, one slanders; a seventh cheats and is unattested."""

    def __init__(self, seed, folder, *, attested=6, **constants):
        self.chance = random.Random(seed)
        self.now_ms = START_MS
        self.network = Network(name="simulated", nonce=bytes(16), **{"verify_patience_ms": HOUR_MS // 2, **constants})
        self.trust = Trust(attestors=frozenset(pair.public for pair in ATTESTORS))
        self.task = load_task(write_toy_task(folder / "task"))
        self.task_digest = self.task.digest
        self._numbers = itertools.count(1)
        self._due = []
        self._values = {}
        self._folder = folder
        self.nodes = self._participants(attested)
        self._sides = [0] * len(self.nodes)
        self._begin(attested)

    def _participants(self, attested):
        return [
            Participant(self, number, self._folder / f"{number}", cheats=number in (1, attested), slanders=number == 2)
            for number in range(attested + 1)
        ]

    def _begin(self, attested):
        words = []
        for index, node in enumerate(self.nodes[:attested]):
            tag, since = hashlib.sha256(node.root.public).digest(), START_MS - 2 * DAY_MS
            body = Attestation(
                subject=node.root.public, tag=tag, method="code", issued=since, expires=since + 90 * DAY_MS
            )
            words += [
                sealed(attestor, body, kind="attestation", seq=index + 1, time_ms=since, network=self.network)
                for attestor in ATTESTORS
            ]
        for node in self.nodes:
            node.notebook.publish_identity(START_MS - DAY_MS - HOUR_MS)
        everything = {pair for node in self.nodes for pair in node.log.records.iter_raw()}
        everything |= {(record.raw, record.signature) for record in words}
        for node in self.nodes:
            node.hear(sorted(everything), self.now_ms)
            node.work()
            self._tick(node)

    # --- what participants ask of it ---

    def chance_of(self, number):
        return random.Random(self.chance.randrange(2**60) + number)

    def skew_ms(self, number):
        return random.Random(number).randrange(-30_000, 30_000)

    def next_number(self):
        return next(self._numbers)

    def later(self, after_ms, act):
        heapq.heappush(self._due, (self.now_ms + after_ms, self.next_number(), act))

    def program(self, number):
        """A program, and what it is worth: smaller is better."""
        source = TRAIN.replace("X = 0.9", f"X = {number / 1000:.3f}")
        self._values[source_digest(source)] = 1.0 + number / 200
        return source

    def value(self, digest):
        return self._values[digest]

    def best_of(self, node):
        """What a participant builds on."""
        preference = preferred(node.log, self.task_digest, trust_context(node.log, node.notebook.author))
        return preference.row.first if preference else None

    def reachable(self, node):
        return [other for other in self.nodes if other is not node and self._is_reached(node, other)]

    def wait(self, work):
        """What a coroutine returns in which nothing waits."""
        try:
            work.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("something waits in the simulator")

    def announce(self, sender, pair):
        """Gossip: some is lost, all comes late and in any order."""
        for node in self.reachable(sender):
            if self.chance.random() > LOSS:
                self.later(self.chance.randrange(60_000), lambda node=node: self._hear(sender, node, pair))

    # --- what happens ---

    def live(self, hours):
        """Everybody works; now and then somebody crashes, the world falls into two parts, or two nodes exchange."""
        until_ms = self.now_ms + round(hours * HOUR_MS)
        self._disturb()
        while self._due[0][0] <= until_ms:
            self.now_ms, _, act = heapq.heappop(self._due)
            act()
        self.now_ms = until_ms

    def heal(self, most=6):
        """Nobody works any more; rounds of exchanges until all hold the same. Returns how many it took."""
        self._due.clear()
        self._sides = [0] * len(self.nodes)
        self.now_ms += 600_000
        for rounds in range(most + 1):
            if all(ids == self._held()[0] for ids in self._held()):
                return rounds
            for node in self.chance.sample(self.nodes, len(self.nodes)):
                other = self.chance.choice(self.reachable(node))
                synchronise(node, other, self.chance, self.now_ms)
        raise AssertionError(f"not equal after {most} rounds")

    def answers(self):
        """What each node tells of runs and participants, and a newcomer who hears everything in another order."""
        pairs = list(self.nodes[0].log.records.iter_raw())
        self.chance.shuffle(pairs)
        with Log.open(self._folder / "newcomer.sqlite", self.network, trust=self.trust) as newcomer:
            newcomer.writer.ingest(pairs, now_ms=self.now_ms)
            return [self._told(log) for log in (newcomer, *(node.log for node in self.nodes))]

    def states(self):
        """The runs of honest and of cheating participants by state, as the first node has them."""
        log = self.nodes[0].log
        run_states = {"honest": [], "cheating": []}
        for node in self.nodes:
            for record in log.records.newest(kind="run", author=node.notebook.author, limit=1000):
                if record.body.value is not None:
                    run_states["cheating" if node.cheats else "honest"].append(RunState(state_of(log, record.id)))
        return run_states

    def close(self):
        for node in self.nodes:
            node.close()

    def _told(self, log):
        settle(log, seconds=60)
        runs = log.records.newest(kind="run", limit=10_000)
        trust = trust_context(log)
        return {
            "board": board(log, self.task_digest, trust, limit=50),
            "leaderboard": leaderboard(log, self.task_digest),
            "judgements": {run.id: judgement(log, run.id) for run in runs},
            "claims": log.claims.open(self.task_digest, now_ms=self.now_ms),
            "credit": credit(log),
            "track records": track_records(log),
            "tables": dump(log),
        }

    def _held(self):
        return [{record_id for _, record_id in node.log.records.iter_keys()} for node in self.nodes]

    def _is_reached(self, node, other):
        return self._sides[node.number] == self._sides[other.number]

    def _hear(self, sender, node, pair):
        if self._is_reached(sender, node):
            node.hear([pair], self.now_ms)

    def _tick(self, node):
        self.later(TICK_MS + self.chance.randrange(1000), lambda: (node.take(Tick()), self._tick(node)))

    def _disturb(self):
        match self.chance.choices(range(3), weights=[80, 10, 10])[0]:
            case 0:
                node = self.chance.choice(self.nodes)
                if near := self.reachable(node):
                    breaks_after = self.chance.randrange(8_000) if self.chance.random() < BREAK else None
                    synchronise(node, self.chance.choice(near), self.chance, self.now_ms, breaks_after=breaks_after)
            case 1:
                self.chance.choice(self.nodes).crash()
            case 2:
                self._sides = [self.chance.randrange(2) for _ in self.nodes]
        self.later(self.chance.randrange(10 * TICK_MS), self._disturb)
