"""Runs whose program printed a number that can't be true are no best, no parent and no lead, until a person says so."""

import hashlib
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.derive.driver import believe_run, settle
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import best_of, buildable, preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.metrics import note_sources
from autoresearch.log.standing.queries import leaderboard
from autoresearch.log.standing.trials import trials
from autoresearch.log.standing.verdicts import verdict
from autoresearch.log.standing.verification import judgement
from autoresearch.record.kinds import Withdrawal
from autoresearch.trust.roster import Trust
from autoresearch.words import RunState
from tests.log.dumping import dump
from tests.record.making import NETWORK, NOW_MS, digest_of, key, pairs, run_body, sealed, task_body

BASELINE = hashlib.sha256(b"baseline").digest()
ME, OTHER = key(1), key(2)


def definition(**metric):
    return {
        "name": "mine",
        "metric": {"name": "val_bpb", "direction": "minimize", "source": "stdout"} | metric,
        "budget": {"unit": "work", "amount": 1e12},
        "baseline": BASELINE,
    }


class Story:
    """Runs in a log where trust names nobody; each name is a program."""

    def __init__(self, folder, **metric):
        self.log = Log.open(folder / "log.sqlite", NETWORK)
        self.definition, self.now_ms = definition(**metric), NOW_MS
        self.task = digest_of(self.definition)
        self.append("task", task_body(self.definition))

    def append(self, kind, body, by=ME, links=()):
        self.now_ms += 1000
        return self.log.writer.append(by, kind, body, now_ms=self.now_ms, links=links)

    def run(self, value, name, by=ME):
        return self.append("run", run_body(value, source=name.encode(), task=self.task, title=name), by)

    def state(self, run):
        return judgement(self.log, run.id).state

    def trial(self, run):
        context = trust_context(self.log, ME.public)
        return next(trial for trial in trials(self.log, self.task, context, device=ME.public) if trial.row.id == run.id)

    def best(self):
        return preferred(self.log, self.task, trust_context(self.log, ME.public)).row.first


@pytest.fixture
def story(tmp_path):
    made = Story(tmp_path)
    yield made
    made.log.close()


def test_a_jump_is_no_best_no_parent_and_no_lead(story):
    baseline, good = story.run(1.0179, "baseline"), story.run(1.0139, "a warm-up")
    fake = story.run(0.0001, "printed")
    assert story.state(fake) is RunState.NOT_BELIEVED
    assert "measured by the program itself, and far beyond" in verdict(story.log, fake)
    assert story.best() == good.id
    context = trust_context(story.log, ME.public)
    assert [each.row.first for each in buildable(story.log, story.task, context)] == [good.id, baseline.id]
    assert best_of(story.log, story.task, ME.public, context).first == good.id
    first, second, last = leaderboard(story.log, story.task)
    assert (first.position, second.position, last.position, last.state) == (1, 2, 0, "not believed")
    trial = story.trial(fake)
    assert (trial.believed, trial.tier) == (False, None)
    assert ("far beyond all values" in trial.failure, story.trial(good).failure) == (True, "")
    led = story.log.reader.rows("SELECT id FROM frontier WHERE task = ?", story.task)
    assert {run for (run,) in led} == {baseline.id, good.id}


def test_runs_built_on_a_jump_do_not_bear_it_out(story):
    story.run(1.0, "baseline")
    fakes = [story.run(0.0001 * number, f"printed {number}") for number in (1, 2, 3)]
    assert {story.state(fake) for fake in fakes} == {RunState.NOT_BELIEVED}


def test_values_in_between_fill_the_gap(story):
    story.run(1.0, "baseline")
    far = story.run(0.001, "far")
    assert story.state(far) is RunState.NOT_BELIEVED
    between = story.run(0.05, "between")
    assert (story.state(far), story.state(between)) == (RunState.REPORTED, RunState.REPORTED)
    story.append("withdrawal", Withdrawal(), links=[between.id])
    assert story.state(far) is RunState.NOT_BELIEVED


def test_a_person_believes_a_run_and_those_that_are_as_good_and_no_longer(story):
    baseline = story.run(1.0, "baseline")
    fake, as_good = story.run(0.0001, "printed"), story.run(0.0002, "as good")
    belief = believe_run(story.log, fake, believed=True)
    assert belief == (True, RunState.REPORTED, 1)
    assert (story.best(), story.state(as_good)) == (fake.id, RunState.REPORTED)
    story.log.writer.rebuild()
    assert story.best() == fake.id, "a person's word outlasts a rebuild"
    assert believe_run(story.log, fake, believed=True).changed is False
    assert believe_run(story.log, fake, believed=False) == (True, RunState.NOT_BELIEVED, 1)
    assert story.best() == baseline.id


def test_nobody_else_can_say_it(story):
    """A note of another participant about its own run, or a copy of it under another key, changes nothing."""
    story.run(1.0, "baseline")
    fake = story.run(0.0001, "printed", OTHER)
    again = story.run(0.0001, "printed", ME)
    assert {story.state(fake), story.state(again)} == {RunState.NOT_BELIEVED}
    story.log.trust = Trust(participants=frozenset({ME.public}))
    settle(story.log, 9)
    failures = [bool(story.trial(run).failure) for run in (fake, again)]
    assert failures == [False, True], "a stranger can't say that a part of the space fails"


@pytest.mark.parametrize("source", ["stdout", "harness", "referee", "evaluator"])
def test_a_value_past_the_floor_is_not_believed_whoever_measured_it(tmp_path, source):
    story = Story(tmp_path, source=source, floor=0.9)
    story.run(1.0179, "baseline")
    past = story.run(0.5, "past")
    assert story.state(past) is RunState.NOT_BELIEVED
    assert "metric.floor" in verdict(story.log, past)
    assert "metric.floor" in story.trial(past).failure
    story.log.close()


@pytest.mark.parametrize("source", ["harness", "referee", "evaluator"])
def test_what_is_measured_elsewhere_may_jump(tmp_path, source):
    story = Story(tmp_path, source=source)
    story.run(1.0, "baseline")
    assert story.state(story.run(0.0001, "new")) is RunState.REPORTED
    story.log.close()


def test_a_metric_that_grows_has_its_bound_above(tmp_path):
    story = Story(tmp_path, name="accuracy", direction="maximize")
    story.run(0.55, "baseline")
    perfect = story.run(1.0, "printed")
    assert story.state(perfect) is RunState.NOT_BELIEVED
    assert story.state(story.run(0.93, "honest")) is RunState.REPORTED
    assert story.state(perfect) is RunState.REPORTED, "from 0.93 a small test set can be perfect"
    story.log.close()


HONEST = "rate = 7\nval_bpb = evaluate(rate)\nprint('val_bpb:', val_bpb)\n"


def test_a_run_that_measures_in_another_way_is_not_believed_whatever_its_value(story):
    digest = lambda text: hashlib.sha256(text.encode()).digest()  # noqa: E731
    other, touched = HONEST.replace("7", "8"), HONEST.replace("val_bpb)", "val_bpb - 0.01)")
    story.run(1.0, "baseline")
    honest, fake = story.run(0.99, other), story.run(0.98, touched)
    child = story.run(0.97, touched.replace("7", "9"))
    unread = story.run(0.96, "whose source is not here")
    note_sources(story.log, story.task, {digest(other): other, digest(touched): touched})
    settle(story.log, 9)
    assert story.state(fake) is RunState.REPORTED, "without the task's own program nothing is said"
    sources = {BASELINE: HONEST, digest(touched.replace("7", "9")): touched.replace("7", "9")}
    note_sources(story.log, story.task, sources)
    settle(story.log, 9)
    assert [story.state(run) for run in (honest, fake, child, unread)] == [
        RunState.REPORTED,
        RunState.NOT_BELIEVED,
        RunState.NOT_BELIEVED,
        RunState.REPORTED,
    ]
    assert "in another way" in verdict(story.log, child)
    assert story.trial(child).failure == "", "its settings may be as good as it says"
    expected = dump(story.log)
    story.log.writer.rebuild()
    assert dump(story.log) == expected
    assert believe_run(story.log, fake, believed=True).others == 1, "its child measures as it does"
    assert {story.state(fake), story.state(child)} == {RunState.REPORTED}
    believe_run(story.log, fake, believed=False)
    assert {story.state(fake), story.state(child)} == {RunState.NOT_BELIEVED}


values = st.sampled_from([2.0, 1.0, 0.9, 0.05, 0.011, 0.002, 0.0001, 0.0, -0.5])
runs = st.lists(st.tuples(values, st.booleans(), st.booleans()), min_size=1, max_size=12)


@given(runs, st.randoms(use_true_random=False), st.integers(1, 4), st.booleans())
@settings(max_examples=12, deadline=None)
def test_any_order_and_a_rebuild_give_the_same_states(steps, order, batch, has_baseline):
    task = task_body(definition(floor=0.0))
    records = [sealed(ME, task, kind="task", time_ms=NOW_MS)]
    for number, (value, others, gone) in enumerate(steps):
        name = b"baseline" if has_baseline and not number else b"%d" % number
        body = run_body(value, source=name, task=task.digest)
        by = OTHER if others else ME
        seq, time_ms = 10 + 2 * number, NOW_MS + 10 * number
        run = sealed(by, body, seq=seq, time_ms=time_ms)
        records.append(run)
        if gone:
            withdrawal = sealed(by, Withdrawal(), kind="withdrawal", seq=seq + 1, time_ms=time_ms + 1, links=[run.id])
            records.append(withdrawal)

    def states(log):
        settle(log, math.inf)
        by_name = {record.id: judgement(log, record.id).state for record in records if record.kind == "run"}
        return by_name, dump(log), set(log.reader.rows("SELECT time, id, value FROM frontier"))

    with tempfile.TemporaryDirectory() as folder:
        logs = [Log.open(Path(folder) / f"{number}.sqlite", NETWORK, trust=Trust()) for number in (1, 2)]
        shuffled = records.copy()
        order.shuffle(shuffled)
        for log, some, size in ((logs[0], records, len(records)), (logs[1], shuffled, batch)):
            for start in range(0, len(some), size):
                log.writer.ingest(pairs(some[start : start + size]), now_ms=NOW_MS + 10**6)
        expected = states(logs[0])
        assert states(logs[1]) == expected
        logs[1].writer.rebuild()
        assert states(logs[1]) == expected
        for log in logs:
            log.close()
