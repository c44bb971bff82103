"""``doctor``: check this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.health import conditions, guarded, is_usable
from autoresearch.ask.node import Check
from autoresearch.paths import typed_path
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.text import counted
from autoresearch_cli import home, starting
from autoresearch_cli.acts.checks import all_checks, check_cards, check_sandbox, log_checks
from autoresearch_cli.acts.network_checks import network_checks
from autoresearch_cli.catalogue import CommandApp, Folder, Json, examples
from autoresearch_cli.models import DoctorAnswer, Probe
from autoresearch_cli.rendering.lists import CHECK_COLUMNS
from autoresearch_cli.rendering.output import is_rich, print_json, print_list, print_rows, say

AcceptFork = Annotated[
    bool, typer.Option("--accept-fork", help="Let this device's history fork where an older copy of the log ends.")
]
Bundle = Annotated[
    str,
    typer.Option("--bundle", metavar="FILE", help="Write a zip file for somebody who helps, without what is private."),
]
app = CommandApp(no_args_is_help=False)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch node doctor", "everything, with how to mend what is wrong"),
        ("autoresearch node doctor --bundle help.zip", "a file for somebody who helps, without what is private"),
        ("autoresearch node doctor --accept-fork", "go on after an older copy of the log was put back"),
        see="status, node config, node paths, network peers",
    ),
)
def doctor(context: typer.Context, *, accept_fork: AcceptFork = False, bundle: Bundle = "", json: Json = False) -> None:
    """Check Python, sandbox, disk, keys, log, task and daemon. Exits with 1 when something failed."""
    if context.invoked_subcommand is None:
        _check_all(accept_fork=accept_fork, bundle=bundle, json=json)


@app.command(
    "network",
    ("autoresearch node doctor network", "library, settings, addresses, the nodes to begin with, clocks"),
    ("autoresearch node doctor network --json | jq '.checks[] | select(.result != \"ok\")'", "what is not well"),
    ("autoresearch node doctor network && autoresearch network peers", "then list the peers"),
    see="network peers, network, node doctor",
)
def network(*, json: Json = False) -> None:
    """Why no peer is reachable, and what to do. Exits with 1 when something failed."""
    _report(list(network_checks()), json=json)


@app.command(
    "task",
    ("autoresearch node doctor task", "can this machine run the configured task?"),
    (
        "autoresearch node doctor task ~/my-task",
        "the same for a folder: limits, device, data, the baseline's imports",
    ),
    ("autoresearch node doctor task ~/my-task --json | jq .healthy", "the same for a program"),
    see="task show, run, node doctor",
)
def task(folder: Folder = "", *, json: Json = False) -> None:
    """Whether this machine can run a task, and what is missing. Exits with 1 when something failed."""
    from autoresearch_cli.acts.checks import task_checks

    home.paths().create()
    _report(list(task_checks(folder)), json=json)


@app.command(
    "log",
    ("autoresearch node doctor log", "every record's hash and signature, every blob's hash"),
    ("autoresearch node doctor log --json | jq .healthy", "the same for a program"),
    ("autoresearch run export --bundle log.car", "a copy of the log"),
    see="node doctor, node records, run export",
)
def log(*, json: Json = False) -> None:
    """Read the whole log: every hash and signature. Names the first record that is wrong, and exits with 1 then."""
    _report(list(log_checks()), json=json)


@app.command(
    "executor",
    ("autoresearch node doctor executor", "what the cluster lacks: Python, torch, a sandbox"),
    ("autoresearch node doctor executor --host gpu1", "the same of a machine that ssh gpu1 reaches"),
    ("autoresearch node doctor executor && autoresearch work --executor slurm", "then have runs carried out there"),
    see="work, node doctor, node config",
)
def executor(
    *,
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="A machine, as in the command ssh NAME.")] = "",
    json: Json = False,
) -> None:
    """What a Slurm cluster or a machine behind SSH lacks for runs.

    Which one, the settings say; a Slurm cluster, where they name none. Exits with 1 if it can't carry out runs.
    """
    from autoresearch_cli.acts.executor_checks import executor_checks

    _report(list(executor_checks(host)), json=json)


def _check_all(*, accept_fork: bool, bundle: str, json: bool) -> None:
    if accept_fork:
        with Notebook(home.paths()) as notebook:
            notebook.accept_fork(home.now_ms())
        say("accepted: the history forks here; once both branches are in the log: autoresearch node id merge")
    checks = list(all_checks())
    level, attacks = detect_level(home.paths().secrets())
    checks.append(guarded("sandbox", partial(check_sandbox, level, attacks)))
    checks += check_cards(level)
    probes = [Probe(name=probe.name, blocked=probe.blocked) for probe in attacks]
    answer = DoctorAnswer(healthy=is_usable(checks), checks=checks, probes=probes)
    if bundle:
        from autoresearch_cli.acts.support import write_bundle

        file = typed_path(bundle)
        parts = write_bundle(file, answer, starting.daemon_status(), home.paths(), home.environment())
        say(f"{file} has {', '.join(parts)}: look through it before you send it")
    _report(checks, probes, json=json)


def _report(checks: list[Check], probes: Sequence[Probe] = (), *, json: bool) -> None:
    answer = DoctorAnswer(healthy=is_usable(checks), checks=checks, probes=list(probes))
    if json:
        print_json(answer)
    else:
        _print(answer)
    if not answer.healthy:
        raise typer.Exit(1)


def _print(answer: DoctorAnswer) -> None:
    print_list(CHECK_COLUMNS, answer.checks)
    open_doors = [probe for probe in answer.probes if not probe.blocked]
    probes = open_doors if is_rich() else answer.probes
    print_rows(("attack", probe.name, "blocked" if probe.blocked else "NOT BLOCKED") for probe in probes)
    if answer.probes:
        say(f"the sandbox blocked {len(answer.probes) - len(open_doors)} of {len(answer.probes)} attacks")
    for check in answer.checks:
        if check.fix and not is_rich():
            say(f"→ {check.name}: {check.fix}")
    if not (problems := conditions(answer.checks)):
        say("nothing is wrong here")
    elif answer.healthy:
        say(f"nothing failed; {counted(len(problems), 'warning')}")
