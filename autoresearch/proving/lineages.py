"""Checks of lineages: whether a run names a parent on another task."""

from __future__ import annotations

from autoresearch.log import task_of
from autoresearch.proving.steps import NOT_ITS_RECORD, Given, Outcome, Step, failed, nothing_found, opened
from autoresearch.records import Network, Run, format_id
from autoresearch.words import with_article


def check_lineage(run: Given, parent: Given, network: Network) -> Outcome:
    """Whether the record that a run names as its parent is about another task, or about none."""
    steps, child = opened(run, network, "the run")
    more, above = opened(parent, network, "its parent")
    steps += more
    if child is None or above is None:
        return failed(steps, NOT_ITS_RECORD)
    if not isinstance(child.body, Run):
        return failed(steps, f"the record is {with_article(child.kind)}, not a run")
    named = child.body.parent
    steps.append(Step("parent", format_id(named) if named else "none", format_id(above.id), named == above.id))
    if named != above.id:
        return failed(steps, "that is not the parent which the run names")
    task = task_of(above.body)
    steps.append(
        Step(
            "task", f"the run's: {child.body.task.hex()}", f"its parent's: {task.hex() if task else 'none'}",
            task == child.body.task,
        )
    )  # fmt: skip
    if task == child.body.task:
        return nothing_found(steps, "both are about one task")
    return Outcome(tuple(steps), holds=True, sentence=f"the parent, a {above.kind}, is not about the run's task")
