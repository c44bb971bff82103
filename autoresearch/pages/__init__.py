"""The pages of a node as HTML: answers of the API in, text out. The daemon serves them; an export writes them.

Strangers' words are escaped where they stand (jinja2's autoescape) and cleaned by `autoresearch.sanitise` before.
"""

from autoresearch.pages.assets import Asset, asset, asset_names
from autoresearch.pages.chart import ChartData, chart_data
from autoresearch.pages.links import NAVIGATION, Links
from autoresearch.pages.progress import ProgressContent, no_progress
from autoresearch.pages.query import Query
from autoresearch.pages.rendering import View, render
from autoresearch.pages.standing import Standing, best_program, standing

__all__ = [
    "NAVIGATION",
    "Asset",
    "ChartData",
    "Links",
    "ProgressContent",
    "Query",
    "Standing",
    "View",
    "asset",
    "asset_names",
    "best_program",
    "chart_data",
    "no_progress",
    "render",
    "standing",
]
