"""Runs of projects and the log: measured and recorded, fetched again, found by their components.

The other modules read projects, with numpy, which the daemon does without: they are imported by their own names.
"""

from autoresearch.project_records.records import publish_run, run_body_of

__all__ = ["publish_run", "run_body_of"]
