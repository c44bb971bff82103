"""A red team for a task: programs that do no honest work try to get a good number out of how it is measured."""
