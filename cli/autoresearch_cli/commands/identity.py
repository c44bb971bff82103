"""``id``: this participant's keys."""

from __future__ import annotations

from autoresearch.errors import NotFound
from autoresearch.identity import Identity, create_identity, load_identity
from autoresearch_cli import here
from autoresearch_cli.models import IdentityAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, print_labelled, say

app = command_app("This participant's keys.")
apps = {"id": app}


@app.callback(
    epilog=examples(
        ("autoresearch id show", "who this machine is in the notebook"),
        ("autoresearch id new", "make the keys before the daemon's first start does"),
        ("autoresearch id show --json", "the same for a program"),
        see="doctor, paths, log --mine",
    )
)
def identity() -> None:
    """A root key stands for the person or team, a device key signs what this machine publishes."""


@app.command(
    epilog=examples(
        ("autoresearch id new", "make both keys; existing ones are never overwritten"),
        ("autoresearch id new && autoresearch id show", "and look at them"),
        ("autoresearch id new --json", "the same for a program"),
        see="id show, paths",
    )
)
def new(*, json: Json = False) -> None:
    """Make a root key and a device key. The daemon does so at its first start when there are none."""
    here.paths().create()
    _report(create_identity(here.paths().keys), json=json)
    if not json:
        say(f"→ keep a copy of {here.paths().keys} in a safe place: nobody can restore it")


@app.command(
    epilog=examples(
        ("autoresearch id show", "both public keys"),
        ("autoresearch id show --json | jq -r .device_key", "the device key for a program"),
        ("autoresearch log --mine", "what this device published"),
        see="id new, doctor",
    )
)
def show(*, json: Json = False) -> None:
    """The public keys, in hexadecimal. The secret halves are never printed."""
    try:
        found = load_identity(here.paths().keys)
    except NotFound as error:
        raise NotFound("there are no keys yet", hint="autoresearch id new, or start the daemon") from error
    _report(found, json=json)


def _report(found: Identity, *, json: bool) -> None:
    answer = IdentityAnswer(
        participant=found.root.public.hex(), device_key=found.device.public.hex(), folder=str(here.paths().keys)
    )
    if json:
        print_json(answer)
        return
    print_labelled([("participant", answer.participant), ("device key", answer.device_key), ("folder", answer.folder)])
