"""What a search is told of the log: everybody's runs, and how far each may be built upon."""

import hashlib

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.log.blobs import BlobStore
from autoresearch.log.standing.bases import preferred
from autoresearch.log.standing.context import trust_context
from autoresearch.propose.mind.recall import due_from_smaller, known_as, recall, run_before
from autoresearch.propose.mind.register import budget_of, dead_ends_of
from autoresearch.propose.search.evidence import gather
from autoresearch.propose.search.search import propose
from autoresearch.record.kinds import Claim, Task, Withdrawal
from autoresearch.task.loading import load_task, shipped_by_name, shipped_task
from autoresearch.task.program import source_digest
from autoresearch.text import sign_of
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Trust
from tests.ask.notebook import Notebook
from tests.daemon.toy import TRAIN, write_toy_task
from tests.log.standing.stories import STORIES, play
from tests.log.standing.village import ANN, AUTHOR, BEN, CEM, PEOPLE, ROOTS, STRANGER, TRUST, Village
from tests.propose.conftest import best_run
from tests.record.making import BLOB


def test_the_search_hears_who_stands_behind_what(tmp_path):
    village = Village.at(tmp_path)
    task = shipped_task()
    fields = {"task": task.digest, "budget": task.budget.amount}
    village.baseline = None  # it is on another task, and a run's parent never is
    start = village.run(2.0, "start", **fields)
    good = village.run(1.2, "good", parent=start, **fields)
    village.run(1.1, "mine", parent=start, by=BEN, **fields)
    village.run(1.0, "said", parent=start, by=ANN, **fields)
    village.run(0.9, "stranger", parent=start, by=STRANGER, **fields)
    false = village.run(0.8, "false", parent=start, by=ANN, **fields)
    definition = task.definition()
    published = Task(digest=task.digest, name=task.name, definition=definition, baseline=BLOB, harness={})
    village.append(AUTHOR, "task", published)
    village.confirm(good, 2.0, 1.3)
    village.refute(false, 1.9)
    with BlobStore(tmp_path / "blobs") as blobs:
        _, runs, _ = recall(village.log, blobs, task, village.now_ms, me=BEN.public)
    village.log.close()
    recalled = [(run.value, run.tier, run.believed) for run in runs]
    assert recalled == [
        (2.0, 3, True),
        (pytest.approx(1.305), 0, True),
        (1.1, 2, True),
        (1.0, 3, True),
        (0.9, 4, False),
        (0.8, None, False),
    ]


@pytest.mark.parametrize(("named", "believed"), [(2, [True, False]), (0, [True, True])])
def test_a_stranger_teaches_the_search_nothing_also_where_too_few_are_attested_to_verify(tmp_path, named, believed):
    village = Village.at(tmp_path, Trust(participants=frozenset(root.public for root in ROOTS[:named])))
    task = shipped_task()
    fields = {"task": task.digest, "budget": task.budget.amount}
    village.baseline = None
    village.run(1.0, "said", by=ANN, **fields)
    village.run(5.0, "said", by=STRANGER, **fields)
    with BlobStore(tmp_path / "blobs") as blobs:
        _, runs, _ = recall(village.log, blobs, task, village.now_ms, me=BEN.public)
    village.log.close()
    assert [run.believed for run in runs] == believed


@pytest.mark.parametrize("may", [True, False])
def test_nothing_is_built_on_a_program_that_this_machine_may_not_run(tmp_path, may):
    village, task = Village.at(tmp_path, Trust()), shipped_task()
    village.baseline = None
    run = village.run(1.0, "said", by=ANN, task=task.digest, budget=task.budget.amount)
    with BlobStore(tmp_path / "blobs") as blobs:
        source = blobs.put(b"said")
        run = village.append(ANN, "run", msgspec.structs.replace(run.body, source=source), [])
        problem, _, _ = recall(village.log, blobs, task, village.now_ms, me=BEN.public, may_run=lambda _: may)
        assert problem.source_of(run.id) == ("said" if may else None)
    village.log.close()


def cached(village, tmp_path, task, me):
    """The problem and the runs, as a worker of this device hears of them."""
    with BlobStore(tmp_path / "blobs") as blobs:
        problem, runs, _ = recall(village.log, blobs, task, village.now_ms, me=me.public)
    return problem, runs


TRUSTS = st.sampled_from([TRUST, TRUST, Trust(), Trust(participants=frozenset(root.public for root in ROOTS[:2]))])


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STORIES, st.sampled_from([*PEOPLE, STRANGER]), TRUSTS)
def test_the_leader_of_the_search_is_what_is_preferred(tmp_path_factory, story, me, trust):
    folder, task = tmp_path_factory.mktemp("log"), shipped_task()
    village = play(Village.at(folder, trust, task.definition()), story)
    chosen = preferred(village.log, village.task, trust_context(village.log, me.public))
    problem, runs = cached(village, folder, task, me)
    leader = best_run(problem, runs)
    village.log.close()
    assert (leader and leader.id) == (chosen and chosen.row.first)


@pytest.mark.slow
def test_no_run_of_a_proven_cheat_is_believed_however_many_there_are(tmp_path):
    task = shipped_task()
    village = Village.at(tmp_path, definition=task.definition())
    honest = village.run(1.5, "honest", by=ANN)
    village.run(1.0, "fraud", by=CEM, seed=7)
    for number in range(120):
        village.run(1.1 + number / 1000, f"fake {number}", by=CEM)
    problem, runs = cached(village, tmp_path, task, BEN)
    fakes = [run for run in runs if run.value is not None and run.value < 1.4]
    assert len(fakes) == 121
    assert [run for run in fakes if run.believed or run.tier is not None] == []
    assert best_run(problem, runs).id == honest.id
    village.log.close()


@pytest.mark.slow
def test_what_is_confirmed_or_refuted_is_known_as_such_however_far_down_it_stands(tmp_path):
    task = shipped_task()
    village = Village.at(tmp_path, definition=task.definition())
    for number in range(60):
        village.run(1.1 + number / 1000, f"said {number}", by=ANN)
    good, false = village.run(1.5, "good"), village.run(1.6, "false", by=CEM)
    village.confirm(good, 2.0, 1.5)
    village.refute(false, 1.9)
    problem, runs = cached(village, tmp_path, task, BEN)
    by_id = {run.id: run for run in runs}
    village.log.close()
    assert best_run(problem, runs).id == good.id
    assert (by_id[good.id].tier, by_id[false.id].tier, by_id[false.id].believed) == (0, None, False)


def test_a_value_that_nobody_can_have_measured_is_not_built_upon(tmp_path):
    task = shipped_task()
    village = Village.at(tmp_path, definition=task.definition())
    honest = village.run(1.5, "honest", by=ANN)
    village.run(task.metric.floor - 0.1, "impossible", by=CEM)
    problem, runs = cached(village, tmp_path, task, BEN)
    chosen = preferred(village.log, village.task, trust_context(village.log, BEN.public))
    village.log.close()
    assert chosen.row.first == best_run(problem, runs).id == honest.id


def test_who_repeats_the_best_program_and_says_that_it_fails_takes_no_lead_from_it(tmp_path):
    task = shipped_task()
    village = Village.at(tmp_path, definition=task.definition())
    good = village.run(1.2, "good", by=ANN)
    village.run(1.5, "other", by=ANN)
    for number in range(3):
        village.run(None, "good", by=CEM, status="crashed", replicate=number)
    problem, runs = cached(village, tmp_path, task, BEN)
    evidence = gather(runs, direction=problem.direction, noise=problem.noise, floor=problem.floor)
    village.log.close()
    assert evidence.leader().first.id == good.id
    assert evidence.leader().mean == 1.2


def sha(name):
    return hashlib.sha256(name.encode()).digest()


@pytest.mark.parametrize("unit", ["work", "seconds"])
def test_a_run_makes_another_one_of_its_program_needless_where_its_value_is_believed(tmp_path, unit):
    toy = write_toy_task(tmp_path / "toy")
    (toy / "task.toml").write_text((toy / "task.toml").read_text().replace('unit = "work"', f'unit = "{unit}"'))
    task = load_task(toy)
    village = Village.at(tmp_path, definition=task.definition())
    theirs = village.run(1.0, "said", by=ANN)
    village.run(0.9, "strange", by=STRANGER)
    village.run(None, "failed", by=ANN, status="crashed")
    mine = village.run(None, "mine", by=BEN, status="crashed", reason="division by zero")
    village.run(None, "stopped", by=BEN, status="cancelled")
    gone = village.run(1.0, "gone", by=BEN)
    village.append(BEN, "withdrawal", Withdrawal(), [gone.id])

    def before(program, replicate=0):
        return run_before(village.log, task, sha(program), replicate=replicate, me=BEN.public)

    assert (before("said"), before("mine")) == (theirs.id if unit == "work" else None, mine.id)
    assert [before(name) for name in ("strange", "failed", "stopped", "gone", "unknown")] == [None] * 5
    assert (before("said", 1), before("mine", 1)) == (None, None)
    village.log.close()


def test_what_is_known_of_a_program_is_said_in_a_few_words(tmp_path):
    task = load_task(write_toy_task(tmp_path / "toy"))
    village = Village.at(tmp_path, definition=task.definition())
    village.run(1.0, "said", by=ANN)
    village.run(None, "mine", by=BEN, status="crashed", reason="division by zero")
    until = village.now_ms + 60_000
    village.append(ANN, "claim", Claim(task=task.digest, source_digest=sha("tried"), until=until))

    def words(program, now_ms):
        return known_as(village.log, task, sha(program), now_ms, me=BEN.public)

    assert words("said", until).endswith("gave 1")
    assert words("mine", until).endswith("ended as crashed: division by zero")
    assert (words("tried", until - 1), words("tried", until + 1)) == ("another node is trying it now", "")
    assert words("new", until) == ""
    village.log.close()


def test_what_leads_a_smaller_size_beyond_luck_is_due_in_the_next_one_once(tmp_path):
    sizes = {name: shipped_by_name(name) for name in ("gpt-small", "gpt-small-m", "gpt-small-l")}
    baseline = sizes["gpt-small"].baseline.decode()
    better = baseline.replace("LR = 0.001 ", "LR = 0.003 ")
    with Notebook.at(tmp_path) as notebook:

        def ran(name, program, value, replicate=0):
            task = sizes[name]
            notebook.run(
                task.digest,
                value,
                source=program,
                source_digest=source_digest(program),
                budget=task.budget.amount,
                replicate=replicate,
            )

        def due(name):
            return due_from_smaller(notebook.log, notebook.blobs, sizes[name], notebook.now_ms, me=notebook.mine.public)

        for task in sizes.values():
            blob = notebook.blobs.put(task.baseline)
            published = Task(
                digest=task.digest, name=task.name, definition=task.definition(), baseline=blob, harness={}
            )
            notebook.append("task", published)
            ran(task.name, baseline, 1.5)
        ran("gpt-small", better, 1.2)
        assert due("gpt-small-m") is None  # one seed may be luck
        ran("gpt-small", better, 1.22, replicate=1)
        assert due("gpt-small-m") == (better, "gpt-small")
        assert due("gpt-small-l") is None  # the next smaller size has not shown it yet
        assert due("gpt-small") is None
        ran("gpt-small-m", better, 1.3)
        assert due("gpt-small-m") is None


def published_toy(notebook, folder, direction):
    """A task whose program prints its number, with X = 0.1 and Y = 0.1."""
    toy = write_toy_task(folder, TRAIN.replace("X = 0.9 ", "X = 0.1 "))
    text = (toy / "task.toml").read_text().replace("floor = 0.0\n", "")
    (toy / "task.toml").write_text(text.replace('"minimize"', f'"{direction}"\nsource = "stdout"'))
    task = load_task(toy)
    blob = notebook.blobs.put(task.baseline)
    published = Task(digest=task.digest, name="toy", definition=task.definition(), baseline=blob, harness={})
    notebook.append("task", published)
    return task


def test_where_values_are_impossible_is_a_dead_end(tmp_path):
    with Notebook.at(tmp_path) as notebook:
        task = published_toy(notebook, tmp_path / "toy", "minimize")
        base = task.baseline.decode()
        genomes = [{"X": x, "Y": 0.1} for x in (0.1, 0.6, 0.7, 0.8)]
        parent = None
        for genome, value in zip(genomes, (0.3, 1e16, 2e16, 1e16), strict=True):
            source = base.replace("X = 0.1", f"X = {genome['X']}")
            fields = {"genome": genome, "source_digest": source_digest(source), "budget": 1.0}
            run = notebook.run(task.digest, value, source=source, parent=parent, **fields)
            parent = parent or run
        (end,) = dead_ends_of(
            notebook.log, notebook.blobs, task.digest, task.metric, budget_of(task), me=notebook.mine.public
        )
    assert end.sentence.startswith("X at least 0.6: 3 tries, all failed: it is past the bound")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("direction", "diverged", "fault"),
    [("maximize", 1e16, "larger than any metric"), ("minimize", 1e16, "larger"), ("maximize", 1e7, "far beyond all")],
)
def test_the_search_leaves_the_part_where_values_are_impossible(tmp_path, direction, diverged, fault):
    """A printed number that diverged is not believed: its neighbours are not tried one after the other."""
    beyond, sign = 0, sign_of(direction)
    # Ids decide what is drawn; by drawn keys there are at times six.
    with Notebook.at(tmp_path, mine=KeyPair.from_seed(b"m" * 32)) as notebook:
        task = published_toy(notebook, tmp_path / "toy", direction)
        for number in range(16):
            me = notebook.mine.public
            problem, runs, _ = recall(notebook.log, notebook.blobs, task, notebook.now_ms, me=me)
            made = propose(problem, runs, [], worker="w", counter=number)
            x, y = made.genome["X"], made.genome["Y"]
            beyond += x > 0.5
            fields = {"genome": made.genome, "source_digest": made.source_digest, "replicate": made.replicate}
            value = diverged if x > 0.5 else sign * (1 - x + (y - 0.6) ** 2)
            notebook.run(task.digest, value, source=made.source, parent=made.parent, budget=1.0, **fields)
    assert 1 <= beyond <= 5, "the others are near what worked"
    assert {(run.value, run.believed, fault in run.fault) for run in runs} == {
        (None, True, True),
        *((run.value, True, False) for run in runs if run.value is not None),
    }
