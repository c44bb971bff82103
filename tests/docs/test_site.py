"""The site of the documents: whole, with links that lead somewhere, and read without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


class Loads(HTMLParser):
    """What a page loads by itself when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if address := dict(attrs).get(LOADED.get(tag, "")):
            self.addresses.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it: a link to nothing ends the build."""
    pytest.importorskip("mkdocs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text())
        assert [address for address in loads.addresses if re.match(r"(https?:)?//", address)] == [], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text()), sheet


@pytest.mark.slow
def test_tables_and_pages_of_the_repository_are_in_the_site(site: Path) -> None:
    commands = (site / "reference/commands.html").read_text()
    assert 'id="network-peers-add"' in commands
    assert "autoresearch.status/2" in (site / "reference/json.html").read_text()
    assert "POST /v1/orders/cancel" in (site / "reference/api.html").read_text()
    start = (site / "index.html").read_text()
    assert 'href="tutorial.html"' in start
    assert 'href="architecture.html"' in start
    assert not list(site.rglob("*.py"))
