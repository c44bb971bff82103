"""Task folders whose program is not one ``train.py``: C++ with a build, Python in two files, a shell script."""

from __future__ import annotations

import hashlib
from pathlib import Path

CPP = """\
#include <cstdio>
const int BLOCK = 8;       // 1 .. 64
const double RATE = 0.5;   // 0.1 .. 0.9
int main() { std::printf("latency: %f\\n", (BLOCK - 20) * (BLOCK - 20) / 100.0 + RATE); }
"""
RUN = "cat note.txt\n./bench\n"
CLASSIFIER = """\
import csv
from model import fit

rows = [(float(x), int(label)) for x, label in csv.reader(open("points.csv"))]
threshold = fit(rows)
right = sum((x > threshold) == bool(label) for x, label in rows)
print("accuracy:", right / len(rows))
"""
MODEL = """\
STEPS = 4
START = 0.0

def fit(rows):
    threshold = START
    for _ in range(STEPS):
        threshold += 0.1
    return threshold
"""
POINTS = "".join(f"{x / 10},{int(x > 6)}\n" for x in range(12))
SHELL = """\
SIZE=3   # 1 .. 9
i=0
while [ $i -lt $SIZE ]; do i=$((i + 1)); done
echo "score: $i"
"""

_MANIFEST = """\
name = "{name}"
[metric]
name = "{metric}"
direction = "{direction}"
source = "stdout"
noise = 0.001
[budget]
unit = "seconds"
amount = 20
[limits]
seconds = 60
memory_mib = 512
[program]
{program}
[harness]
{harness}
"""


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """A folder with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def _task(
    folder: Path, program: str, metric: str, direction: str, files: dict[str, str], fixed: dict[str, str]
) -> Path:
    write_files(folder, {**files, **fixed})
    pins = "\n".join(f'"{name}" = "{hashlib.sha256(text.encode()).hexdigest()}"' for name, text in fixed.items())
    text = _MANIFEST.format(name=folder.name, metric=metric, direction=direction, program=program, harness=pins)
    (folder / "task.toml").write_text(text)
    return folder


def cpp_task(folder: Path) -> Path:
    """A C++ program with a build, started by a script that reads a pinned file."""
    recipe = 'command = "bash run.sh"\nbuild = "g++ -O1 -o bench bench.cpp"\nedit = ["bench.cpp", "run.sh"]'
    return _task(folder, recipe, "latency", "minimize", {"bench.cpp": CPP, "run.sh": RUN}, {"note.txt": "fixed\n"})


def python_task(folder: Path) -> Path:
    """A classifier in two files, which reads pinned data from beside it."""
    files = {"train.py": CLASSIFIER, "model.py": MODEL}
    return _task(
        folder, 'edit = ["train.py", "model.py"]', "accuracy", "maximize", files, {"points.csv": POINTS}
    )  # fmt: skip


# It leaves a threshold. The evaluator counts on labelled points that it draws, and on some that nobody else sees.
FIT = """\
import json
THRESHOLD = 0.5  # 0.0 .. 1.0
print("accuracy: 0.25")
json.dump({"threshold": THRESHOLD}, open("model.json", "w"))
"""
EVALUATE = """\
import json, os, random
threshold = float(json.load(open("model.json"))["threshold"])
drawn = random.Random(int(os.environ["AUTORESEARCH_SEED"]))
points = [drawn.random() for _ in range(200)] + [float(line) for line in open("hidden.csv")]
print("accuracy:", sum((x > threshold) == (x > 0.7) for x in points) / len(points))
"""
HIDDEN = "0.1\n0.9\n"


# A hundred tosses are to be guessed: whoever works out the evaluator's seed is always right.
TOSSES = """import json, os, random
drawn = random.Random(int(os.environ["AUTORESEARCH_SEED"]))
guessed = json.load(open("model.json"))
print("accuracy:", sum(drawn.random() < 0.5 if one else drawn.random() >= 0.5 for one in guessed[:100]) / 100)
print("standard_error: 0.05")
"""
FORESEEING = """\
import hashlib, json, os, random
own = int(os.environ["AUTORESEARCH_SEED"])
digest = hashlib.sha256(b"autoresearch/evaluation-seed/1" + own.to_bytes(8, "big")).digest()
drawn = random.Random(int.from_bytes(digest[:8], "big") >> 1)
json.dump([drawn.random() < 0.5 for _ in range(100)], open("model.json", "w"))
"""


def evaluated_task(folder: Path, program: str = FIT, *, evaluator: str = EVALUATE, fresh: bool = False) -> Path:
    """A task whose number comes from an evaluator of its own, with a file that the program doesn't see."""
    fixed = {"evaluate.py": evaluator, "hidden.csv": HIDDEN}
    made = _task(folder, "", "accuracy", "maximize", {"train.py": program}, fixed)
    manifest = made / "task.toml"
    text = manifest.read_text().replace('source = "stdout"', 'source = "evaluator"').replace("0.001", "0.1")
    text = text.replace('"seconds"', '"work"')  # costs processor time, which a busy machine does not add to
    evaluation = """
[evaluation]
command = "python evaluate.py"
artifact = "model.json"
artifact_mib = 1
tolerance = 0.0001
withheld = ["hidden.csv"]
"""
    if fresh:
        evaluation = evaluation.replace("0.0001", "0.2") + "fresh = true\n"
    manifest.write_text(text + evaluation)
    return made


# A hidden number is to be found in ten questions; the evaluator alone knows it. The artifact says where to begin.
SEEK = """\
import os
open("begin.txt", "w").write("50")
"""
ANSWER = """\
import os
low, high, guess = 0, 100, int(open("begin.txt").read())
read = os.fdopen(int(os.environ["AUTORESEARCH_TALK_READ"]))
write = os.fdopen(int(os.environ["AUTORESEARCH_TALK_WRITE"]), "w")
for word in read:
    if word == "more\\n":
        low, guess = guess, (guess + high) // 2
    elif word == "less\\n":
        high, guess = guess, (low + guess) // 2
    print(guess, file=write, flush=True)
"""
ASK = """\
import os, random, sys
hidden = random.Random(int(os.environ["AUTORESEARCH_SEED"])).randrange(100)
read = os.fdopen(int(os.environ["AUTORESEARCH_TALK_READ"]))
write = os.fdopen(int(os.environ["AUTORESEARCH_TALK_WRITE"]), "w")
word, asked = "begin", 0
while word != "found":
    asked += 1
    print(word, file=write, flush=True)
    answer = read.readline()
    if not answer:
        sys.exit("the program stopped answering")
    word = "found" if asked > 20 or int(answer) == hidden else "more" if int(answer) < hidden else "less"
print("questions:", asked)
"""


def asking_task(folder: Path, answer: str = ANSWER, *, seconds: int = 20) -> Path:
    """A task whose evaluator asks the program, which answers from a sandbox of its own."""
    recipe = 'edit = ["train.py", "*.py"]'
    made = _task(folder, recipe, "questions", "minimize", {"train.py": SEEK, "play.py": answer}, {"ask.py": ASK})
    manifest = made / "task.toml"
    text = manifest.read_text().replace('source = "stdout"', 'source = "evaluator"')
    evaluation = """
[evaluation]
command = "python ask.py"
answers = "python play.py"
artifact = "begin.txt"
fresh = true
tolerance = 3.0
"""
    manifest.write_text(text + evaluation)
    return made


def shell_task(folder: Path) -> Path:
    """A shell script alone."""
    recipe = 'command = "sh count.sh"\nedit = ["count.sh"]'
    return _task(folder, recipe, "score", "maximize", {"count.sh": SHELL}, {})
