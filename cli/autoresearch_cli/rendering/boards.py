"""The best, the leaderboard, the lineage."""

from __future__ import annotations

from autoresearch.answers import BestAnswer, LineageAnswer, TasksAnswer, TopAnswer
from autoresearch.views import SubjectView
from autoresearch_cli.rendering.figures import age, figure, moment, one_line, value
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import is_rich, print_labelled, print_rows, print_table
from autoresearch_cli.rendering.status import best_so_far

KEY_CHARACTERS = 8


def print_best(answer: BestAnswer, *, now_ms: int) -> None:
    """The best subject, and where that is between baseline and floor."""
    lines = [
        ("task", f"{one_line(answer.task.name)}, {one_line(answer.task.metric)}"),
        ("best", best_so_far(answer.task)),
    ]
    for label, subject in (("confirmed", answer.confirmed), ("reported", answer.reported)):
        if subject:
            lines.append((label, subject_line(subject, now_ms)))
    if answer.run and answer.run.hypothesis:
        lines.append(("idea", one_line(answer.run.hypothesis)))
    if answer.note:
        lines.append(("!", one_line(answer.note)))
    print_labelled(lines)


def subject_line(subject: SubjectView, now_ms: int) -> str:
    """One subject: value, how often it was run, id, title, who and when."""
    times = "once" if subject.runs == 1 else f"{subject.runs} times"
    parts = [value(subject.mean), f"run {times}", short(subject.id), f"“{one_line(subject.title)}”"]
    return " · ".join([*parts, f"by {subject.author[:KEY_CHARACTERS]}", age(subject.time_ms, now_ms)])


def print_top(answer: TopAnswer, *, now_ms: int) -> None:
    """The leaderboard."""
    if not is_rich():
        print_rows(
            (s.position, s.id, figure(s.mean), figure(s.score), s.runs, s.state, s.author, moment(s.time_ms), s.title)
            for s in answer.subjects
        )
        return
    rows = [
        (s.position, value(s.mean), value(s.score), s.runs, short(s.id), s.state, age(s.time_ms, now_ms), s.title)
        for s in answer.subjects
    ]
    columns = ("#", one_line(answer.task.metric), "score", "runs", "id", "state", "when", "title")
    print_table(columns, rows, right=("#", "score", "runs", columns[1]))


def print_tasks(answer: TasksAnswer) -> None:
    """All tasks: name, digest, metric, how many runs, the best so far."""
    if not is_rich():
        print_rows(
            (t.name, t.digest, t.metric, t.direction, t.runs, figure(t.best.mean if t.best else None))
            for t in answer.tasks
        )
        return
    rows = [
        (one_line(t.name), t.digest[:12], one_line(t.metric), t.direction, t.runs, value(t.best.mean) if t.best else "")
        for t in answer.tasks
    ]
    print_table(("task", "digest", "metric", "direction", "runs", "best"), rows, right=("runs", "best"))


def print_lineage(answer: LineageAnswer) -> None:
    """The steps from the baseline to a run, each with the change of the mean."""
    steps = [(step, step.run) for step in answer.steps]
    if not is_rich():
        print_rows(
            (run.id, figure(step.mean), figure(step.delta), step.runs, run.status, run.title) for step, run in steps
        )
        return
    rows = [
        (short(run.id), value(step.mean), "" if step.delta is None else f"{step.delta:+.4f}", step.runs, run.title)
        for step, run in steps
    ]
    print_table(("id", "mean", "change", "runs", "title"), rows, right=("mean", "change", "runs"))
