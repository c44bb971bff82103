"""The table of settings in which runs differ from their parents: rows of facts, whatever the order of arrival."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.record.kinds import Run, Withdrawal
from tests.log.dumping import dump
from tests.log.test_set_functions import fill, fresh
from tests.log.universe import AMPLE, SMALL, records
from tests.record.making import NETWORK, key, run_body, sealed


def expected(log):
    """All pairs of the runs that are shown, compared one by one."""
    stored = {record.id: record for record in log.records.newest(limit=1000)}
    gone = {(link, each.author) for each in stored.values() if isinstance(each.body, Withdrawal) for link in each.links}
    runs = {run.id: run for run in stored.values() if isinstance(run.body, Run) and (run.id, run.author) not in gone}
    results = []
    for run in runs.values():
        above = runs.get(run.body.parent)
        if above is None or above.body.task != run.body.task:
            continue
        changed = changes_of(above.body.genome, run.body.genome, run.body.base == above.body.base)
        if len(changed) <= 16:
            results += [row(run, above, name, changed) for name in changed]
    return sorted(results, key=repr)


def changes_of(old, new, same_base):
    if not old or not new:
        return {}
    parts = {name: False for name in old.keys() | new.keys() if same_base and name.startswith("+")}
    old, new = {**parts, **old}, {**parts, **new}
    both = old.keys() & new.keys()
    return {name: (old[name], new[name]) for name in both if repr(old[name]) != repr(new[name])}


def row(run, above, name, changed):
    old, new = changed[name]
    texts = isinstance(old, str) or isinstance(new, str)
    values = [each.body.value if each.body.status == "ok" else None for each in (above, run)]
    before, after = (value if value is not None and abs(value) < 1e30 else None for value in values)
    delta = after - before if before is not None and after is not None else None
    failed = before is not None and run.body.status == "diverged"
    direction = 0 if texts or old == new else int(math.copysign(1, new - old))
    same = run.body.base == above.body.base
    return run.body.task, name, run.time, run.id, above.id, len(changed), same, direction, delta, failed


@pytest.mark.slow
@given(records(AMPLE), st.randoms(use_true_random=False), st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_the_rows_are_the_pairs_of_the_runs_that_are_shown(made, order, batch):
    with fresh(AMPLE) as log:
        fill(log, made, order, batch)
        assert dump(log)["pair"] == expected(log)


def chain(*fields, network=NETWORK):
    """Runs of one device, each the child of the one before it."""
    made = []
    for number, field in enumerate(fields):
        value, genome, more = field
        parent = made[-1].id if made else None
        body = run_body(value, source=b"%d" % number, genome=genome, parent=parent, **more)
        made.append(sealed(key(1), body, seq=number + 1, network=network))
    return made


def test_a_run_that_failed_where_its_parent_did_not_is_a_row_without_a_change_of_the_value():
    made = chain(
        (2.0, {"LR": 1.0}, {}),
        (None, {"LR": 3.0}, {"status": "diverged"}),
        (1.5, {"LR": 2.0}, {}),
        (None, {"LR": 1.0}, {"status": "cancelled"}),
    )
    with fresh(NETWORK) as log:
        fill(log, made)
        rows = sorted((each[3], *each[7:]) for each in dump(log)["pair"])
    assert rows == sorted([(made[1].id, 1, None, 1), (made[2].id, -1, None, 0), (made[3].id, -1, None, 0)])


def test_a_parent_that_comes_right_after_its_child_is_compared_with_it():
    made = chain((2.0, {"LR": 1.0}, {}), (1.5, {"LR": 2.0}, {}))
    with fresh(NETWORK) as log:
        for run in reversed(made):
            fill(log, [run])
        assert [row[3:5] for row in dump(log)["pair"]] == [(made[1].id, made[0].id)]


def test_a_withdrawn_parent_takes_its_pairs_with_it():
    made = chain((2.0, {"LR": 1.0}, {}), (1.5, {"LR": 2.0}, {}), (1.4, {"LR": 2.5}, {}))
    taken = sealed(key(1), Withdrawal(), kind="withdrawal", seq=4, links=[made[0].id])
    with fresh(NETWORK) as log:
        fill(log, made)
        assert len(dump(log)["pair"]) == 2
        fill(log, [taken])
        assert [row[3] for row in dump(log)["pair"]] == [made[2].id]


def test_a_parent_whose_withdrawal_goes_over_the_quota_brings_its_pairs_back():
    made = chain(*[(2.0 - number / 10, {"LR": 1.0 + number}, {}) for number in range(5)], network=SMALL)
    taken = sealed(key(1), Withdrawal(), kind="withdrawal", seq=6, links=[made[0].id], network=SMALL)
    with fresh(SMALL) as log:
        fill(log, [*made[:2], *made[3:], taken])
        assert [row[3] for row in dump(log)["pair"]] == [made[4].id]
        fill(log, [made[2]])
        assert sorted(row[3] for row in dump(log)["pair"]) == sorted(run.id for run in made[1:])


def test_a_parent_on_another_task_is_no_pair():
    made = chain((2.0, {"LR": 1.0}, {}), (1.5, {"LR": 2.0}, {"task": b"t" * 32}))
    with fresh(NETWORK) as log:
        fill(log, made)
        assert dump(log)["pair"] == []
