"""The runs of a task as a git repository: one commit a run, on the commit of its parent run."""

from autoresearch.git_export.exporting import Exported, export_task
from autoresearch.git_export.repository import exported_task, open_repository

__all__ = ["Exported", "export_task", "exported_task", "open_repository"]
