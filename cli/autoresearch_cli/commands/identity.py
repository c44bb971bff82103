"""``id``: this participant's keys and devices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import typed_path
from autoresearch.text import NAME_CHARACTERS, counted
from autoresearch.trust import identity as identities
from autoresearch.trust.keys import KeyPair
from autoresearch_cli import home
from autoresearch_cli.acts import joining
from autoresearch_cli.catalogue import Answered, CommandApp, Json, Yes, examples
from autoresearch_cli.commands import attestor
from autoresearch_cli.home import loaded, passphrase, unlocked
from autoresearch_cli.models import BackupAnswer, DeviceRow, DevicesAnswer, IdentityAnswer
from autoresearch_cli.rendering.lists import DEVICE_COLUMNS
from autoresearch_cli.rendering.output import confirm, print_json, print_labelled, print_list, say

KEY_CHARACTERS = 16
app = CommandApp("This participant's keys and devices.", no_args_is_help=False)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        ("autoresearch node id show", "the keys of this machine"),
        ("autoresearch node id passphrase", "encrypt the root key"),
        ("autoresearch node id backup ~/root-backup", "an encrypted copy, in case the disk fails"),
        see="node doctor, node paths, node records --mine",
    ),
)
def identity(context: typer.Context) -> None:
    """A root key identifies the participant; a device key signs what this machine publishes."""
    if context.invoked_subcommand is not None:
        return
    try:
        show()
        say("→ autoresearch node id --help")
    except NotFound as error:  # whoever only looks gets told, without a failure
        say(f"{error} → {error.hint}")


@app.command(
    "new",
    ("autoresearch node id new", "make both keys; asks for the root key's passphrase"),
    ("autoresearch node id new --no-passphrase", "leave the root key unencrypted"),
    ("AUTORESEARCH_PASSPHRASE=… autoresearch node id new --json", "the same for a program"),
    see="node id show, node id backup, node paths",
)
def new(
    *,
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Leave the root key unencrypted, readable by this user only.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a root key and a device key. Without keys the daemon makes both at its first start, unencrypted."""
    home.paths().create()
    secret = (
        None
        if no_passphrase
        else passphrase("for the new root key", confirm=True, instead="or leave it unencrypted: --no-passphrase")
    )
    made = identities.create_identity(home.paths().keys, passphrase=secret)
    _report(made, encrypted=secret is not None, json=json)
    if secret is not None and not json:
        say("→ autoresearch node id renew, once this machine is in your network: it signs what the daemon can't")
    if not json:
        say("→ autoresearch node id backup FILE: only you can restore the root key")


@app.command(
    "show",
    ("autoresearch node id show", "both public keys"),
    ("autoresearch node id show --json | jq -r .device_key", "the device key for a program"),
    ("autoresearch node records --mine", "what this device published"),
    see="node id new, node id devices, node doctor",
)
def show(*, json: Json = False) -> None:
    """The public keys, in hexadecimal. The secret halves are never printed."""
    _report(loaded(), json=json)


@app.command(
    "name",
    ("autoresearch node id name ann", "be “ann” beside your key in others' tables"),
    ('autoresearch node id name "ann of the tea house"', "with spaces"),
    ("autoresearch node id name --remove", "be a key without a name again"),
    see="node id show, top, network credit",
)
def name(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"1 to {NAME_CHARACTERS} characters of one line.")] = "",
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Take the name away.")] = False,
    json: Json = False,
) -> None:
    """Choose the name beside your key. It proves nothing: any participant may take any name."""
    if remove == bool(name):
        sentence = "a name, or --remove, but not both" if name else "no name was given"
        raise UsageError(sentence, hint=f"a NAME of 1 to {NAME_CHARACTERS} characters, or --remove to take it away")
    joining.call(name)
    _report(loaded(), json=json)


@app.command(
    "devices",
    ("autoresearch node id devices", "the devices of this participant"),
    ("autoresearch node id devices --json | jq '.devices[].state'", "how each stands, for a program"),
    ("autoresearch node id revoke 3f9a", "revoke a device"),
    see="node id add-device, node id revoke, node id renew",
)
def devices() -> Answered:
    """The devices that the root key named."""
    mine = loaded()
    listed = [
        DeviceRow(
            device_key=device.key.hex(),
            state=device.state,
            since=device.since_ms,
            until=device.until_ms,
            this=_is(device.key, mine),
        )
        for device in joining.rows(mine)
    ]
    yield DevicesAnswer(participant=mine.root.public.hex(), devices=listed)
    print_list(DEVICE_COLUMNS, listed)
    if not listed:
        say("no device is delegated in this log yet → autoresearch up")


@app.command(
    "add-device",
    ("autoresearch node id add-device", "on the new machine: print its request"),
    ("autoresearch node id add-device autoresearch-device:…", "where the root key is: print the answer"),
    ("autoresearch node id add-device autoresearch-delegation:…", "on the new machine again: done"),
    see="node id devices, node id revoke",
)
def add_device(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The request, or the answer to it.")] = "",
    *,
    json: Json = False,
) -> None:
    """Add a second machine as a device of this participant. Neither text is secret; check whose request it is."""
    home.paths().create()
    if not text:
        joining.request(json=json)
    elif text.startswith(identities.REQUEST):
        joining.approve(text, unlocked(loaded()), json=json)
    elif text.startswith(identities.ANSWER):
        joining.adopt(text, json=json)
    else:
        raise UsageError(
            "that is neither a request nor an answer", hint="autoresearch node id add-device prints a request"
        )


@app.command(
    "renew",
    ("autoresearch node id renew", "delegate this device for 90 more days"),
    ("autoresearch down && autoresearch node id renew && autoresearch up", "when the daemon runs"),
    ("autoresearch node id renew --json", "the same for a program"),
    see="node id devices, node id show",
)
def renew(*, json: Json = False) -> None:
    """Delegate this device again. The daemon does it by itself while the root key is here unencrypted."""
    mine = unlocked(loaded())
    joining.renew(mine)
    _report(loaded(), json=json)


@app.command(
    "revoke",
    ("autoresearch node id revoke 3f9a", "the device whose key begins so"),
    ("autoresearch node id revoke 3f9a --reason 'laptop stolen'", "with a public reason"),
    ("autoresearch node id devices", "what the devices are"),
    see="node id devices, node id add-device",
)
def revoke(
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="A device key or its beginning.")],
    *,
    reason: Annotated[str, typer.Option(help="The reason, public.")] = "",
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Revoke a device: its later records do not count. What it published before still counts."""
    mine = loaded()
    key = _device(mine, device)
    if not yes:
        confirm(f"Revoke the device {key.hex()[:KEY_CHARACTERS]} for good?")
    joining.revoke(unlocked(mine), key, reason)
    devices(json=json)


@app.command(
    "merge",
    ("autoresearch node id merge", "this device's history forked: let both branches count"),
    ("autoresearch node id merge 3f9a", "that of another device of yours"),
    ("autoresearch down && autoresearch node id merge && autoresearch up", "when the daemon runs"),
    see="node doctor, run evidence, node id devices",
)
def merge(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE", help="A device key or its beginning. Left out: this device.")
    ] = "",
) -> Answered:
    """End the fork of a device. Its later runs count again. A fork follows when an older copy of a log is restored."""
    mine = loaded()
    answer = joining.merge(unlocked(mine), _device(mine, device) if device else mine.device.public)
    yield answer
    branches = counted(len(answer.heads), "branch", "branches")
    say(f"{branches} of device {answer.device_key[:16]}… merged, up to its record {answer.seq}")
    say(f"{counted(answer.runs, 'run')} may count again; other nodes see it once this node is connected")


@app.command(
    "passphrase",
    ("autoresearch node id passphrase", "encrypt the root key, or change its passphrase"),
    ("autoresearch node id passphrase --remove", "decrypt it"),
    ("autoresearch node id show", "whether the root key is encrypted here"),
    see="node id backup, node id renew",
)
def change_passphrase(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Decrypt the root key.")] = False,
    json: Json = False,
) -> None:
    """Encrypt the root key with a passphrase. The daemon does not need it; `node id renew` then asks."""
    mine = unlocked(loaded())
    secret = None if remove else passphrase("that the root key gets", confirm=True)
    identities.protect_root(home.paths().keys, _root(mine), secret)
    _report(loaded(), json=json)


@app.command(
    "backup",
    ("autoresearch node id backup ~/root-backup", "an encrypted copy of the root key"),
    ("autoresearch node id restore ~/root-backup", "on another machine"),
    ("autoresearch node id backup ~/root-backup && ssh-keygen -y -f ~/root-backup", "and check that it opens"),
    see="node id restore, node id passphrase",
)
def backup(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to; nothing is overwritten.")]) -> Answered:
    """Write an encrypted copy of the root key. Device keys are not in it: a restored machine gets a new one."""
    mine = unlocked(loaded())
    identities.back_up_root(typed_path(file), _root(mine), passphrase("for the backup", confirm=True))
    yield BackupAnswer(participant=mine.root.public.hex(), file=str(file))
    say(f"the encrypted root key is in {file}; without the passphrase it is lost")


@app.command(
    "restore",
    ("autoresearch node id restore ~/root-backup", "the same participant on this machine, with a new device key"),
    ("autoresearch node id devices", "then list the devices"),
    ("autoresearch node id revoke 3f9a", "and revoke the one that was lost"),
    see="node id backup, node id renew",
)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `node id backup` wrote.")], *, json: Json = False
) -> None:
    """Restore the root key from a backup. This machine must have no keys yet."""
    try:
        content = typed_path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file} can't be read: {error.strerror}", hint="name the backup's file") from error
    home.paths().create()
    restored = identities.restore_identity(home.paths().keys, content, passphrase("of the backup"))
    _report(restored, encrypted=True, json=json)
    if not json:
        say("→ let this node catch up (autoresearch up, autoresearch network peers), then autoresearch node id renew")


app.command(
    "attest",
    ("autoresearch node id attest you@example.org", "have attestors send you codes; then type them"),
    ("autoresearch node id attest --status", "whether you are attested, and until when"),
    ("autoresearch node id attest you@example.org --json", "ask, and confirm later"),
    see="node id confirm, network trust, status",
)(attestor.attest)
app.command(
    "confirm",
    ("autoresearch node id confirm K7QXM-3PDTF-A2WZN-6HRYB", "a code that came by mail"),
    ("autoresearch node id confirm < mail.txt", "or the whole mail, or several"),
    ("autoresearch node id attest --status", "which codes are missing"),
    see="node id attest, node id passphrase",
)(attestor.confirm)


def _device(mine: identities.OwnKeys, text: str) -> bytes:
    """The device that a beginning of its key names. Raises NotFound, UsageError."""
    keys = [row.key for row in joining.rows(mine) if row.key.hex().startswith(text.lower())]
    if not keys:
        raise NotFound(f"this participant has no device {text}", hint="autoresearch node id devices")
    if len(keys) > 1:
        raise UsageError(f"{text} can mean several devices", hint="type more characters")
    return keys[0]


def _root(mine: identities.OwnKeys) -> KeyPair:
    assert isinstance(mine.root, KeyPair)
    return mine.root


def _is(device: bytes, mine: identities.OwnKeys) -> bool:
    return device == mine.device.public


def _report(mine: identities.OwnKeys, *, json: bool, encrypted: bool = False) -> None:
    plain = isinstance(mine.root, KeyPair)
    lies = "plain" if plain else "encrypted" if mine.root.is_local else "elsewhere"  # type: ignore[union-attr]
    answer = IdentityAnswer(
        participant=mine.root.public.hex(),
        device_key=mine.device.public.hex(),
        folder=str(home.paths().keys),
        root_key="encrypted" if encrypted else lies,
        name=joining.name_of(mine),
    )
    if json:
        print_json(answer)
        return
    lines = [("participant", answer.participant), ("device key", answer.device_key), ("folder", answer.folder)]
    named = [("name", answer.name)] if answer.name else []
    print_labelled([*lines, ("root key", answer.root_key), *named])
