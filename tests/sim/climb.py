"""Peers whose runs are short and all a little better than the one before: what is confirmed while better ones come."""

from typing import NamedTuple

from autoresearch_daemon.service.agenda import Agenda, Order
from autoresearch_daemon.service.inputs import WorkAsked

from autoresearch.judging.states import REPLICATE
from autoresearch.log.standing.jobs import states_over_time
from autoresearch.task.program import source_digest
from autoresearch.words import RunState
from tests.daemon.toy import TRAIN
from tests.sim.race import Race, Racer
from tests.sim.world import START_MS

# A child and its parent twice, and the baseline beside each.
PAIR_RUNS = 6
# A gain is between this power of ten and that one; the task's noise is 0.001.
GAINS = (-3.5, 0.0)
BASELINE = 1000.0


class Confirmations(NamedTuple):
    """``seconds`` has when each run was confirmed; ``begun`` of all runs have a commitment, and are not decided."""

    seconds: list[float]
    runs: int
    begun: int


class Climber(Racer):
    """Makes the best program better by a gain of any size, half of the time, and verifies."""

    def work(self):
        # A node that has worked for a while: what verification may be ahead of its share is used up.
        self.machine.queue.agenda = Agenda().with_spent(self.now_ms, verification_ms=self.world.spent_ms)
        self.take(WorkAsked(Order(verify_share=self.world.share)))

    def _checking_ms(self, check):
        return self.world.check_ms * (PAIR_RUNS if check.stage == REPLICATE else 1)

    def _invent(self, attempt):
        leading = self.world.best_of(self)
        before = self.log.records.get(leading).body.value if leading else BASELINE
        gain = 10 ** self.chance.uniform(*GAINS) * self.chance.choice((1, -1))
        return self._plan(self.world.program_worth(before - gain if leading else before), parent=leading)


class Climb(Race):
    """``share`` of their time is for verification, after ``spent_ms`` of it; a run of a check takes ``check_ms``."""

    def __init__(self, seed, folder, *, check_ms=2_000, share=0.2, spent_ms=744_000, **how):
        self.check_ms, self.share, self.spent_ms = check_ms, share, spent_ms
        super().__init__(seed, folder, verify_least=3, **how)

    def _participants(self, attested):
        return [Climber(self, number, self._folder / f"{number}") for number in range(attested)]

    def program_worth(self, value):
        """A program, which is worth this."""
        source = TRAIN.replace("X = 0.9", f"X = {value!r}") if value != BASELINE else TRAIN
        self._values[source_digest(source)] = value
        return source

    def learn(self, source):
        """Every program was made for its worth."""

    def confirmations(self):
        """What was confirmed, as the first node has it."""
        log, seconds, begun = self.nodes[0].log, [], 0
        runs = log.records.newest(kind="run", limit=100_000)
        for run in runs:
            if log.verifications.commitments(run.id):
                states = states_over_time(log, run.id)
                seconds += [(each.time_ms - START_MS) / 1000 for each in states if each.state is RunState.CONFIRMED]
                begun += states[-1].state in (RunState.REPORTED, RunState.PROVISIONAL)
        return Confirmations(sorted(seconds), len(runs), begun)
