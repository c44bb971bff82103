"""``serve`` and ``services``: components of a project for other programs, and which of them run.

``train --join``: playing for a trainer that is served elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.ask.lookup import services_answer
from autoresearch.ask.node import ServicesAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.errors import DaemonNotRunning, UsageError
from autoresearch.face.columns.node import SERVICE_COLUMNS
from autoresearch.paths import typed_path
from autoresearch.project.runs.fleet import act_for_learner
from autoresearch.project.runs.running import LOOPBACK, Choices, ServiceChoices, serve_component
from autoresearch.services import Service
from autoresearch.text import counted
from autoresearch_cli import home
from autoresearch_cli.agent.models import ActedAnswer, ServiceAnswer, ServiceKeyAnswer
from autoresearch_cli.agent.projects import STOPPED, From, Set, Trust, chosen, figures_shown, metric_lines, project_path
from autoresearch_cli.catalogue import AllowPackages, CommandApp, Json, JsonLines
from autoresearch_cli.rendering.output import print_json, print_labelled, print_list, say
from autoresearch_cli.rendering.status import ask_it, print_service


def join(choices: Choices, learner: str, episodes: int, *, server_key: str, others: Sequence[str], json: bool) -> None:
    """Play episodes for a learner. ``others`` are options that were given and mean nothing here. Raises UsageError."""
    if others:
        raise UsageError(f"--join and {' '.join(others)} can't be combined", hint="the learner decides that")
    home.paths().create()  # the folder of this node's key for services
    with figures_shown("play", "train", episodes, json=json) as show:
        key_file = home.paths().service_key
        acted = act_for_learner(
            choices,
            learner,
            episodes,
            key_file=key_file,
            server_key=server_key,
            elsewhere=lambda: [service for service in _services().services if service.machine],
            on_figures=show,
        )
    if json:
        print_json(ActedAnswer(learner=acted.place, metrics=acted.metrics))
    else:
        print_labelled([("learner", acted.place), *metric_lines(acted.metrics)])
    say("stopped: the learner has what was played" if acted.stopped else "the learner keeps what was learned")
    if acted.stopped:
        raise typer.Exit(STOPPED)


# Instead of a key: the machines of this participant.
OWN = "own"

app = CommandApp()


@app.command(
    "agent serve",
    ("autoresearch agent serve env", "the project's environment, for programs on this machine"),
    ("autoresearch agent serve trainer --allow own", "for your other machines, by the service's name"),
    ("autoresearch agent serve env --address 0.0.0.0 --allow KEY", "for one client on another machine"),
    see="agent services, train, install, list",
)
def serve(  # noqa: PLR0913 - each is an option of the command
    kind: Annotated[str, typer.Argument(metavar="KIND", help="env, action, inference or trainer.")] = "",
    component_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="The component's type. Left out: the one that this kind serves.")
    ] = "",
    component: Annotated[
        str, typer.Argument(metavar="NAME", help="The component's name. Left out: the default of its type.")
    ] = "",
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="The project's agent.ini.")] = "",
    name: Annotated[str, typer.Option("--name", help="What to call the service. Left out: the component's name.")] = "",
    address: Annotated[
        str,
        typer.Option(
            "--address",
            metavar="IP",
            help="Where to listen. Left out: 127.0.0.1, for this machine, or 0.0.0.0 with --allow own.",
        ),
    ] = "",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port. Left out: a free one.")] = 0,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="KEY", help="A client's public key; several times for several. own: your other machines."
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option("--key", metavar="FILE", help="The service's own key. Left out: this node's key for services."),
    ] = "",
    assignments: Set = None,
    start: From = "",
    trust: Trust = False,
    allow_packages: AllowPackages = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the services that run, as `agent services` does.")
    ] = False,
    json: JsonLines = False,
) -> None:
    """Serve a component of a project to other programs, until Ctrl-C. It runs in a process of its own.

    `env` serves an environment of Gymnasium, `action` the same for act() and obs(), `inference` a policy's decisions.
    `trainer` learns from the transitions that actors send, and publishes the policy to them.
    """
    if status:
        _list(json=json)
        return
    if not kind:
        raise UsageError(
            "name the kind of service: env, action, inference or trainer", hint="autoresearch agent serve env"
        )
    clients = [each for each in allow or () if each != OWN]
    own = home.paths().own_machines if OWN in (allow or ()) else None

    def started(service: Service) -> None:
        if json:
            print_json(ServiceAnswer(service=service))
        else:
            print_service(service)
        say(f"→ {ask_it(service)}; Ctrl-C ends it")

    ended = serve_component(
        chosen(project_path(file), assignments, start, None, trust=trust, allow_packages=allow_packages),
        ServiceChoices(
            kind,
            component_type,
            component,
            name,
            address=address or ("0.0.0.0" if own else LOOPBACK),  # noqa: S104 - clients need a key
            port=port,
            key_file=_key_file(key) if clients or key or own else None,
            clients=clients,
            own_machines=own,
        ),
        folder=home.paths().services,
        now_ms=home.now_ms,
        on_started=started,
    )
    if json:
        print_json(ServiceAnswer(service=ended.service, run=(ended.run and ended.run.id) or ""))
    say(f"{ended.service.name} ended after {counted(ended.service.requests, 'request')}")
    if ended.run:
        say(f"what was learned is kept as run {ended.run.id} → autoresearch run")


@app.command(
    "agent services",
    ("autoresearch agent services", "what runs here and on your other machines, and where"),
    ("autoresearch agent services --key", "this node's public key, for `agent serve --allow` on another machine"),
    ("autoresearch agent services --json | jq '.services[].port'", "the same for a program"),
    see="agent serve, list, node paths",
)
def services(
    *,
    key: Annotated[bool, typer.Option("--key", help="Show this node's key for services instead.")] = False,
    json: Json = False,
) -> None:
    """Show the components that this machine serves, and your other machines: kind, address, since when, requests."""
    if not key:
        _list(json=json)
        return
    from autoresearch.services.links.sockets import KeyPair

    file = _key_file("")
    pair = KeyPair.from_file(file)
    if json:
        print_json(ServiceKeyAnswer(public_key=pair.public.hex(), file=str(file)))
    else:
        print_labelled([("public key", pair.public.hex()), ("file", str(file))])
        say("→ on the machine that serves: autoresearch agent serve env --address 0.0.0.0 --allow PUBLIC-KEY")


def _list(*, json: bool) -> None:
    answer = _services()
    if json:
        print_json(answer)
    elif answer.services:
        print_list(SERVICE_COLUMNS, answer.services, now_ms=home.now_ms())
    else:
        say("no service runs here → autoresearch agent serve env")


def _services() -> ServicesAnswer:
    """What runs here; with a daemon also what this participant's other machines serve."""
    try:
        return home.client().ask(Node.services)
    except DaemonNotRunning:
        return services_answer(home.paths().services)


def _key_file(text: str) -> Path:
    """The file of a key for services; that of this node is made with its folder."""
    if text:
        return typed_path(text).absolute()
    paths = home.paths()
    paths.create()
    return paths.service_key
