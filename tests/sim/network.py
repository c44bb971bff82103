"""A seeded network of nodes: everything goes wrong for a while, then only pairwise exchanges are left."""

import heapq
import random
from collections import Counter

from autoresearch.log.standing.queries import leaderboard, statistics
from autoresearch.record.record import DAY_MS, parse_stored
from tests.record.making import digest_of, key, run_body, sealed
from tests.sim.node import NETWORK, Node, synchronise

START_MS = 1_800_000_000_000 // DAY_MS * DAY_MS + DAY_MS // 2
STEP_MS = 20 * 60_000
LOSS, DUPLICATION, BREAK, DAMAGE = 0.2, 0.15, 0.4, 0.3


class Simulation:
    """``seed`` decides everything that happens."""

    def __init__(self, seed, folder, template, *, nodes=5):
        self.chance = random.Random(seed)
        self.now_ms = START_MS
        self.nodes = [
            Node(
                number,
                folder,
                template,
                random.Random(self.chance.randrange(2**60)),
                self.chance.randrange(-1_200_000, 1_200_000),
            )
            for number in range(nodes)
        ]
        self._sides = [0] * nodes
        self._flying = []
        self._sent = 0
        self._liar = key(99)

    def disturb(self, steps):
        """Publishing, gossip, exchanges that break, partitions, crashes, restored backups, an author who forks."""
        for _ in range(steps):
            self.now_ms += STEP_MS
            self._deliver()
            node = self.chance.choice(self.nodes)
            match self.chance.choices(range(7), weights=[50, 15, 15, 5, 5, 5, 5])[0]:
                case 0:
                    self._gossip(node, node.publish(self.now_ms))
                case 1:
                    self._gossip(node, self._lie(), reach=0.3)
                case 2:
                    self._exchange(node)
                case 3:
                    node.crash()
                case 4:
                    node.back_up()
                case 5:
                    node.restore(whole=self.chance.random() < 0.7)
                case 6:
                    self._sides = [self.chance.randrange(2) for _ in self.nodes]

    def repair(self, most):
        """Rounds in which every node exchanges with one other; returns how many it took until all were equal."""
        self.now_ms += 3_600_000
        self._flying.clear()
        for rounds in range(most + 1):
            if self.converged():
                return rounds
            for node in self.chance.sample(self.nodes, len(self.nodes)):
                other = self.chance.choice([peer for peer in self.nodes if peer is not node])
                synchronise(node, other, self.chance, self.now_ms)
        return most + 1

    def converged(self):
        """Whether all nodes hold the same records; asserts that then all their views are equal as well."""
        held = [{record_id for _, record_id in node.log.records.iter_keys()} for node in self.nodes]
        if any(ids != held[0] for ids in held):
            return False
        contents = [node.contents() for node in self.nodes]
        assert all(content == contents[0] for content in contents)
        answers = [answered(node.log, self.now_ms) for node in self.nodes]
        assert all(answer == answers[0] for answer in answers)
        return True

    def union(self):
        """All records that any node holds."""
        pairs = {pair for node in self.nodes for pair in node.log.records.iter_raw()}
        return {entry(parse_stored(*pair)) for pair in pairs}

    def close(self):
        for node in self.nodes:
            node.close()

    def _lie(self):
        """A record of an author who signs several with one number, more than a day's quota, and at any time."""
        time_ms = self.now_ms - self.chance.randrange(DAY_MS)
        body = run_body(self.chance.random(), source=b"%d" % self.chance.randrange(6))
        record = sealed(self._liar, body, seq=self.chance.randrange(1, 9), time_ms=time_ms, network=NETWORK)
        return record.raw, record.signature

    def _gossip(self, sender, pair, reach=1.0):
        """Best effort: some are lost, some come twice, all come late and in any order."""
        if pair is None:
            return
        for node in self.nodes:
            if self.chance.random() < reach * (1 - LOSS):
                for _ in range(1 + (self.chance.random() < DUPLICATION)):
                    self._sent += 1
                    arrival = self.now_ms + self.chance.randrange(6 * STEP_MS)
                    heapq.heappush(self._flying, (arrival, self._sent, sender.number, node.number, pair))

    def _deliver(self):
        arrived = {}
        while self._flying and self._flying[0][0] <= self.now_ms:
            _, _, sender, receiver, pair = heapq.heappop(self._flying)
            if self._sides[sender] == self._sides[receiver]:
                arrived.setdefault(receiver, []).append(pair)
        for receiver, pairs in arrived.items():
            self.nodes[receiver].hear(pairs, self.now_ms)

    def _exchange(self, node):
        other = self.chance.choice([peer for peer in self.nodes if peer is not node])
        if self._sides[node.number] == self._sides[other.number]:
            breaks_after = self.chance.randrange(8_000) if self.chance.random() < BREAK else None
            damages = self.chance.random() < DAMAGE
            synchronise(node, other, self.chance, self.now_ms, breaks_after=breaks_after, damages=damages)


def answered(log, now_ms):
    """What the node tells people."""
    task = digest_of()
    return (
        leaderboard(log, task),
        log.runs.history(task),
        log.claims.open(task, now_ms=now_ms),
        statistics(log, task),
        log.devices.forks(),
    )


def entry(record):
    return record.author, record.time // DAY_MS, record.seq, record.id


def quota(entries):
    """The quota: the smallest by (seq, id) of nested buckets."""
    for limit, width in ((NETWORK.per_day_seq, 3), (NETWORK.per_day, 2), (NETWORK.per_author, 1)):
        taken, left = Counter(), set()
        for place in sorted(entries, key=lambda place: place[2:]):
            taken[place[:width]] += 1
            if taken[place[:width]] <= limit:
                left.add(place)
        entries = left
    return entries
