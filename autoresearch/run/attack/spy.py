"""What an attacker's program reads in the sandbox: files, what makes them, and what the evaluator knows while it runs.

It is only ever started there, as the program of a task: its text follows a line ``ORDERS = …``. The standard library,
and NumPy where the task has it, are all it needs. What it saw goes as JSON into the file ``ORDERS["out"]``.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import hashlib
import io
import json
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from autoresearch.run.attack.rehearsal import Turn, printed_value, rehearsed, talk
from autoresearch.run.attack.unpacking import decoded, scalar, unpacked

ORDERS: dict[str, Any] = {}
MOST_FILES, MOST_BYTES, MOST_COLUMNS, MOST_VALUES = 500, 8 << 20, 300, 50_000
MOST_TURNS, MOST_SAID, MOST_WHOLE, MOST_LEFT = 40, 400, 4, 50


def visible() -> list[Path]:
    """The plain files that a program sees of its task."""
    places = [Path.cwd(), Path(__file__).resolve().parent]
    places += [Path(os.environ["AUTORESEARCH_DATA"])] if "AUTORESEARCH_DATA" in os.environ else []
    files: dict[str, Path] = {}
    for place in places:
        for folder, _, names in os.walk(place, followlinks=True):
            for name in names:
                path = Path(folder) / name
                if len(files) < MOST_FILES and path.is_file() and path.stat().st_size <= MOST_BYTES:
                    files.setdefault(str(path.resolve()), path)
    return list(files.values())


def columns_of(name: str, content: bytes) -> dict[str, list[object]]:
    """The sequences of values in a file, by where they stand."""
    if name.endswith((".npy", ".npz")):
        try:
            import numpy as np

            loaded = np.load(io.BytesIO(content), allow_pickle=False)
            arrays = {key: loaded[key] for key in loaded.files} if hasattr(loaded, "files") else {"": loaded}
        except Exception:  # noqa: BLE001 - what is no such file
            return {}
        return {f"{name}: {key}": array.tolist() for key, array in arrays.items() if array.ndim in (1, 2)}
    if name.endswith((".pkl", ".pickle")):
        try:
            return sequences(name, pickle.loads(content))  # noqa: S301 - in the sandbox, where a program may run anything
        except Exception:  # noqa: BLE001 - whatever reading a pickle raises
            return {}
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {name: list(content)} if len(content) <= MOST_VALUES else {}
    if name.endswith(".py"):
        return literals(name, text)
    if name.endswith((".toml", ".md")):
        return {}
    try:
        return sequences(name, json.loads(text))
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return sequences(name, [json.loads(line) for line in lines])
    except (ValueError, RecursionError):
        pass
    delimiter = next((sign for sign in ("\t", ",", ";", " ") if lines and sign in lines[0].strip()), ",")
    rows = [[scalar(cell) for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    if not rows or len({len(row) for row in rows}) != 1 or len(rows[0]) > 64:
        return {}
    header = rows[0] if all(isinstance(cell, str) for cell in rows[0]) and len(rows) > 1 else None
    body = rows[1:] if header else rows
    return {f"{name}: {header[at] if header else at}": [row[at] for row in body] for at in range(len(rows[0]))}


def literals(name: str, text: str) -> dict[str, list[object]]:
    """The lists that stand in a Python file."""
    columns: dict[str, list[object]] = {}
    try:
        tree = ast.parse(text)  # noqa: TID251 - a program with one thread
    except SyntaxError:
        return {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            with contextlib.suppress(ValueError):
                value = ast.literal_eval(node.value)
                columns |= sequences(
                    f"{name}: {node.targets[0].id}", list(value) if isinstance(value, tuple) else value
                )
    return columns


def sequences(name: str, value: object, depth: int = 0) -> dict[str, list[object]]:
    """The sequences of scalars in a value."""
    if isinstance(value, dict):
        columns: dict[str, list[object]] = {}
        if len(value) >= 5 and not any(isinstance(each, dict | list) for each in value.values()):
            return {f"{name} key": list(value), name: list(value.values())}
        for key, each in list(value.items())[:64]:
            columns |= sequences(f"{name}: {key}", each, depth + 1) if depth < 3 else {}
        return columns
    if isinstance(value, list) and len(value) >= 5:
        if not any(isinstance(each, dict | list) for each in value):
            return {name: value}
        if all(isinstance(each, dict) for each in value):
            return {f"{name}: {key}": [each.get(key) for each in value] for key in list(value[0])[:32]}
        if all(isinstance(each, list) and each and not isinstance(each[0], dict | list) for each in value):
            columns = {name: value}
            width = min(len(each) for each in value)
            if width <= 32:
                columns |= {f"{name}: {at}": [each[at] for each in value] for at in range(width)}
            return columns
    return {}


def made() -> dict[str, bytes]:
    """What ``prepare.py`` writes where it is run by the program itself."""
    source = next((path for path in visible() if path.name == "prepare.py"), None)
    if source is None:
        return {}
    files: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for path in source.parent.iterdir():
            if path.is_file():
                shutil.copy(path, place / path.name)
        data = place / "made"
        data.mkdir()
        before = {path.name for path in place.iterdir()}
        environment = {**os.environ, "AUTORESEARCH_DATA": str(data)}
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [sys.executable, "prepare.py"], cwd=place, env=environment, timeout=ORDERS["seconds"] / 3,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )  # fmt: skip
        for path in [*data.rglob("*"), *(each for each in place.iterdir() if each.name not in before)]:
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                files[path.name] = path.read_bytes()
    return files


TRACED = """
import json, runpy, sys, os
out, script, sys.argv = sys.argv[1], sys.argv[2], sys.argv[2:]
seen, reads, draws = {}, [], []
def plain(value):
    if hasattr(value, "tolist") and len(getattr(value, "shape", ())) in (1, 2):
        value = value.tolist()
    if isinstance(value, dict) and 5 <= len(value) <= 50000:
        return {"keys": list(value), "values": list(value.values())}
    return list(value) if isinstance(value, (list, tuple)) and 5 <= len(value) <= 50000 else None
def call(frame):
    caller, name = frame.f_back, frame.f_code.co_name
    if caller is None or os.path.basename(caller.f_code.co_filename) != os.path.basename(script): return
    module = frame.f_globals.get("__name__", "__main__")
    if module == "__main__" or name not in frame.f_globals or len(draws) > 20: return
    arguments = {name: frame.f_locals.get(name) for name in frame.f_code.co_varnames[:frame.f_code.co_argcount]}
    arguments = {name: value for name, value in arguments.items() if isinstance(value, (int, float, str, type(None)))}
    if any(type(value) is int for value in arguments.values()):
        if (module, name, arguments) not in draws: draws.append((module, name, arguments))
def note(frame, event, _):
    if event == "call": return call(frame)
    if event != "return" or len(seen) > 200: return
    file = frame.f_code.co_filename
    if "lib/python" in file or file.startswith("<frozen"): return
    for name, value in list(frame.f_locals.items()):
        if name.startswith("__"): continue
        try:
            value = plain(value)
            if value is not None and f"{frame.f_code.co_name}.{name}" not in seen:
                json.dumps(value)
                seen[f"{frame.f_code.co_name}.{name}"] = value
        except Exception: pass
def audit(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and len(reads) < 1000: reads.append(arguments[0])
sys.addaudithook(audit)
sys.path.insert(0, os.getcwd())
sys.setprofile(note)
try: runpy.run_path(script, run_name="__main__")
except BaseException: pass
sys.setprofile(None)
json.dump({"variables": seen, "reads": reads, "draws": draws}, open(out, "w"))
"""


def traced(words: list[str]) -> dict[str, Any]:
    """What the evaluator has in its variables while it measures the baseline's artifact, and which files it opens.

    Where it asks the program: what both say, and better answers where it asks the same each time.
    """
    script = next((word for word in words if word.endswith(".py") and Path(word).is_file()), None)
    if script is None:
        return {}
    out, rest = Path(tempfile.mkdtemp()) / "traced.json", words[words.index(script) :]
    partner = [sys.executable if word in ("python", "python3") else word for word in ORDERS["answers"]]
    seed, seconds = ORDERS["evaluation_seed"], ORDERS["seconds"] / 3

    def play(command: list[str], seed: int, script: list[Turn]) -> tuple[list[Turn], str]:
        environment = {**os.environ, "AUTORESEARCH_SEED": str(seed)}
        return talk([sys.executable, *command], partner, environment, seconds, script=script)

    turns, _ = play(["-c", TRACED, str(out), *rest], seed, [])
    try:
        loaded: dict[str, Any] = json.loads(out.read_text())
    except (OSError, ValueError):
        return {}
    if not turns[0][1] or not ORDERS["rehearses"]:
        return {**loaded, "dialogue": turns}

    def value(seed: int, answers: list[str]) -> float | None:
        pairs = [(question, answer) for (question, _), answer in zip(turns, answers, strict=True)]
        return printed_value(ORDERS["metric"], play(rest, seed, pairs)[1])

    (others, text), honest = play(rest, seed + 1, []), [answer for _, answer in turns]
    if others == turns and printed_value(ORDERS["metric"], text) == value(seed, honest):
        answers = rehearsed(lambda each: value(seed, each), turns, short_texts(), ORDERS["sign"], ORDERS["seconds"] / 2)
        loaded["rehearsed"] = answers or []
    return {**loaded, "dialogue": turns}


def short_texts() -> list[str]:
    """The short words that stand as texts in the program and in fixed files."""
    words: dict[str, None] = {}
    for path in visible():
        with contextlib.suppress(SyntaxError, UnicodeDecodeError):
            tree = ast.parse(path.read_text()) if path.suffix == ".py" and path != Path(__file__) else ast.parse("")  # noqa: TID251
            words |= {
                node.value: None
                for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isalnum()
            }
    return [word for word in words if len(word) <= 12]


def climbed(words: list[str], artifact: bytes) -> bytes | None:
    """A better artifact, by trying it with the evaluator that lies here; None where that does not run."""
    import runpy

    script = next((word for word in words if word.endswith(".py") and Path(word).is_file()), None)
    try:
        value = json.loads(artifact)
    except (ValueError, UnicodeDecodeError):
        return None
    leaves = list(numbers(value))
    if script is None or not leaves or len(leaves) > 20_000:
        return None
    os.environ["AUTORESEARCH_SEED"] = str(ORDERS["evaluation_seed"])
    sys.path.insert(0, str(Path.cwd()))

    def score(content: str) -> float | None:
        Path(ORDERS["artifact"]).write_text(content)
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                runpy.run_path(script, run_name="__main__")
        except SystemExit as ending:
            if ending.code:
                return None
        except Exception:  # noqa: BLE001 - whatever an evaluator raises
            return None
        return printed_value(ORDERS["metric"], out.getvalue())

    dice = random.Random(1)  # noqa: S311 - no secret
    best, end = value, time.monotonic() + ORDERS["seconds"] / 3
    height = score(json.dumps(value))
    if height is None:
        return None
    spread = math.sqrt(sum(leaf * leaf for leaf in leaves) / len(leaves)) or 1.0
    whole = [leaf for leaf in leaves if isinstance(leaf, int)]
    while time.monotonic() < end:
        share, step = dice.choice((1.0, 0.3, 1 / len(leaves))), spread * 10 ** dice.uniform(-3, 0.5)

        def moved(leaf: float, share: float = share, step: float = step) -> float:
            if dice.random() > share:
                return leaf
            if isinstance(leaf, int):  # one of few may be anything, such as a seed
                near = [leaf + 1, leaf - 1, dice.randrange(999)]
                return dice.choice(whole if len(whole) > MOST_WHOLE else near)
            return leaf + dice.gauss(0, step)

        trial = changed(best, moved)
        reached = score(json.dumps(trial))
        if reached is not None and math.isfinite(reached) and ORDERS["sign"] * (height - reached) > 0:
            best, height = trial, reached
    return json.dumps(best).encode()


def numbers(value: object) -> Iterator[float]:
    """The numbers in a value."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def changed(value: object, change: Callable[[float], float]) -> object:
    """A value with its numbers changed."""
    if isinstance(value, dict):
        return {name: changed(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [changed(each, change) for each in value]
    return change(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def main() -> None:
    """Look at everything, and write what was seen."""
    artifact = Path(ORDERS["artifact"]).read_bytes() if ORDERS["artifact"] else b""
    own = {Path(__file__).name, Path(ORDERS["artifact"]).name}
    columns: dict[str, list[object]] = {}
    secrets: dict[str, str] = {}
    own_columns = columns_of(ORDERS["artifact"], artifact).values()
    words = list(dict.fromkeys([word for values in own_columns for word in values if isinstance(word, str | int)]))
    words = [*words[:MOST_LEFT], *range(10)]

    def look(where: str, name: str, content: bytes) -> None:
        if (withheld := ORDERS["secrets"].get(hashlib.sha256(content).hexdigest())) is not None:
            secrets[withheld] = f"{where}{name}"
        for label, values in columns_of(name, content).items():
            if 5 <= len(values) <= MOST_VALUES and len(columns) < MOST_COLUMNS:
                columns[where + label] = values
                if (others := decoded(values, words)) is not None:
                    columns[f"{where}{label}, decoded"] = others
        for inner, text in unpacked(name, content):
            look(f"{where}{name}: ", inner, text)

    names = []
    for path in visible():
        if path.name not in own:
            names.append(path.name)
            look("", path.name, path.read_bytes())
    for name, content in made().items():
        look("made " if name in names else "made from prepare.py ", name, content)
    seen = traced(ORDERS["command"])
    for name, value in seen.get("variables", {}).items():
        label, values = f"in the evaluator {name}", value["values"] if isinstance(value, dict) else value
        columns |= {f"{label} key": value["keys"]} if isinstance(value, dict) else sequences(label, value)
        columns[label] = values
    better = climbed(ORDERS["command"], artifact)
    loot = {
        "columns": columns,
        "secrets": secrets,
        "names": names,
        "reads": [Path(each).name for each in seen.get("reads", [])],
        "draws": seen.get("draws", []),
        "dialogue": [[each[:MOST_SAID] for each in turn] for turn in seen.get("dialogue", [])[:MOST_TURNS]],
        "rehearsed": seen.get("rehearsed", []),
        "climbed": None if better is None else better.decode(),
    }
    text, most = json.dumps(loot), ORDERS["bytes"]
    while len(text) > most and columns:
        columns.pop(max(columns, key=lambda label: len(columns[label])))
        text = json.dumps(loot)
    Path(ORDERS["out"]).write_text(text)


if __name__ == "__main__":
    main()
