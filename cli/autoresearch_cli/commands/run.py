"""``run``: one run of the program in a task folder, or a benchmark run of a project."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import Event, operations
from autoresearch.errors import AutoresearchError, DaemonNotRunning, UsageError
from autoresearch.ideas import Idea
from autoresearch_cli import here
from autoresearch_cli.agent_folders import refreshed
from autoresearch_cli.ideas import Hypothesis, Parent, idea_in, outcome, refuse_repetition, request
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.packages import AllowPackages, ask_for_packages
from autoresearch_cli.projects import From, Set, Trust, do_run, finish_run, means_project, project_path
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.progress import Display, choose_display
from autoresearch_cli.rendering.records import print_record
from autoresearch_cli.rendering.status import state_sentence
from autoresearch_cli.watching import OK, Watch, text_in

# States in which the daemon begins nothing.
HELD = ("paused", "waiting", "stopping")
app = command_app()
apps = {"run": app}


@app.command(
    epilog=examples(
        ("autoresearch run", "the configured task's program"),
        ("autoresearch run ~/grammar --hypothesis 'longer warm-up'", "your edit, as a change of a known run"),
        ("autoresearch run agent.ini", "a benchmark run of a project"),
        see="next, propose, train, task get, show, diff",
    )
)
def run(  # noqa: PLR0913 - each is an option of the command
    folder: Annotated[
        str,
        typer.Argument(metavar="[DIR|INI]", help="A task folder or a project. Left out: this project, or the task."),
    ] = "",
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="A project's agent.ini.")] = "",
    episodes: Annotated[int, typer.Option("--episodes", "-n", min=1, help="Of a project: how many episodes.")] = 20,
    assignments: Set = None,
    start: From = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of a project: the seed of the first episode.")] = 0,
    trust: Trust = False,
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    replicate: Annotated[
        int, typer.Option("--replicate", min=0, help="Which seed: 0 for a new attempt, 1 and up to repeat it.")
    ] = 0,
    allow_packages: AllowPackages = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run it also where the same program was run with the same seed.")
    ] = False,
    json: Json = False,
) -> None:
    """Train the program of a task folder once and compare it with the run that it changes; or benchmark a project.

    A folder with an agent.ini is a project: its agent runs, nothing learns, the rewards are kept as a run.
    """
    if means_project(file or folder):
        if hypothesis or parent or replicate or again:
            raise UsageError("this is a project; that option is for a task folder", hint="autoresearch run --help")
        path = project_path(file or folder)
        given = assignments or []
        measured = do_run(
            path,
            "bench",
            episodes,
            assignments=given,
            start=start,
            seed=seed,
            trust=trust,
            allow_packages=allow_packages,
            json=json,
        )
        finish_run(measured, json=json)
        return
    if assignments or start or seed or trust:
        raise UsageError("this is a task folder; that option is for a project", hint="autoresearch run --help")
    idea = idea_in(here.task_folder(folder), parent=parent, hypothesis=hypothesis, replicate=replicate)
    if not again:
        refuse_repetition(idea)
    ask_for_packages(idea.task, allowed=allow_packages)
    with choose_display(quiet=True) as display:
        try:
            record = _through_daemon(idea, display)
        except DaemonNotRunning:
            record = _here(idea, display)
    with open_notebook() as notebook:
        shown = notebook.show(record)
        lines = [*refreshed(notebook, idea.task), *outcome(notebook, shown, idea.task)]
    if json:
        print_json(shown)
    else:
        try:
            print_record(shown, now_ms=here.now_ms())
        finally:  # also where the reader of the record has gone: autoresearch run | head -1
            for line in lines:
                say(line)
    if shown.run is None or shown.run.status != OK:
        raise typer.Exit(1)


def _through_daemon(idea: Idea, display: Display) -> str:
    """Have the daemon do it and wait for the end. Returns the record's id."""
    client = here.client()
    with client.events() as events:
        proposed = client.ask(operations.PROPOSE, request(idea)).proposed[0]
        status = client.ask(operations.STATUS)
        if status.state in HELD:
            say(f"the run waits: {state_sentence(status, here.now_ms())}")
        elif waits := next((each for each in status.queue if each.name == proposed), None):
            say(f"{waits.title}: waits {waits.reason} (Ctrl-C leaves it in the queue)")
        watch = Watch(display, only=proposed)
        try:
            for event in events:
                if event.kind == "state" and text_in(event, "state") in HELD:
                    say(f"the run waits: {text_in(event, 'reason')} (Ctrl-C leaves it in the queue)")
                if watch.take(event):
                    return _record_of(event)
        except KeyboardInterrupt:
            say("the run stays with the daemon: autoresearch status")
            raise
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _record_of(event: Event) -> str:
    record = text_in(event, "id")
    if not record:
        raise AutoresearchError(text_in(event, "reason") or event.text, hint="autoresearch task show")
    return record


def _here(idea: Idea, display: Display) -> str:
    """Do it in this process, without the daemon. Returns the record's id."""
    from autoresearch.research import Ceiling
    from autoresearch.single_run import run_once

    say("the daemon is not running: this process does it")
    work, name = here.settings().work, idea.task.name
    return run_once(
        idea,
        here.paths(),
        now_ms=here.now_ms,
        ceiling=Ceiling.of(work),
        threads=work.threads,
        device=here.first_device(),
        allow_packages=work.allow_packages,
        progress=lambda fraction, note: display.progress("run", name, fraction, note),
    )
