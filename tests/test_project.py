"""What holds for the project as a whole: words, errors, documents, exports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

from autoresearch import errors, words
from autoresearch.judging.states import ROUNDS

ROOT = Path(__file__).parents[1]


def test_every_state_and_reason_has_its_sentence() -> None:
    tables = {name: value for name, value in vars(words).items() if name.endswith("_SENTENCES")}
    assert len(tables) > 5
    for name, sentences in tables.items():
        kinds = {type(word) for word in sentences}
        assert len(kinds) == 1, name
        kind = kinds.pop()
        assert set(sentences) == (set(ROUNDS) if kind is str else set(kind)), name


def test_sets_of_states_and_reasons_stand_beside_the_states() -> None:
    enums = {name: kind for name, kind in vars(words).items() if isinstance(kind, type) and issubclass(kind, Enum)}
    files = [path for package in ("autoresearch", "daemon", "cli") for path in (ROOT / package).rglob("*.py")]
    assert len(files) > 200
    assert len(enums) > 10
    for path in files:
        text = path.read_text()
        if path == Path(words.__file__) or not any(f"{name}." in text for name in enums):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Set | ast.Tuple | ast.List):
                members = [
                    ast.unparse(member).split(".")[0] for member in node.elts if not isinstance(member, ast.Starred)
                ]
                is_set = len(members) > 1 or isinstance(node, ast.Set)
                assert not (is_set and len(set(members)) == 1 and members[0] in enums), (path, node.lineno)


def test_templates_and_scripts_take_sets_of_states_from_the_words() -> None:
    pages = ROOT / "autoresearch/face/pages"
    states = "|".join(str(state) for state in [*words.RunMark, *words.WorkState])
    for path in (pages / "templates").glob("*.html"):
        assert not re.search(rf"\(\s*'(?:{states})',\s*'(?:{states})'", path.read_text()), path
    chart = (pages / "static/chart-drawing.js").read_text()
    sets = [set(re.findall('"([a-z ]+)"', members)) for members in re.findall(r"new Set\(\[(.+)\]\)", chart)]
    assert sets == [set(words.DISCREDITED)]


@pytest.mark.parametrize("page", ["docs/explanation/verification.md", "docs/reference/verification.md"])
def test_the_pages_about_verification_explain_every_state_in_the_words_that_commands_print(page: str) -> None:
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", (ROOT / page).read_text(), re.MULTILINE))
    assert {state.value for state in words.RunState} <= rows.keys()
    for state, outcome in (
        (words.RunState.CONFIRMED, "it is better"),
        (words.RunState.NOT_REPLICATED, "it is not better"),
    ):
        for sentence in (rows[state.value], words.RUN_STATE_SENTENCES[state]):
            assert "ran it beside its parent" in sentence
            assert outcome in sentence


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
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_error_is_drawn_in_the_tree_with_its_exit_status() -> None:
    drawn = errors.__doc__ or ""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == errors.__name__:
            assert name in drawn
            own = "exit_status" in vars(kind)
            assert not own or re.search(rf"{name}\s+{kind.exit_status}\b", drawn), name


def test_only_packages_that_programs_import_list_names() -> None:
    lists = {
        path.relative_to(ROOT).as_posix()
        for package in ("autoresearch", "daemon", "cli")
        for path in (ROOT / package).rglob("*.py")
        if re.search(r"^__all__", path.read_text(), re.MULTILINE)
    }
    services = "autoresearch/services"
    assert lists == {"autoresearch/__init__.py", f"{services}/__init__.py", f"{services}/gym_env/__init__.py"}


def test_the_architecture_names_only_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for path in re.findall(r"`((?:autoresearch|daemon|cli|experiments)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_daemon_imports_neither_torch_nor_numpy() -> None:
    program = "import sys, autoresearch_daemon.main; print({'torch', 'numpy', 'libp2p'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "none"
