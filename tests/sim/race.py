"""Peers that race: real nodes that all look for the same, over links that delay, lose and part, with real proposers."""

import re

from autoresearch_daemon.service.agenda import Order
from autoresearch_daemon.service.inputs import Tick, WorkAsked

from autoresearch.propose.mind.recall import known_as, recall
from autoresearch.propose.search.search import propose
from autoresearch.run.experiment import plan_as_it_stands
from autoresearch.task.program import source_digest
from autoresearch.words import RunStatus
from tests.daemon.toy import TRAIN
from tests.sim.node import synchronise
from tests.sim.participant import Participant
from tests.sim.world import World

LOSS = 0.05
DELAY_MS = (50, 2000)
EXCHANGE_MS = (45_000, 75_000)
RUN_MS = (20_000, 40_000)
THINKING_MS = (5_000, 30_000)
IDEAS = [TRAIN.replace("X = 0.9", f"X = {0.05 + number / 20:.2f}") for number in range(10)]
# A model that answers what is known is corrected so often.
ANSWERS = 3


class Racer(Participant):
    """Proposes by the search; with ``world.ideas`` by a model that knows no others than these."""

    def work(self):
        self.take(WorkAsked(Order(verify_share=0.0)))

    def _thinking_ms(self):
        return self.chance.randrange(*self.world.thinking_ms) if self.world.ideas else 500

    def _running_ms(self):
        return self.chance.randrange(*self.world.run_ms)

    def _invent(self, attempt):
        task, now_ms = self.world.task, self.now_ms
        leading = self.world.best_of(self)
        for _ in range(ANSWERS if self.world.ideas and leading and not attempt else 0):
            source = self.chance.choice(self.world.ideas)
            if not known_as(self.log, task, source_digest(source), now_ms, me=self.notebook.author):
                return self._plan(source, parent=leading)
        recalled = recall(self.log, self.notebook.blobs, task, now_ms, me=self.notebook.author)
        made = propose(*recalled, worker=self.notebook.author.hex(), counter=attempt)
        return self._plan(made.source, replicate=made.replicate, parent=made.parent, genome=dict(made.genome))

    def _plan(self, source, **more):
        self.world.learn(source)
        return plan_as_it_stands(self.world.task, source, title="an idea", **more)


class Race(World):
    """``peers`` that all start at once. ``ideas``: all that their models can think of; none: they search."""

    def __init__(self, seed, folder, *, peers=5, ideas=(), run_ms=RUN_MS, thinking_ms=THINKING_MS, **constants):
        self.ideas, self.run_ms, self.thinking_ms = ideas, run_ms, thinking_ms
        super().__init__(seed, folder, attested=peers, **constants)

    def _participants(self, attested):
        return [Racer(self, number, self._folder / f"{number}") for number in range(attested)]

    def learn(self, source):
        """What a program is worth."""
        x, y = (float(number) for number in re.findall(r"^[XY] = ([0-9.e-]+)", source, re.MULTILINE))
        self._values[source_digest(source)] = (x - 0.3) ** 2 + (y - 0.6) ** 2

    def announce(self, sender, pair):
        for node in self.reachable(sender):
            if self.chance.random() > LOSS:
                self.later(self.chance.randrange(*DELAY_MS), lambda node=node: self._hear(sender, node, pair))

    def part(self, sides):
        """Cut the links between nodes of different sides; when all are on one, everybody calls somebody."""
        self._sides = sides
        if len(set(sides)) == 1:
            for node in self.nodes:
                self.later(self.chance.randrange(*DELAY_MS), lambda node=node: self._call(node))

    def ended(self):
        """(program, replicate) of what was run to its end, as the first log has it; and how many runs were stopped."""
        runs = [record.body for record in self.nodes[0].log.records.newest(kind="run", limit=10_000)]
        done = [run for run in runs if run.status == RunStatus.OK]
        return [(run.source_digest, run.replicate) for run in done], len(runs) - len(done)

    def _tick(self, node):
        self.later(5000, lambda: (node.take(Tick()), self._tick(node)))

    def _disturb(self):
        for node in self.nodes:
            self._exchange(node)

    def _exchange(self, node):
        self.later(self.chance.randrange(*EXCHANGE_MS), lambda: (self._call(node), self._exchange(node)))

    def _call(self, node):
        if near := self.reachable(node):
            synchronise(node, self.chance.choice(near), self.chance, self.now_ms)
