"""Questions in plain words over a log of 13 runs of the task moons: answered by its numbers, or honestly not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from autoresearch.ask.asking import ask_answer
from autoresearch.ask.discussion import AskAnswer
from autoresearch.ask.lookup import find_task
from autoresearch.propose.mind.recall import known_genome
from autoresearch.record.kinds import Proposer
from autoresearch.record.kinds import Task as TaskBody
from autoresearch.task.loading import shipped_tasks
from autoresearch.task.program import source_digest
from tests.ask.notebook import Notebook

SEARCH = Proposer(name="search", version="1")


class Moons:
    """What a day of research on the task moons left: its values are those of real runs."""

    def __init__(self, notebook: Notebook) -> None:
        self.notebook = notebook
        self.task = next(task for task in shipped_tasks() if task.name == "moons")
        self.train = self.task.baseline.decode()
        put = notebook.blobs.put
        notebook.append(
            "task",
            TaskBody(
                digest=self.task.digest,
                name="moons",
                definition=self.task.definition(),
                baseline=put(self.task.baseline),
                harness={name: put(content) for name, content in self.task.harness.items()},
            ),
        )
        first = self.run(0.3735, self.program(), title="the baseline")
        rate = self.run(
            0.2487, self.program(rate=0.03), parent=first, title="LEARNING_RATE 0.002 -> 0.03",
            hypothesis="the loss still falls when the budget ends",
        )  # fmt: skip
        self.run(0.2443, self.program(rate=0.03), parent=rate, title="again", replicate=1)
        self.run(0.2502, self.program(rate=0.03, momentum=0.5), parent=rate, title="MOMENTUM 0 -> 0.5", proposer=SEARCH)
        self.run(0.2611, self.program(rate=0.03, momentum=0.9), parent=rate, title="MOMENTUM 0 -> 0.9", proposer=SEARCH)
        falling = self.run(
            0.2331, self.program(falling=0.08), parent=rate, title="a falling rate",
            hypothesis="large steps first, small ones last",
        )  # fmt: skip
        wider = self.run(0.2326, self.program(hidden=8, falling=0.08), parent=falling, title="HIDDEN 6 -> 8")
        self.run(0.2297, self.program(hidden=12, falling=0.08), parent=wider, title="HIDDEN 8 -> 12", proposer=SEARCH)
        self.run(0.2401, self.program(hidden=4, falling=0.08), parent=wider, title="HIDDEN 8 -> 4", proposer=SEARCH)
        self.run(0.2512, self.program(hidden=24, falling=0.08), parent=wider, title="HIDDEN 8 -> 24", proposer=SEARCH)
        self.run(0.2357, self.program(hidden=8, falling=0.16), parent=wider, title="RATE 0.08 -> 0.16", proposer=SEARCH)
        self.run(
            None, self.program() + "import numpy\n", parent=wider, title="numpy for speed", status="crashed",
            reason="ModuleNotFoundError: No module named 'numpy'",
        )  # fmt: skip
        self.run(
            None, self.program(hidden=9), parent=wider, title="two passes", status="over_budget",
            reason="4.1 s of 1.7 s allowed", by=notebook.other,
        )  # fmt: skip
        notebook.note("a falling rate beats every constant one", task=self.task.digest)

    def program(self, hidden: int = 6, rate: float = 0.002, momentum: float = 0.0, falling: float = 0.0) -> str:
        text = self.train.replace("HIDDEN = 6", f"HIDDEN = {hidden}").replace(
            "MOMENTUM = 0.0", f"MOMENTUM = {momentum}"
        )
        if falling:
            text = text.replace("LEARNING_RATE = 0.002", f"RATE = {falling}\nLEARNING_RATE = RATE")
            return text.replace("    units, p =", "    LEARNING_RATE = RATE * (1 - prepare.used())\n    units, p =", 1)
        return text.replace("LEARNING_RATE = 0.002", f"LEARNING_RATE = {rate}")

    def run(self, value: float | None, source: str, **fields: object) -> bytes:
        log, blobs, parent = self.notebook.log, self.notebook.blobs, fields.get("parent")
        genome, base = known_genome(log, blobs, self.task, source, parent if isinstance(parent, bytes) else None)
        run: bytes = self.notebook.run(
            self.task.digest,
            value,
            source=source,
            source_digest=source_digest(source),
            budget=float(self.task.budget.amount),
            duration_ms=1500,
            genome=genome,
            base=base,
            **fields,
        )
        return run

    def ask(self, question: str) -> AskAnswer:
        notebook = self.notebook
        task = find_task(notebook.log, "moons")
        return ask_answer(
            notebook.log, notebook.blobs, task, question, now_ms=notebook.now_ms + 1000, me=notebook.mine.public
        )


@pytest.fixture(scope="module")
def moons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moons]:
    with Notebook.at(tmp_path_factory.mktemp("moons")) as notebook:
        yield Moons(notebook)


def in_words(answer: AskAnswer) -> str:
    """All that an answer says, a line each."""
    lines = [fact.sentence for fact in answer.facts]
    for parameter in answer.parameters:
        lines += [f"{parameter.name} = {value.value}: best {value.best}" for value in parameter.values]
    lines += [f"note {note.text}" for note in answer.notes]
    lines += [f"run {run.title}: {run.value} {run.reason}" for run in (*answer.runs, *answer.failures)]
    return "\n".join(lines)


# The 20 questions of an outside reading. An answer has each of these, as patterns.
READ = {
    "what is the best value so far?": ["best value is 0.2297"],
    "which learning rates were tried?": [r"LEARNING_RATE = 0.03", r"LEARNING_RATE = 0.002"],
    "does momentum help?": ["raising MOMENTUM was better in 0 of 2 pairs"],
    "why did runs fail?": ["No module named 'numpy'", "4.1 s of 1.7 s"],
    "how many runs failed?": ["2 of 13 runs failed"],
    "how much noise is there?": ["0.005"],
    "who works on this?": ["participants by their runs"],
    "how long does a run take?": ["a run takes 1.5 s"],
    "has anybody tried Adam?": [r"^$"],
    "was HIDDEN 24 tried?": ["HIDDEN = 24: best 0.2512"],
    "which setting matters most?": ["raising HIDDEN was better in"],
    "how do I beat the best?": ["best value is 0.2297", "the search would try", "repeat"],
    "what did the falling rate bring?": [
        r"“a falling rate” gave 0.2331 \(1 run\), 0.0134 better than its parent",
        "beyond the noise",
    ],
    "what changed between the baseline and the best?": ["HIDDEN 6 -> 12", r"0.3735", r"0.2297"],
    "what should I try next?": ["the search would try", "not told apart", "most worth repeating"],
    "is 0.9 better than 0.8?": ["no program has the value 0.9 or 0.8"],
    "is 0.2326 really better than 0.2331?": [r"0.0005 better", r"± 0.01", "within the noise", "nobody can tell"],
    "is a wider network better?": ["raising HIDDEN was better in", "HIDDEN = 12: best 0.2297"],
    "how far are we from the floor?": ["there is no floor: the task states none"],
    "which run should I repeat?": ["most worth repeating is “HIDDEN 8 -> 12”"],
    "Welche Lernraten wurden schon versucht, und was ist das Beste?": ["best value is 0.2297|read in English"],
}


@pytest.mark.parametrize("question", READ)
def test_a_question_is_answered_by_the_numbers(moons: Moons, question: str) -> None:
    answer = in_words(moons.ask(question))
    for pattern in READ[question]:
        assert re.search(pattern, answer), answer


# Written before the answers to them were, ten at a time.
UNSEEN = {
    "did the search or I do better?": ["by hand", r"search \d of \d"],
    "is momentum 0.9 worth it compared with 0.5?": [
        "MOMENTUM = 0.9: best 0.2611",
        "0.0109 better than “MOMENTUM 0 -> 0.9”",
        "within the noise",
    ],
    "which change brought the most?": ["LEARNING_RATE 0.002 -> 0.03", "0.12"],
    "can I trust the best value?": ["one seed|1 run", "not told apart|within the noise"],
    "how many seeds would I need to tell 0.2297 from 0.2326?": [r"\d+ seeds of each"],
    "what is the worst run that did not fail?": ["0.3735"],
    "should I lower the learning rate?": ["raising LEARNING_RATE was better in 1 of 1"],
    "have we plateaued?": [r"\d+ runs since the best"],
    "what did the last run with a value do?": ["RATE 0.08 -> 0.16", "0.2357", "0.0031 worse"],
    "combien de runs ont échoué ?": ["read in English"],
    "is HIDDEN 12 better than HIDDEN 8?": ["HIDDEN 12 beside 8: .* 0.0029 better", "within the noise"],
    "compare the baseline with a falling rate": ["0.1404 worse", "beyond the noise"],
    "what are the top 3 programs?": ["HIDDEN 8 -> 12", "HIDDEN 6 -> 8", "a falling rate"],
    "did anything beat the falling rate?": ["“HIDDEN 8 -> 12” \\(0.2297"],
    "what would a deeper network do?": ["no program here has a setting that is known to be its depth"],
    "which runs are not reproducible?": ["runs of one program differ by 0.0031"],
    "how much of the gain is luck?": ["0.0029 better", "within the noise"],
    "what remains untested?": ["the search would try"],
    "how many parameters were varied?": ["runs have changed 4 settings: .*HIDDEN"],
    "why is momentum bad?": ["raising MOMENTUM was better in 0 of 2"],
    "is it worth tuning momentum any further?": ["raising MOMENTUM was better in 0 of 2"],
    "did the numpy idea fail, and why?": ["No module named 'numpy'"],
    "what are people trying right now?": ["nothing is being tried now"],
    "how does HIDDEN 24 compare to the best?": ["“HIDDEN 8 -> 24” gave 0.2512 .* 0.0215 worse"],
    "what would happen with a learning rate of 0.01?": ["LEARNING_RATE = 0.03"],
    "summarise what we learned": [
        "an insight: a falling rate beats every constant one",
        "0.127 better than its parent",
    ],
    "how many programs are as good as the best one?": ["not told apart from the best"],
    "is the search any good here?": ["search 1 of 6"],
    "how reliable is 0.2465?": [r"0.2465 \(2 runs\), 0.0168 worse", "beyond the noise"],
    "which idea should I drop?": ["raising MOMENTUM was better in 0 of 2"],
    "what's our second best result?": ["“HIDDEN 6 -> 8” 0.2326"],
    "should we stop here?": ["5 runs since the best one", "not told apart"],
    "how big is the gap between the top two?": ["0.0029 (?:better|worse)", "within the noise"],
    "which hyperparameter hurts?": ["raising MOMENTUM was better in 0 of 2"],
    "what did we try with the learning rate?": ["LEARNING_RATE = 0.03", "LEARNING_RATE = 0.002"],
    "how many seeds did the best one get?": ["1 seed, 5 runs ago"],
    "are 12 hidden units enough?": ["HIDDEN = 12: best 0.2297"],
    "who found the best program?": ["participants by their runs", "best value is 0.2297"],
    "when was the best found?": ["5 runs ago"],
    "is 0.2401 within noise of the best?": ["0.0104 worse", "within the noise"],
    "do larger hidden layers pay off?": ["raising HIDDEN was better in 3 of 4"],
    "what was the first improvement?": ["“LEARNING_RATE 0.002 -> 0.03” gave"],
    "which runs ran over budget?": ["4.1 s of 1.7 s"],
    "can I go below 0.22?": ["the search would try"],
    "does RATE 0.16 beat RATE 0.08?": ["0.0031 better", "within the noise"],
    "how sure are we that HIDDEN 12 is best?": ["0.0029 better", "within the noise"],
    "was ist der beste Wert bisher?": ["best value is 0.2297"],
}


@pytest.mark.parametrize("question", UNSEEN)
def test_a_question_that_was_not_tuned_for_is_answered_too(moons: Moons, question: str) -> None:
    answer = in_words(moons.ask(question))
    for pattern in UNSEEN[question]:
        assert re.search(pattern, answer), answer


@pytest.fixture(scope="module")
def rising(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """A task whose larger values are better, with a floor and a noise of 0.02."""
    with Notebook.at(tmp_path_factory.mktemp("rising")) as notebook:
        task = notebook.task(direction="maximize", floor=1.0)
        first = notebook.run(task, 0.6, title="the baseline", genome={"DEPTH": 4, "LR": 0.1})
        notebook.run(task, 0.8, source="DEPTH = 6\n", parent=first, title="deeper", genome={"DEPTH": 6, "LR": 0.1})
        notebook.run(
            task, 0.79, source="DEPTH = 7\n", parent=first, title="deeper still", genome={"DEPTH": 7, "LR": 0.1}
        )
        yield notebook


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("is the baseline really worse than the best?", "“the baseline” gave 0.6000 (1 run), 0.2 worse than “deeper”"),
        ("is 0.79 worse than 0.80?", "0.01 worse than “deeper” (0.8000, 1 run) ± 0.055 (95 %): within the noise"),
        ("how far are we from the floor?", "is 0.2 from the floor 1.0000, 50% of the way from the baseline 0.6000"),
        ("which change brought the most?", "“deeper” gave 0.8000 (1 run), 0.2 better than its parent"),
        ("what is the worst program?", "the worst programs with a value: “the baseline” 0.6000"),
        ("is a deeper network better?", "DEPTH 6 beside 7: “deeper” gave 0.8000"),
        ("which run should I repeat?", "most worth repeating is “deeper” (0.8000, 1 seed)"),
        ("have we plateaued?", "1 run since the best one, “deeper”"),
    ],
)
def test_larger_values_may_be_the_better_ones(rising: Notebook, question: str, sentence: str) -> None:
    task = find_task(rising.log)
    answer = ask_answer(rising.log, rising.blobs, task, question, now_ms=rising.now_ms, me=rising.mine.public)
    assert sentence in in_words(answer)


def test_an_empty_log_has_no_answer_and_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Notebook.at(tmp_path_factory.mktemp("empty")) as notebook:
        notebook.task(floor=None)
        for question in (*READ, *UNSEEN):
            answer = ask_answer(
                notebook.log, notebook.blobs, find_task(notebook.log), question, now_ms=notebook.now_ms, me=None
            )
            assert not re.search(r"\d\.\d{3}", in_words(answer).replace("0.0200", "")), question
