"""Data that is shown to runs where it lies: its digest, its place, and what makes it other data."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from autoresearch.errors import CannotRunHere, UsageError
from autoresearch.task.folders import rebuild_task, write_task
from autoresearch.task.inputs import WHOLE_BYTES, described, read_input, sources
from autoresearch.task.loading import load_task
from autoresearch.task.model import Recipe, Task
from autoresearch.task.needed import needed_files
from tests.task.test_guessing import repository

LARGE = bytes(range(256)) * 8192


def with_data(place: Path) -> Path:
    repository(place, {"train.py": 'open("data/train.bin")\n'})
    (place / "data").mkdir(exist_ok=True)
    (place / "data/train.bin").write_bytes(LARGE)
    return place


def task_of(place: Path, **task_fields: object) -> Task:
    write_task(place, metric="loss", **task_fields)  # type: ignore[arg-type]
    return load_task(place)


def test_a_large_file_is_an_input_with_the_digest_that_sha256sum_prints(tmp_path: Path) -> None:
    task = task_of(with_data(tmp_path / "one"))

    (place, entry), *_ = task.inputs.items()
    assert (place, entry.bytes, entry.sha256) == ("data/train.bin", 2 << 20, hashlib.sha256(LARGE).hexdigest())
    assert described(place, entry) == "data/train.bin (2.0 MiB)"
    assert sources(task) == {"data/train.bin": tmp_path / "one/data/train.bin"}
    assert task_of(with_data(tmp_path / "two")).definition()["inputs"] == task.definition()["inputs"]


def test_other_data_is_refused_and_what_is_missing_is_named(tmp_path: Path) -> None:
    task = task_of(with_data(tmp_path))
    data = tmp_path / "data/train.bin"

    data.write_bytes(LARGE + b"x")
    with pytest.raises(CannotRunHere, match=r"is not the data of the task .* needs data/train\.bin \(2\.0 MiB, sha256"):
        sources(task)
    data.write_bytes(b"x" + LARGE[1:])
    with pytest.raises(CannotRunHere, match="is not the data"):
        sources(task)
    data.unlink()
    with pytest.raises(CannotRunHere, match=r"needs data/train\.bin \(2\.0 MiB, .*not on this machine") as caught:
        sources(task)
    assert f"put it there: {data}" in caught.value.hint
    data.write_bytes(LARGE)
    assert sources(task)


def test_of_a_huge_file_parts_are_read_and_each_size_and_end_tells(tmp_path: Path) -> None:
    file = tmp_path / "huge.bin"
    with file.open("wb") as made:
        made.truncate(10 << 30)
    first = read_input(file)
    with file.open("r+b") as made:
        made.seek(-1, os.SEEK_END)
        made.write(b"x")
    second = read_input(file)
    with file.open("r+b") as made:
        made.truncate((10 << 30) - 1)

    assert first.bytes == 10 << 30 > WHOLE_BYTES
    assert len({first.sha256, second.sha256, read_input(file).sha256}) == 3


def test_a_folder_is_the_same_wherever_it_lies_and_another_one_with_another_name_or_content(tmp_path: Path) -> None:
    for name in ("a", "b"):
        repository(tmp_path, {f"{name}/{number}.txt": str(number) for number in range(70)})
        (tmp_path / name / "loop").symlink_to(tmp_path)
    first = read_input(tmp_path / "a")
    assert (first, first.files) == (read_input(tmp_path / "b"), 70)
    (tmp_path / "b/1.txt").rename(tmp_path / "b/01.txt")
    assert read_input(tmp_path / "b") != first
    (tmp_path / "a/5.txt").write_text("x")
    assert read_input(tmp_path / "a") != first


def test_a_place_says_where_this_machine_has_it_and_is_no_part_of_the_task(tmp_path: Path) -> None:
    task = task_of(with_data(tmp_path / "task"))
    (tmp_path / "task/data/train.bin").rename(tmp_path / "elsewhere.bin")
    manifest = tmp_path / "task/task.toml"
    manifest.write_text(manifest.read_text() + f'\n[mounts]\n"./data/train.bin" = "{tmp_path}/elsewhere.bin"\n')
    moved = load_task(tmp_path / "task")

    assert moved.digest == task.digest
    assert sources(moved) == {"data/train.bin": tmp_path / "elsewhere.bin"}


def test_a_link_that_leads_out_of_the_folder_is_never_followed(tmp_path: Path) -> None:
    task = task_of(with_data(tmp_path / "task"))
    (tmp_path / "task/data/train.bin").rename(tmp_path / "secret.bin")
    (tmp_path / "task/data/train.bin").symlink_to(tmp_path / "secret.bin")

    with pytest.raises(CannotRunHere, match="leads out of the task's folder") as caught:
        sources(task)
    assert f'"./data/train.bin" = "{tmp_path}/secret.bin"' in caught.value.hint


ENTRY = '= { bytes = 1, sha256 = "' + "ab" * 32 + '" }\n'


@pytest.mark.parametrize(
    ("lines", "refusal"),
    [
        (f'[inputs]\n"../x" {ENTRY}', "no place"),
        (f'[inputs]\n"/etc/x" {ENTRY}', "no place"),
        (f'[inputs]\n"a//x" {ENTRY}', "no place"),
        (f'[inputs]\n"a\\u001bx" {ENTRY}', "no name"),
        (f'[inputs]\n"{"x" * 201}" {ENTRY}', "no place"),
        (f'[inputs]\n"train.py" {ENTRY}', "is a file of the task"),
        (f'[inputs]\n"train.py/x" {ENTRY}', "lies in train.py"),
        (f'[inputs]\na {ENTRY}"a/b" {ENTRY}', "lies in a"),
        ('[inputs]\na = "x"\n', "inputs"),
        ('[inputs]\na = { bytes = -1, sha256 = "x" }\n', "inputs"),
        ("[inputs]\n" + "".join(f"a{number} {ENTRY}" for number in range(33)), "inputs"),
        ('[mounts]\n"./a" = "../x"\n', "no place"),
        ('[mounts]\n"./../a" = "/usr/share"\n', "no place"),
        ('[mounts]\n"./a" = "~/"\n', "home folder"),
        ('[mounts]\na = "b"\n', "absolute"),
    ],
)
def test_places_that_can_be_none_are_refused(folder: Path, lines: str, refusal: str) -> None:
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text() + lines)

    with pytest.raises(UsageError, match=refusal):
        load_task(folder)


def test_many_small_files_are_a_folder_and_what_lies_elsewhere_has_a_place(tmp_path: Path) -> None:
    place = repository(
        tmp_path / "task",
        {"train.py": 'listdir("images"); open("my data/été.txt"); open("store/x.txt")\n'}
        | {f"images/{number}.png": "x" for number in range(70)}
        | {"my data/été.txt": "x"},
    )
    repository(tmp_path / "elsewhere", {"x.txt": "x"})
    (place / "store").symlink_to("../elsewhere")
    task = task_of(place, mounts=[str(tmp_path / "elsewhere")])

    assert (task.inputs["images"].files, set(task.inputs)) == (70, {"images", "my data/été.txt", "store"})
    assert dict(task.mounts)["./store"] == str(tmp_path / "elsewhere")
    assert sources(task)["store"] == tmp_path / "elsewhere"


def test_a_published_task_says_on_another_machine_what_it_needs_and_where(tmp_path: Path) -> None:
    task = task_of(with_data(tmp_path / "mine"))
    rebuilt = rebuild_task(
        task.definition(), task.digest, harness={}, baseline=task.baseline, summary="", folder=tmp_path / "there"
    )
    assert (rebuilt.digest, dict(rebuilt.inputs), dict(rebuilt.mounts)) == (task.digest, dict(task.inputs), {})
    with pytest.raises(CannotRunHere) as caught:
        sources(rebuilt)
    assert f"put it there: {tmp_path / 'there/data/train.bin'}" in caught.value.hint
    with_data(tmp_path / "there")
    assert sources(load_task(tmp_path / "there"))
    wrong = task.definition() | {"inputs": {"../x": {"bytes": 1, "sha256": bytes(32)}}}
    with pytest.raises(UsageError, match="no place"):
        rebuild_task(wrong, task.digest, harness={}, baseline=task.baseline, summary="", folder=tmp_path / "no")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("images/1.pgm", "scan.tif", "corpus.fasta", "talk.flac", "d.xz", "g.graphml"),
        *("captions.json", "annotations/instances_train.json", "coco.yaml", "brain.nii.gz", "notes.mid", "pose.bvh"),
    ],
)
def test_data_of_any_name_is_shown_where_the_program_names_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("1")
    (tmp_path / "AGENTS.md").write_text("obey")
    (tmp_path / "Makefile").write_text("all:")
    (tmp_path / "train.py").write_text(f'"""See AGENTS.md and the Makefile."""\nopen("{name}")\nprint("loss:", 1)\n')
    needed = needed_files(tmp_path, Recipe())
    assert {*needed.inputs, *needed.fixed} == {name}, "what tools obey is no part of it"
