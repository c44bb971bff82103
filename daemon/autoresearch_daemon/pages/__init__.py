"""The local pages: addresses that a browser opens, each answered from the same operations as the API."""

from autoresearch_daemon.pages.routes import add_pages, is_page

__all__ = ["add_pages", "is_page"]
