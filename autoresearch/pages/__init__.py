"""The pages of a node as HTML: answers of the API in, text out. The daemon serves them; an export writes them.

Strangers' words are escaped where they stand (jinja2's autoescape) and cleaned by `autoresearch.sanitise` before.
"""

from autoresearch.pages.assets import Asset, asset, asset_names
from autoresearch.pages.bare_rows import bare_row
from autoresearch.pages.boards import as_program, by_credit, confirmed_board, improvement, verifications
from autoresearch.pages.changed_lines import changed_program
from autoresearch.pages.curves import curve_data
from autoresearch.pages.forest import forest, refuting
from autoresearch.pages.links import NAVIGATION, Links
from autoresearch.pages.log_tails import log_tail
from autoresearch.pages.places import Interval, places
from autoresearch.pages.rendering import View, render
from autoresearch.pages.waterfall import waterfall

__all__ = [
    "NAVIGATION",
    "Asset",
    "Interval",
    "Links",
    "View",
    "as_program",
    "asset",
    "asset_names",
    "bare_row",
    "by_credit",
    "changed_program",
    "confirmed_board",
    "curve_data",
    "forest",
    "improvement",
    "log_tail",
    "places",
    "refuting",
    "render",
    "verifications",
    "waterfall",
]
