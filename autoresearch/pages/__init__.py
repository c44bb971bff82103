"""The pages of a node as HTML: answers of the API in, text out. The daemon serves them; an export writes them.

Strangers' words are escaped where they stand (jinja2's autoescape) and cleaned by `autoresearch.sanitise` before.
"""

from autoresearch.pages.assets import Asset, asset, asset_names
from autoresearch.pages.bare_rows import bare_row
from autoresearch.pages.boards import SECTION_MARKS, as_program, by_credit, confirmed_board, improvement, verifications
from autoresearch.pages.changed_lines import changed_program
from autoresearch.pages.chart import ChartData, chart_data
from autoresearch.pages.contents import board_content, lineage_content, run_content
from autoresearch.pages.curves import curve_data
from autoresearch.pages.forest import forest, refuting
from autoresearch.pages.links import NAVIGATION, Links
from autoresearch.pages.log_tails import log_tail
from autoresearch.pages.places import Interval, places
from autoresearch.pages.progress import ProgressContent, no_progress
from autoresearch.pages.query import Query
from autoresearch.pages.rendering import View, render
from autoresearch.pages.standing import Standing, best_program, standing
from autoresearch.pages.waterfall import waterfall

__all__ = [
    "NAVIGATION",
    "SECTION_MARKS",
    "Asset",
    "ChartData",
    "Interval",
    "Links",
    "ProgressContent",
    "Query",
    "Standing",
    "View",
    "as_program",
    "asset",
    "asset_names",
    "bare_row",
    "best_program",
    "board_content",
    "by_credit",
    "changed_program",
    "chart_data",
    "confirmed_board",
    "curve_data",
    "forest",
    "improvement",
    "lineage_content",
    "log_tail",
    "no_progress",
    "places",
    "refuting",
    "render",
    "run_content",
    "standing",
    "verifications",
    "waterfall",
]
