"""``export --html``: a task's pages as files. Every link is to a file of them; nothing in them talks to a server."""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

import pytest

from autoresearch.record.encoding import short_id
from autoresearch.record.kinds import Task
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.trust.manifest_file import save_manifest
from tests.cli.hostile import fill as fill_hostile
from tests.face.pages.reading import whole_page
from tests.nasty import harms
from tests.record.making import NETWORK

PICTURE = re.compile(r"data:[^\"']*")
LOCAL = re.compile(r'(?:href|src)="([^"#]*)(?:#[^"]*)?"')


def pages_of(folder):
    return {file.name: file.read_text() for file in folder.glob("*.html")}


def short(run):
    return run.removeprefix("bafyrei")[:8]


def test_the_pages_of_a_task_are_files_that_need_no_server(cli, filled, tmp_path):
    site = tmp_path / "site"
    done = cli("task", "export", "--html", str(site))
    assert done.exit_code == 0, done.output
    assert f"{len(filled.ids) + 1} runs" in done.stderr
    pages = pages_of(site)
    assert {"index.html", "board.html", "lineage.html", f"run-{short(filled.best)}.html"} <= pages.keys()
    for name, text in pages.items():
        page = whole_page(text)
        assert "you" not in page.text.split(), name  # others read it
        written = PICTURE.sub("", text)  # their characters spell anything by chance, and those of digests "htmx"
        served = ("hx-get", "/events", "/v1/", "htmx.min", "htmx-config", "data-post")
        assert not [each for each in served if each in written], name
        for link in LOCAL.findall(text):
            assert urlsplit(link).scheme in {"", "data"}
            if link and not link.startswith("data:"):
                assert (site / link).is_file(), (name, link)


def test_the_document_says_what_was_written(cli, filled, tmp_path):
    done = cli("task", "export", "--html", str(tmp_path / "site"), "--task", "my-task", "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "autoresearch.html_export/1"
    assert (document["pages"], document["runs"]) == (len(pages_of(tmp_path / "site")), len(filled.ids) + 1)


def test_an_earlier_export_is_replaced(cli, filled, tmp_path):
    site = tmp_path / "site"
    cli("task", "export", "--html", str(site))
    (site / "run-aaaaaaaa.html").write_text("of an earlier log")
    (site / "index.html").write_text("old")
    assert cli("task", "export", "--html", str(site)).exit_code == 0
    assert not (site / "run-aaaaaaaa.html").exists()
    assert "Best" in (site / "index.html").read_text()


@pytest.mark.parametrize("options", [("--git", "g"), ("--bundle", "b"), ("-o", "o"), ("--bare",), ("--follow",)])
def test_other_forms_do_not_go_with_it(cli, filled, tmp_path, options):
    assert cli("task", "export", "--html", str(tmp_path / "site"), *options).exit_code == 2
    assert not (tmp_path / "site").exists()


def test_a_folder_with_other_files_is_left_alone(cli, filled, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    done = cli("task", "export", "--html", str(tmp_path))
    assert done.exit_code == 6
    assert "has other files" in done.stderr
    assert not (tmp_path / "index.html").exists()
    assert cli("task", "export", "--html", str(tmp_path / "thesis.tex")).exit_code == 6


def test_a_task_without_runs_and_no_task_at_all(cli, village, tmp_path):
    assert cli("task", "export", "--html", str(tmp_path / "one")).exit_code == 0
    assert short_id(village.baseline.id) in (tmp_path / "one" / "index.html").read_text()
    assert cli("task", "export", "--html", str(tmp_path / "two"), "--task", "nothing").exit_code == 4
    assert not (tmp_path / "two").exists()


def test_what_strangers_write_is_text(cli, paths, tmp_path):
    paths.create()
    save_manifest(paths.manifest, NetworkManifest(network=NETWORK))
    records = fill_hostile(paths.log, paths.blobs)
    task = next(record.body for record in records if isinstance(record.body, Task)).digest.hex()
    done = cli("task", "export", "--html", str(tmp_path / "site"), "--task", task)
    assert done.exit_code == 0, done.output
    for text in pages_of(tmp_path / "site").values():
        whole_page(text)
        assert not harms(text)
