"""What the reader makes of texts that programs print, and of names of metrics: never wrong, seldom a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from autoresearch.task.printed import guess_metric, read_metric
from benchmarks.corpus import (
    DIRECTIONS,
    PARTS,
    PrintedText,
    Verdict,
    family_table,
    judge_named,
    judge_text,
    judge_texts,
    metric_directions,
    printed_texts,
)  # fmt: skip

SEEN = printed_texts("seen")
TEXTS = {part: printed_texts(part) for part in PARTS}
RIGHT_SHARE = 0.95


@pytest.mark.parametrize("part", PARTS)
def test_the_corpus_says_what_is_right(part: str) -> None:
    texts = TEXTS[part]
    results = [result for text in texts for result in text.results]

    assert len(texts) >= 60
    assert sum(any(not result.values for result in text.results) for text in texts) >= 12, "that have diverged"
    assert sum(not text.results and not text.is_unsure for text in texts) >= 5, "without a result"
    assert [title for title, count in Counter(map(str, texts)).items() if count > 1] == []
    assert {each for result in results for each in result.directions} <= set(DIRECTIONS)
    assert all(result.names and result.directions for result in results)


def test_no_entry_of_one_half_is_in_the_other() -> None:
    assert not {text.text for text in TEXTS["seen"]} & {text.text for text in TEXTS["unseen"] if text.text.strip()}
    assert not set(metric_directions("seen")) & set(metric_directions("unseen"))
    assert sum(len(metric_directions(part)) for part in PARTS) >= 200


@pytest.mark.parametrize("text", SEEN, ids=str)
def test_a_text_is_read_rightly_or_asked_about(text: PrintedText) -> None:
    judgement = judge_text(text)
    assert judgement.verdict is not Verdict.WRONG, judgement.reason
    assert [each.reason for each in judge_named(text) if each.verdict is not Verdict.RIGHT] == []


@pytest.mark.parametrize("text", [text for text in SEEN if text.numbers], ids=str)
def test_the_numbers_that_a_text_has_are_listed(text: PrintedText) -> None:
    numbers = read_metric(text.text, "no_such_metric").numbers
    assert {name: numbers.get(name) for name in text.numbers} == text.numbers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["texts", "named", "directions"])
def test_nearly_all_seen_is_right_and_nothing_wrong_without_a_doubt(kind: str) -> None:
    """Of ``unseen`` the benchmark says how much is: what a test demands of it would be tuned to it."""
    judgements = [each for each in judge_texts()[kind] if each.part == "seen"]
    verdicts = [each.verdict for each in judgements]
    assert verdicts.count(Verdict.WRONG) == 0, family_table(judgements)
    assert verdicts.count(Verdict.RIGHT) >= RIGHT_SHARE * len(verdicts), family_table(judgements)


# Made when they are read: together they take a hundred megabytes.
HOSTILE: dict[str, Callable[[], str]] = {
    "bytes": lambda: "\x00\ufffd\x07\ufffd" * 50_000 + "\n",
    "a name of 10 kB": lambda: "n" * 10_000 + ": 3.0\n",
    "many names": lambda: "".join(f"m{i}: {i}\n" for i in range(200_000)),
    "a million numbers in a line": lambda: "1.0 " * 1_000_000 + "\n",
    "a long curve": lambda: "val_loss: 0.7\n" * 300_000,
    "brackets that nobody closes": lambda: "[" * 200_000 + "\n",
    "objects in objects": lambda: '{"a":' * 100_000 + "\n",
    "a row of empty cells": lambda: "| " * 500_000 + "\n",
    "escapes that do not end": lambda: "\x1b[" * 300_000 + "\n",
    "carriage returns": lambda: "\r" * 500_000 + "\n",
    "a long rule": lambda: "-" * 500_000 + "\n",
    "many words": lambda: ("a " * 400 + "\n") * 1_000,
    "a number of 100,000 digits": lambda: "val_loss: " + "9" * 100_000 + "\n",
}


@pytest.mark.timeout(60)
@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_bounded_time(name: str) -> None:
    text = HOSTILE[name]() + "val_loss: 0.5\n"
    reading = read_metric(text, "val_loss")
    assert (reading.value, reading.diverged) == (0.5, False)
    assert len(reading.line) <= 1_000
    assert len(reading.numbers) <= 1_000
    guess_metric(text)


def test_a_number_that_is_too_large_is_no_value() -> None:
    reading = read_metric("val_loss: 0.5\nval_loss: 1e999\n", "val_loss")
    assert (reading.value, reading.diverged) == (None, True)
