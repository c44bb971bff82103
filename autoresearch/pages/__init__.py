"""The pages of a node as HTML: answers of the API in, text out. The daemon serves them; an export writes them.

Strangers' words are escaped where they stand (jinja2's autoescape) and cleaned by `autoresearch.sanitise` before.
"""

from autoresearch.pages.assets import Asset, asset, asset_names
from autoresearch.pages.links import NAVIGATION, Links
from autoresearch.pages.rendering import View, render

__all__ = ["NAVIGATION", "Asset", "Links", "View", "asset", "asset_names", "render"]
