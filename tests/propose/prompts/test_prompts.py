"""What a model or an agent is told: the same text for the same records, never above its bytes."""

from __future__ import annotations

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.propose.mind.brief import usable_operators
from autoresearch.propose.mind.fixed_files import WHOLE_BYTES, fixed_files, in_short
from autoresearch.propose.mind.history import Attempt, CitedNote, History, LeadingProgram, ProgramDiff
from autoresearch.propose.mind.recall import reply_rules
from autoresearch.propose.mind.reply import BadReply, read_reply
from autoresearch.propose.mind.writing import LEAST_BYTES, history_text, prompt_text
from autoresearch.propose.program.guard import names_of
from autoresearch.propose.search.effects import Effect
from autoresearch.record.kinds import Note, Withdrawal
from autoresearch.task.loading import shipped_task
from autoresearch.task.model import Task
from autoresearch.trust.roster import Trust
from autoresearch.words import Operator
from tests.propose.prompts.story import ME, OTHER, Story, program
from tests.record.making import NETWORK, pairs

GOLDEN = Path(__file__).parent / "golden.txt"


@functools.cache
def full_story() -> Story:
    """The story, written once for all examples."""
    return Story.at(Path(tempfile.mkdtemp())).tell()


def test_the_text_is_this_one(story: Story) -> None:
    """To write it anew after a wanted change: remove golden.txt and run this test twice."""
    text = prompt_text(story.tell().history(), story.task, 32_000)
    if not GOLDEN.exists():
        GOLDEN.write_text(text)
        pytest.fail("golden.txt was written; read it")
    assert text == GOLDEN.read_text()


def test_a_kind_of_change_can_be_asked_for_where_there_is_something_to_do_it_with(story: Story) -> None:
    history = replace(story.tell().history(), runs=3, others=(), steps=())
    assert usable_operators(history) == [Operator.IMPROVE]
    change = ProgramDiff(history.frontier[0], ("- X = 1", "+ X = 2"))
    every = replace(history, runs=20, others=(change,), steps=(change, change))
    assert set(usable_operators(every)) == set(Operator)
    texts = {prompt_text(every, story.task, 32_000, operator) for operator in Operator}
    assert len(texts) == len(Operator)
    assert len({text.partition("## Your answer")[0] for text in texts}) == 1, "the part that caches hold is the same"


def test_history_is_the_same_without_program_and_answer(story: Story) -> None:
    state = story.tell().history()
    history = history_text(state, story.task, 32_000)
    assert "## Best programs" in history
    assert "SEARCH" not in history
    assert "import prepare" not in history


def test_a_noise_that_nobody_knows_is_not_said_to_be_none(story: Story) -> None:
    history = story.tell().history()
    assert "deviation of 0.125." in history_text(replace(history, noise=0.125), story.task, 32_000)
    unknown = history_text(replace(history, noise=None, assumed=0.0131), story.task, 32_000)
    assert "- Noise: unknown (the search assumes about 0.013): no program was measured with two seeds." in unknown
    assert "deviation of" not in unknown
    none = history_text(replace(history, noise=0.0), story.task, 32_000)
    assert "one program gives the same value with each seed" in none


def test_what_a_person_hides_is_told_to_no_model(story: Story) -> None:
    text = prompt_text(story.tell().history(), story.task, 64_000)
    hidden = ("go on in this direction", "a larger Y never helps", "Y near 0.6", "ZeroDivisionError", "X 0.5 -> 0.3")
    assert all(words in text for words in hidden)
    titles = {"X 0.7 -> 0.5", "divide"}
    ids = [record.id for record in story.records if getattr(record.body, "title", "") in titles | {"X 0.5 -> 0.3"}]
    ids += [record.id for record in story.records if getattr(record.body, "text", "")[:6] in {"a larg", "Y near"}]
    hide(story.log, [HiddenRow(record, b"", "", 0) for record in ids])
    text = prompt_text(story.history(), story.task, 64_000)
    assert not any(words in text for words in hidden)
    assert "X = 0.5" not in text, "nor is it built on"
    assert "the lowest point lies below" in text


@settings(max_examples=8)
@given(st.randoms(use_true_random=False))
def test_the_order_in_which_records_came_is_no_matter(random: object) -> None:
    story = full_story()
    shuffled = list(story.records)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder, Log.open(Path(folder) / "log.sqlite", NETWORK) as other:
        for record in shuffled:
            other.writer.ingest(pairs([record]), now_ms=story.now_ms)
        assert prompt_text(story.history(other), story.task, 8_000) == prompt_text(story.history(), story.task, 8_000)


text = st.text(max_size=200)
numbers = st.floats(allow_nan=False, allow_infinity=False)
attempts = st.builds(
    Attempt, id=st.just("abcdefgh"), title=text, hypothesis=text, value=numbers | st.none(), seeds=st.integers(1, 9),
    parent=st.just("abcdefgh"), delta=numbers | st.none(), margin=numbers | st.none(), state=st.just("reported"),
    status=text, reason=text,
)  # fmt: skip
besides = st.builds(
    ProgramDiff, program=attempts, lines=st.lists(text, max_size=16).map(tuple), more=st.integers(0, 99)
)
notes = st.builds(CitedNote, id=st.just("abcdefgh"), text=text, better=st.integers(0, 99), worse=st.integers(0, 99))
changes = st.builds(
    Effect,
    parameter=text,
    pairs=st.integers(1, 99),
    better=st.integers(0, 9),
    worse=st.integers(0, 9),
    median=numbers | st.none(),
    low=numbers | st.none(),
    high=numbers | st.none(),
    raised=st.integers(0, 99),
    raised_failed=st.integers(0, 99),
    lowered=st.integers(0, 99),
    lowered_failed=st.integers(0, 99),
)
bests = st.builds(
    LeadingProgram,
    id=st.just("abcdefgh"),
    value=numbers | st.none(),
    seeds=st.integers(1, 9),
    state=st.just("reported"),
    source=st.none() | st.text(max_size=9_000),
)


def several(of: st.SearchStrategy[object], most: int) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(of, max_size=most).map(tuple)


histories = st.builds(
    History,
    best=bests,
    baseline=numbers | st.none(),
    noise=numbers,
    runs=st.integers(0, 10**9),
    since_best=st.integers(0, 10**9),
    frontier=several(attempts, 20),
    recent=several(attempts, 40),
    steps=several(besides, 6),
    others=several(besides, 3),
    failures=several(attempts, 20),
    causes=several(st.tuples(text, st.integers(1, 99)), 8),
    untried=several(text, 20),
    effects=several(changes, 30),
    hypotheses=several(notes, 20),
    insights=several(notes, 20),
    past=several(notes, 20),
    claims=several(text, 20),
    names=st.sampled_from([None, names_of(shipped_task())]),
)


def longest_task() -> Task:
    """A task whose every text is as long as it may be."""
    task = shipped_task()
    metric = msgspec.structs.replace(task.metric, name="m" * 64, floor=-1.23456789e-20, noise=1.23456789e-20)
    return msgspec.structs.replace(task, name="n" * 64, summary="\N{FACE WITH TEARS OF JOY}" * 280, metric=metric)


@settings(max_examples=15)
@given(histories, st.integers(LEAST_BYTES, 20_000), st.booleans())
def test_no_text_is_above_its_bytes(history: History, budget: int, long: bool) -> None:
    task = longest_task() if long else shipped_task()
    for write in (prompt_text, history_text):
        written = write(history, task, budget)
        assert len(written.encode()) <= budget
        assert written == write(history, task, budget)
    assert ">>>>>>> REPLACE" in prompt_text(history, task, budget)


def test_too_few_bytes_are_refused(story: Story) -> None:
    with pytest.raises(ValueError, match="4096"):
        prompt_text(story.history(), story.task, LEAST_BYTES - 1)


def test_less_important_rows_go_first_and_the_text_says_so(story: Story) -> None:
    history = story.tell().history()
    many = replace(history, recent=history.recent * 30, best=replace(history.best, source="X = 1\n" * 100))
    prompt = prompt_text(many, story.task, 6_000)
    assert "## Latest runs (" in prompt
    assert "## Best programs\n" in prompt
    assert "X = 1\n" * 100 in prompt


def test_a_program_that_does_not_fit_is_left_out_with_a_word(story: Story) -> None:
    history = story.tell().history()
    large = replace(history, best=replace(history.best, source="X = 1\n" * 5_000))
    assert "left out here" in prompt_text(large, story.task, 8_000)


def test_insights_stand_in_the_order_of_what_became_of_their_runs(story: Story) -> None:
    history = story.tell().history()
    assert [(note.text, note.better, note.worse) for note in history.insights] == [
        ("a smaller X helps on every seed", 2, 0),
        ("a larger Y never helps", 0, 2),
    ]
    assert [note.text for note in history.hypotheses] == ["Y near 0.6 should help"]


def test_results_from_elsewhere_come_last_and_the_best_of_them_first(story: Story) -> None:
    for value, text in ((0.5, "a1: wider"), (0.4, "b2: deeper"), (None, "c3: both")):
        metrics = {} if value is None else {"distance": value}
        status = "crash" if value is None else "keep"
        story.append("note", Note(topic="history", text=text, task=story.task.digest, metrics=metrics, status=status))
    results = [result.text for result in story.history().past]
    assert results == ["keep 0.4: b2: deeper", "keep 0.5: a1: wider", "crash: c3: both"]
    history = history_text(story.history(), story.task, 8_000)
    assert history.index("## Results from elsewhere") > history.index("One run trains it once")


def test_a_withdrawn_note_is_not_there(story: Story) -> None:
    note = story.note("insight", "never mind")
    assert story.history().insights
    story.append("withdrawal", Withdrawal(), by=OTHER, links=(note.id,))
    assert not story.history().insights


def test_where_trust_names_somebody_strangers_have_no_word(story: Story, tmp_path: Path) -> None:
    story.tell()
    trust = Trust(participants=frozenset({ME.public}))
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=trust, read_only=True) as log:
        prompt = prompt_text(story.history(log), story.task, 32_000)
    assert "X 0.9 -> 0.7" in prompt
    for words in ("X 0.7 -> 0.5", "helps on every seed", "X 0.5 -> 0.3", "Y near 0.6"):
        assert words not in prompt


def test_an_answer_may_not_repeat_what_the_log_knows(story: Story) -> None:
    rules = reply_rules(story.tell().log, story.task, program(0.5), now_ms=story.now_ms, me=ME.public)
    blocks = "<<<<<<< SEARCH\nX = 0.5  # float [0.0, 1.0]\n=======\nX = {}\n>>>>>>> REPLACE"
    answer = f"TITLE: back\nHYPOTHESIS: it was good\n{blocks}"
    with pytest.raises(BadReply, match=r"gave 0\.41"):
        read_reply(answer.replace("{}", "0.7"), rules)
    assert read_reply(answer.replace("{}", "0.3"), rules).source_digest
    assert rules.guard is None
    assert reply_rules(story.log, shipped_task(), "", now_ms=0).guard is not None


@pytest.mark.parametrize("runs", [0, 1])
def test_a_plateau_asks_for_another_structure(story: Story, runs: int) -> None:
    story.tell()
    for number in range(16 * runs):
        story.run(0.7, program(0.9, 0.2 + number / 100), title="worse")
    assert ("change of structure" in prompt_text(story.history(), story.task, 8_000)) == bool(runs)


def test_fixed_files_are_told_in_short_and_hidden_ones_never() -> None:
    task = shipped_task()
    assert task.hidden & task.harness.keys()
    listing = fixed_files(task, 8192)
    assert "Work is FLOPs + 1.15e6 per operation" in listing
    assert "OPERATION_WORK = 1.15e6" in listing
    assert "def batches(self, docs):" in listing
    assert "TorchDispatchMode" in listing
    assert "return hashlib" not in listing
    for name in task.hidden:
        assert f"\n{name}:\n" not in listing
    assert len(listing.encode()) <= 8192
    assert fixed_files(task, 1000) == ""


@settings(deadline=None)
@given(st.text(max_size=3000), st.sampled_from(["a.py", "a.txt"]))
def test_any_file_has_a_short_form(text: str, name: str) -> None:
    assert len(in_short(name, text).encode()) <= max(len(text.encode()), 4 * WHOLE_BYTES + 60)


def test_the_best_run_says_what_it_took(story: Story) -> None:
    first = story.run(0.61, program(0.9), duration_ms=61_000, peak_memory_bytes=3 << 30, metrics={"steps": 12.0})
    assert first
    assert "- The best run took 12 steps, 1 min 1 s, 3.0 GiB of memory." in prompt_text(
        story.history(), story.task, 8_000
    )


def test_the_way_to_the_best_is_told_by_its_lines_and_what_may_be_combined_with_it(story: Story) -> None:
    first = story.run(0.9, program(0.9), title="the baseline", genome={"X": 0.9, "Y": 0.1})
    left = story.run(0.5, program(0.5), parent=first, title="a lower X", genome={"X": 0.5, "Y": 0.1})
    best = story.run(0.3, program(0.3), parent=left, title="lower still", genome={"X": 0.3, "Y": 0.1})
    story.run(0.6, program(0.9, 0.7), parent=first, title="a higher Y", genome={"X": 0.9, "Y": 0.7})
    story.run(0.95, program(0.95), parent=first, title="worse", genome={"X": 0.95, "Y": 0.1})
    story.run(0.31, program(0.3, 0.2), parent=best, title="from the best one", genome={"X": 0.3, "Y": 0.2})
    history = story.history()

    assert [step.program.title for step in history.steps] == ["lower still", "a lower X"]
    assert [line[:8] for line in history.steps[0].lines] == ["-X = 0.5", "+X = 0.3"]
    assert [other.program.title for other in history.others] == ["a higher Y"]
    assert [line[:8] for line in history.others[0].lines] == ["-X = 0.3", "-Y = 0.1", "+X = 0.9", "+Y = 0.7"]
    history_prompt = history_text(history, story.task, 32_000)
    assert "## Worth combining" in history_prompt
    assert "\n  +Y = 0.7 # float [0.0, 1.0]\n" in history_prompt


def test_failures_are_counted_by_cause_and_what_nobody_changed_is_named(story: Story) -> None:
    first = story.run(0.9, program(0.9), genome={"X": 0.9, "Y": 0.1})
    for x in (0.1, 0.2):
        story.run(None, program(x), parent=first, status="out_of_memory", genome={"X": x, "Y": 0.1})
    history_prompt = history_text(story.history(), story.task, 32_000)
    assert "- 2 runs failed: 2 out of memory.\n" in history_prompt
    assert "- Nobody has changed yet: Y" in history_prompt
