"""An evaluator for a program that prints its own number: files with marked places, which run at once with a toy.

With ``predictions`` the program leaves a prediction for each row of a file, and the evaluator compares them with
answers that are withheld. With ``model`` the program leaves a model, and the evaluator asks it about questions that it
draws anew for each evaluation. Both declare the least and the most that an honest value can be. Pure.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from autoresearch.task.model import Evaluator, Recipe
from autoresearch.text import MAXIMIZE


class Artifact(StrEnum):
    """What a program leaves to an evaluator."""

    PREDICTIONS = "predictions"
    MODEL = "model"


class EvaluatorFiles(NamedTuple):
    """What a template adds to a folder: ``program`` are files that may change, ``fixed`` those that may not.

    ``block`` is put at the end of ``block_file``, a Python file of the program; that is empty where there is none.
    ``floor`` is the bound of the metric in task.toml.
    """

    program: dict[str, str]
    fixed: dict[str, str]
    block: str
    block_file: str
    evaluator: Evaluator
    floor: float | None


REFEREE, ANSWER = "referee.py", "answer.py"
QUESTIONS, ANSWERS = "questions.csv", "answers.csv"
_ROWS = 200

_BLOCK_OF_PREDICTIONS = '''
# ---- Marked place 1 of 2. Leave a prediction for each row of questions.csv. These lines are a toy. ----
LEVEL = 1.2  # 0.5 .. 1.5


def leave_predictions():
    """One number for each row, in the order of the rows. Runs do not see answers.csv."""
    import csv
    import json

    with open("questions.csv") as file:
        predictions = [@PREDICT_ROW@ for x, y in csv.reader(file)]
    with open("predictions.json", "w") as file:
        json.dump(predictions, file)


leave_predictions()
# ---- The end of place 1. ----
'''

_BLOCK_OF_MODEL = '''
# ---- Marked place 1 of 3. Leave what the model learned, as JSON. This line is a toy. ----
LEVEL = 1.2  # 0.5 .. 1.5


def leave_model():
    """What answer.py reads."""
    import json

    with open("model.json", "w") as file:
        json.dump({"level": LEVEL}, file)


leave_model()
# ---- The end of place 1. ----
'''

_ANSWER = '''"""Answers the questions of referee.py with the model, in a sandbox of its own. This file may change."""

import json
import os


# ---- Marked place 2 of 3. Answer one question with your model. These lines are a toy. ----
def answer(model, question):
    """A number; ``model`` is what model.json holds."""
    x, y = question
    return @PREDICT@


# ---- The end of place 2. ----

with open("model.json") as file:
    model = json.load(file)
read = os.fdopen(int(os.environ["AUTORESEARCH_TALK_READ"]))
write = os.fdopen(int(os.environ["AUTORESEARCH_TALK_WRITE"]), "w")
for line in read:
    print(json.dumps([answer(model, question) for question in json.loads(line)]), file=write, flush=True)
'''

_MEASURE = '''
# The least and the most that an honest value can be; metric.floor in task.toml says the better one of them, too.
LEAST, MOST = @LEAST@, @MOST@


def measured(prediction, truth):
    """What one prediction counts. The metric is the mean over all of them."""
    return @MEASURE@
'''

_CHECKS = """
if not isinstance(predictions, list) or len(predictions) != len(truths):
    raise SystemExit(f"@WHAT@ must be a list of {len(truths)} numbers")
for number in predictions:
    if type(number) not in (int, float) or not math.isfinite(number):
        raise SystemExit(f"@WHAT@ must be finite numbers, not {str(number)[:40]}")
counts = [measured(prediction, truth) for prediction, truth in zip(predictions, truths)]
value = sum(counts) / len(counts)
if not LEAST <= value <= MOST:
    raise SystemExit(f"{value} is below {LEAST} or above {MOST}: no honest value")
print("@METRIC@:", value)
print("standard_error:", (sum((count - value) ** 2 for count in counts) / len(counts) ** 2) ** 0.5)
"""

_REFEREE_OF_PREDICTIONS = '''"""Measures predictions.json in a sandbox without the program. Fixed, as answers.csv."""

import csv
import json
import math

# ---- Marked place 2 of 2. The metric of your task, and answers.csv. These lines are a toy. ----
@MEASURE_BLOCK@

# ---- The end of place 2. ----

with open("answers.csv") as file:
    truths = [float(row[0]) for row in csv.reader(file)]
with open("predictions.json") as file:
    predictions = json.load(file)
''' + _CHECKS.lstrip("\n")

_REFEREE_OF_MODEL = '''"""Asks the program's model from another sandbox what nobody knew before. Fixed."""

import json
import math
import os
import random

# ---- Marked place 3 of 3. The metric of your task, and how a question is drawn. These lines are a toy. ----
QUESTIONS = 2000
@MEASURE_BLOCK@

def question(dice):
    """A question and its right answer. ``dice`` has a seed that each evaluation has for itself."""
    x, y = dice.random(), dice.random()
    return [x, y], @TRUTH@


# ---- The end of place 3. ----

dice = random.Random(int(os.environ["AUTORESEARCH_SEED"]))
questions, truths = zip(*(question(dice) for _ in range(QUESTIONS)))
read = os.fdopen(int(os.environ["AUTORESEARCH_TALK_READ"]))
write = os.fdopen(int(os.environ["AUTORESEARCH_TALK_WRITE"]), "w")
print(json.dumps(questions), file=write, flush=True)
predictions = json.loads(read.readline(100 * QUESTIONS))
''' + _CHECKS.lstrip("\n")


def evaluator_files(
    artifact: Artifact, recipe: Recipe, metric: str, direction: str, bound: float | None
) -> EvaluatorFiles:
    """The files of a template for a program with this recipe.

    ``bound`` is that of the metric, the best value that there can be; None: nobody knows one.
    """
    is_share = direction == MAXIMIZE
    most = 1.0 if bound is None else bound
    best = most if is_share else 0.0
    words = {
        "MEASURE_BLOCK": _MEASURE.strip("\n") + "\n",
        "METRIC": metric,
        "LEAST": "0.0",
        "MOST": repr(most) if is_share else "math.inf",
        "MEASURE": f"{most!r} * (round(prediction) == truth)" if is_share else "abs(prediction - truth)",
        "TRUTH": "int(x + y > 1) ^ (dice.random() < 0.1)" if is_share else "x + y + dice.gauss(0, 0.1)",
        "PREDICT": 'int(x + y > model["level"])' if is_share else 'model["level"] * (x + y)',
        "PREDICT_ROW": "int(float(x) + float(y) > LEVEL)" if is_share else "LEVEL * (float(x) + float(y))",
    }
    if artifact is Artifact.MODEL:
        words["WHAT"] = "the answers"
        return EvaluatorFiles(
            program={ANSWER: _filled(_ANSWER, words)},
            fixed={REFEREE: _filled(_REFEREE_OF_MODEL, words)},
            block=_filled(_BLOCK_OF_MODEL, words),
            block_file=_python_file(recipe),
            evaluator=Evaluator(
                command=f"python {REFEREE}",
                artifact="model.json",
                answers=f"python {ANSWER}",
                withheld=[REFEREE],
                fresh=True,
            ),
            floor=best,
        )
    words["WHAT"] = "predictions.json"
    points = [(round(row * 0.618034 % 1, 3), round(row * 0.754878 % 1, 3)) for row in range(_ROWS)]
    truths = [
        float((x + y > 1) ^ (row % 10 == 0)) if is_share else round(x + y + math.sin(row) / 10, 3)
        for row, (x, y) in enumerate(points)
    ]
    return EvaluatorFiles(
        program={},
        fixed={
            REFEREE: _filled(_REFEREE_OF_PREDICTIONS, words),
            QUESTIONS: _lines(f"{x},{y}" for x, y in points),
            ANSWERS: _lines(f"{truth:g}" for truth in truths),
        },
        block=_filled(_BLOCK_OF_PREDICTIONS, words),
        block_file=_python_file(recipe),
        evaluator=Evaluator(command=f"python {REFEREE}", artifact="predictions.json", withheld=[ANSWERS]),
        floor=best,
    )


def _python_file(recipe: Recipe) -> str:
    """The file of a program at whose end its work is done; empty where that is no Python file."""
    words = shlex.split(recipe.command)
    for name in recipe.edit:
        module = name.removesuffix(".py").replace("/", ".")
        if name.endswith(".py") and (name in words or any(f".{module}".endswith(f".{word}") for word in words[2:])):
            return name
    return ""


def _filled(template: str, words: dict[str, str]) -> str:
    for name, word in words.items():
        template = template.replace(f"@{name}@", word)
    return template


def _lines(rows: Iterable[str]) -> str:
    return "".join(f"{row}\n" for row in rows)
