"""Notes, claims and questions as a person types them, with the daemon down."""

from __future__ import annotations

import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.discussion import AskAnswer, ClaimsAnswer, NoteAnswer, NotesAnswer
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Note
from autoresearch.run.experiment import plan_as_it_stands
from tests.cli.conftest import Cli
from tests.cli.filling import START_MS, TRAIN, Filled, measured
from tests.cli.test_json import strictly
from tests.log.standing.village import ANN, STRANGER, Village
from tests.nasty import NASTY, harms
from tests.record.making import digest_of, task_body

LATER_MS = START_MS + 700_000


def note_texts(cli: Cli, *words: str) -> list[str]:
    return [note.text for note in strictly(cli("note", "list", *words, "--json").stdout, NotesAnswer).notes]


def test_a_note_has_one_run_several_or_none_as_its_evidence(cli: Cli, filled: Filled) -> None:
    both = cli("note", "add", "@", "lower X helps", "--evidence", filled.ids[0], "--evidence", "@", "--json")
    assert strictly(both.stdout, NoteAnswer).note.evidence == [filled.best, filled.ids[0]]
    alone = cli("note", "add", "try X below one", "--topic", "hypothesis")
    assert alone.exit_code == 0
    assert "hypothesis on the task my-task" in alone.stderr
    assert note_texts(cli) == ["try X below one", "lower X helps"]
    for words in (("@",), ("text",), (filled.best,)):
        done = cli("note", "add", *words)
        assert (done.exit_code, "alone says nothing" in done.stderr) == (2, True)
    assert cli("note", "add", "two words", "--evidence", "aaaaaaaa").exit_code == 4


def test_evidence_of_two_tasks_is_refused(cli: Cli, village: Village) -> None:
    other = {**village.definition, "name": "other"}
    village.append(ANN, "task", task_body(other))
    elsewhere = village.run(1.0, "elsewhere", task=digest_of(other))
    done = cli(
        "note",
        "add",
        "it is on two",
        "--evidence",
        format_id(elsewhere.id),
        "--evidence",
        format_id(village.baseline.id),
    )
    assert (done.exit_code, "several tasks" in done.stderr) == (2, True)


def test_words_find_notes_whatever_their_endings_and_signs(cli: Cli, filled: Filled) -> None:
    for text in ("BATCH_SIZE of 64 helped the schedule", "smaller batches diverge at 0.0083", "naïve warm-up"):
        assert cli("note", "add", text).exit_code == 0
    assert note_texts(cli, "batch size") == ["BATCH_SIZE of 64 helped the schedule"]
    assert note_texts(cli, "batch") == note_texts(cli, "BATCHES")
    assert len(note_texts(cli, "batch")) == 2
    assert note_texts(cli, "0.0083") == ["smaller batches diverge at 0.0083"]
    assert note_texts(cli, "naive") == ["naïve warm-up"]
    assert note_texts(cli, "sched") == ["BATCH_SIZE of 64 helped the schedule"]
    assert note_texts(cli, "diverge", "nowhere") == ["smaller batches diverge at 0.0083"]  # none has both


@pytest.mark.parametrize(
    "typed",
    ['"', "(", "a AND", "* OR *", "text:x", "NEAR(a b, 1)", "-x", "^", "…", "a\tb", NASTY, "🙂", "x" * 400, "' --"],
)
def test_no_words_break_the_search(cli: Cli, filled: Filled, typed: str) -> None:
    assert cli("note", "add", "a plain note about x").exit_code == 0
    for command in ("list", "ask"):
        done = cli("note", command, "--", typed)
        assert done.exit_code in (0, 2), done.stderr
        assert "can't be used" not in done.stderr
        assert not harms(done.stdout + done.stderr)


def test_notes_that_led_to_better_runs_come_first(cli: Cli, village: Village) -> None:
    notes = [
        village.append(ANN, "note", Note(topic="insight", text="the width helps", task=village.task)) for _ in "abc"
    ]
    village.run(2.5, "worse", links=[notes[0]])
    village.run(1.5, "better", links=[notes[1]])
    answer = strictly(cli("note", "list", "width", "--json").stdout, NotesAnswer)
    assert [note.id for note in answer.notes] == [format_id(notes[number].id) for number in (1, 2, 0)]
    assert [(note.better, note.worse) for note in answer.notes] == [(1, 0), (0, 0), (0, 1)]
    village.run(0.1, "a stranger's", by=STRANGER, links=[notes[0]])
    assert cli("note", "list", "width", "--json").stdout.count('"better":1') == 1


def test_strangers_notes_come_last_and_answer_no_question(cli: Cli, village: Village) -> None:
    texts = {
        ANN: "dropout of 0.1 is a little better than none at all, as far as I can see",
        STRANGER: "dropout dropout",
    }
    for author, text in texts.items():
        village.append(author, "note", Note(topic="insight", text=text, task=village.task))
    assert note_texts(cli, "dropout") == list(texts.values())
    assert note_texts(cli) == list(texts.values())
    assert note_texts(cli, "-n", "1") == [texts[ANN]]
    answer = strictly(cli("note", "ask", "does dropout help?", "--json").stdout, AskAnswer)
    assert [note.text for note in answer.notes] == [texts[ANN]]


def test_withdrawn_words_are_found_no_more(cli: Cli, filled: Filled) -> None:
    note = strictly(cli("note", "add", "the moon is made of cheese", "--json").stdout, NoteAnswer).note
    assert note_texts(cli, "moon")
    assert cli("run", "withdraw", note.id, "--yes").exit_code == 0
    assert not note_texts(cli, "moon")
    assert "nothing on my-task has words" in cli("note", "ask", "is the moon cheese?").stderr


def test_claims_say_what_is_tried_by_whom_and_until_when(
    cli: Cli, filled: Filled, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nothing is being tried on my-task" in cli("run", "claims").stderr
    monkeypatch.setattr("autoresearch_cli.home.now_ms", lambda: LATER_MS + 60_000)
    plan = plan_as_it_stands(filled.task, TRAIN.format(x=1.2), title="X 1.3 -> 1.2")
    with Notebook(paths) as notebook:
        notebook.publish_claim(plan, LATER_MS, seconds=1800)
        notebook.publish_claim(plan, LATER_MS + 1, seconds=60)  # its own run takes the claim over
        assert notebook.log.records.count("claim") == 1
    [claim] = strictly(cli("run", "claims", "--json").stdout, ClaimsAnswer).claims
    assert (claim.title, claim.is_own, claim.until_ms) == ("X 1.3 -> 1.2", True, LATER_MS + 1_860_000)
    assert "X 1.3 -> 1.2" in cli("run", "claims", "--task", "my-task").stdout
    with Notebook(paths) as notebook:
        notebook.publish_run(plan, measured(1.2), LATER_MS + 2)
    assert strictly(cli("run", "claims", "--json").stdout, ClaimsAnswer).claims == []


def test_a_question_names_parameters_notes_and_failures(cli: Cli, filled: Filled) -> None:
    cli("note", "add", "@", "X below 1.3 was never tried")
    answer = strictly(cli("note", "ask", "which", "values", "of", "X", "were", "tried?", "--json").stdout, AskAnswer)
    [tried] = answer.parameters
    assert (tried.name, tried.tried) == ("X", 6)
    assert [(each.value, each.best, each.failed) for each in tried.values][:2] == [(1.3, 1.3, 0), (1.35, 1.35, 0)]
    assert tried.values[0].id == filled.best
    assert (tried.values[-1].value, tried.values[-1].failed, tried.values[-1].best) == (9.9, 1, None)
    assert [note.text for note in answer.notes] == ["X below 1.3 was never tried"]
    assert [run.id for run in answer.failures] == [filled.crash]
    assert "raise X" in cli("note", "ask", "what became too large?").stdout
    assert (answer.text, answer.cited, answer.model) == ("", [], "")


def test_a_question_without_a_word_is_refused(cli: Cli, filled: Filled) -> None:
    for question in ("???", " ", "x" * 501):
        done = cli("note", "ask", question)
        assert (done.exit_code, "the question has" in done.stderr) == (2, True)


def test_with_a_model_and_no_daemon_the_records_come_alone(
    cli: Cli, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTORESEARCH_LLM_MODEL", "some-model")
    assert "is not running: autoresearch up" in cli("note", "ask", "which X?").stderr
    assert "no model's words" not in cli("note", "ask", "which X?", "--no-model").stderr


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            "what is the best value so far?",
            "the best value is 1.3000 reported, of “lower X again”; 1 seed, 2 runs ago; the baseline has 1.5000",
        ),
        ("Who leads, and by what?", "of the way to the floor 1.0000"),
        ("what failed and why?", "1 of 6 runs failed: 1 stopped with an error"),
        ("which errors were there", "1 time: ValueError: X is too large"),
        ("did anything run out of memory?", "1 of 6 runs failed"),
        ("how much noise is there?", "no program was run with two seeds here; the task states 0.0100"),
        ("Is the gain significant, or luck of a seed?", "no program was run with two seeds here"),
        ("how many runs are there?", "6 runs by 2 participants, 1 failed; 5 programs with a value"),
        ("who took part?", "participants by their runs"),
        ("what helped?", "raising X was better in 0 of 4 pairs with the parent"),
        ("does X matter?", "raising X was better in 0 of 4 pairs"),
        ("what should I try next?", "a hypothesis that no run cites: a cosine schedule for X"),
        ("what has nobody tried?", "a hypothesis that no run cites"),
        ("the model against the search: which is better?", "better than their parent, by who proposed them: by hand"),
        ("how long does a run take?", "a run takes 1 min"),
        ("what happened lately?", "since yesterday"),
        ("what happened in the last 30 days?", "in the last 30 d: 6 runs"),
    ],
)
def test_what_is_asked_most_often_is_answered_by_the_numbers(
    cli: Cli, filled: Filled, question: str, sentence: str
) -> None:
    cli("note", "add", "a cosine schedule for X", "--topic", "hypothesis")
    answer = strictly(cli("note", "ask", question, "--json").stdout, AskAnswer)
    assert any(sentence in fact.sentence for fact in answer.facts), [fact.sentence for fact in answer.facts]
    assert sentence in cli("note", "ask", question).stdout


def test_a_fact_names_the_records_that_show_it_and_nothing_else_is_answered(cli: Cli, filled: Filled) -> None:
    best = strictly(cli("note", "ask", "what is the best?", "--json").stdout, AskAnswer)
    assert [fact.ids for fact in best.facts] == [[filled.best]]
    failed = strictly(cli("note", "ask", "why did it crash?", "--json").stdout, AskAnswer)
    assert {id_ for fact in failed.facts for id_ in fact.ids} == {filled.crash}
    assert strictly(cli("note", "ask", "which values of X were tried?", "--json").stdout, AskAnswer).facts == []
