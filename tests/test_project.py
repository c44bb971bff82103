"""What holds for the project as a whole: words, errors, documents, exports."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch import errors, verification, words

ROOT = Path(__file__).parents[1]
ROOMS = sorted(path.parent.name for path in (ROOT / "autoresearch").glob("*/__init__.py"))


def test_every_state_and_reason_has_its_sentence() -> None:
    found = {name: value for name, value in vars(words).items() if name.endswith("_SENTENCES")}
    assert len(found) > 5
    for name, sentences in found.items():
        kinds = {type(word) for word in sentences}
        assert len(kinds) == 1, name
        kind = kinds.pop()
        assert set(sentences) == (set(verification.ROUNDS) if kind is str else set(kind)), name


@pytest.mark.parametrize("page", ["docs/explanation/verification.md", "docs/reference/verification.md"])
def test_the_pages_about_verification_explain_every_state_in_the_words_that_commands_print(page: str) -> None:
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", (ROOT / page).read_text(), re.MULTILINE))
    assert {state.value for state in words.RunState} <= rows.keys()
    for state, found in (
        (words.RunState.CONFIRMED, "it is better"),
        (words.RunState.NOT_REPLICATED, "it is not better"),
    ):
        for said in (rows[state.value], words.RUN_STATE_SENTENCES[state]):
            assert "ran it beside its parent" in said
            assert found in said


def test_links_and_mentions_of_documents_lead_to_a_file_and_a_heading() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = page.read_text()
        links = [
            (page.parent / path, heading)
            for path, heading in re.findall(r"\]\(([\w./-]+\.(?:md|svg))#?([\w-]*)\)", text)
        ]
        for target, heading in [*links, *((ROOT / path, "") for path in re.findall(r"`(docs/[\w./-]+)`", text))]:
            assert target.exists(), (page, target)
            assert not heading or heading in _headings(target.read_text()), (page, target, heading)


def _headings(text: str) -> set[str]:
    """The names by which a page's headings can be linked."""
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_error_is_drawn_in_the_tree_with_its_exit_status() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert name in drawn
            own = "exit_status" in vars(kind)
            assert not own or re.search(rf"{name}\s+{kind.exit_status}\b", drawn), name


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_exports_exactly_what_it_names(room: str) -> None:
    module = importlib.import_module(f"autoresearch.{room}")

    assert sorted(module.__all__) == sorted(set(module.__all__))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_the_architecture_names_only_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in re.findall(r"`((?:autoresearch|daemon|cli|experiments)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_daemon_imports_neither_torch_nor_numpy() -> None:
    program = "import sys, autoresearch_daemon.main; print({'torch', 'numpy', 'libp2p'} & set(sys.modules) or 'none')"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "none"
