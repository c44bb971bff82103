"""Hooks of MkDocs: pages from outside of ``docs``, the written tables, and links that leave the site."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.generate import commands, documents, operations

ROOT = Path(__file__).parents[2]
# Pages of the repository that are pages of the site, by their address there.
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
}
FILLED: dict[str, Callable[[str], str]] = {
    "reference/commands.md": commands.fill,
    "reference/json.md": documents.fill,
    "reference/api.md": operations.fill,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root."""
    for source, address in FROM_ROOT.items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write the tables of a page, and have its links lead to pages of the site; those to other files become text."""
    del config
    address = page.file.src_uri
    markdown = FILLED.get(address, str)(markdown)
    of_root = {address: source for source, address in FROM_ROOT.items()}
    folder = dirname(of_root.get(address, f"docs/{address}"))

    def linked(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        path = normpath(f"{folder}/{target}") if folder else normpath(target)
        site = FROM_ROOT.get(path, path.removeprefix("docs/"))
        if not files.get_file_from_path(site):
            return text if (ROOT / path).exists() else match[0]  # MkDocs warns of a link to nothing
        return f"[{text}]({relpath(site, dirname(address) or '.')}{anchor or ''})"

    return re.sub(r"\[((?:[^][]|\[[^]]*\])*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", linked, markdown)
