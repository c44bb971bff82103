"""Settings: a TOML file, environment variables over it, defaults below. Unknown keys are errors with a suggestion."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from autoresearch.errors import UsageError
from autoresearch.hours import parse_hours
from autoresearch.paths import write_refusals, write_whole
from autoresearch.text import did_you_mean, number_form, read_json, read_toml

ENVIRONMENT_PREFIX = "AUTORESEARCH_"
MAIL_PASSWORD_VARIABLE = "AUTORESEARCH_MAIL_PASSWORD"  # noqa: S105 - its name, not the password


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


class Work(Section, frozen=True, kw_only=True):
    """How this machine lends itself."""

    workers: Annotated[int, Meta(ge=0, le=64, description="training processes at a time; 0 only watches")] = 1
    device: Annotated[
        str, Meta(description='"auto", "cpu", "cuda", a list like "cuda:0,cuda:1", or UUIDs of cards (nvidia-smi -L)')
    ] = "auto"
    task: Annotated[str, Meta(description="folder of the task to work on; empty: the one that ships")] = ""
    threads: Annotated[int, Meta(ge=1, le=256, description="CPU threads of one run")] = 1
    proposer: Annotated[
        str,
        Meta(
            pattern="^(search|llm|command|mix)$",
            description="what invents changes: search, llm, command, or mix, which shares the runs among them",
        ),
    ] = "search"
    nice: Annotated[
        int, Meta(ge=0, le=19, description="how far runs give way to other programs: 0 not at all, 19 most")
    ] = 10
    verify_share: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="the most time over 24 hours, as a share, that goes to verifying others' runs; 1: nothing else",
        ),
    ] = 0.2
    minimum_sandbox: Annotated[
        int,
        Meta(
            ge=0,
            le=2,
            description="run nothing below this sandbox level: 2 bubblewrap or Apptainer, 1 landlock, 0 own code only",
        ),
    ] = 0
    allow_packages: Annotated[
        str,
        Meta(pattern="^(own|all)$", description="install Python packages for own tasks only, or for all tasks"),
    ] = "own"
    packages_mib: Annotated[
        int, Meta(ge=0, description="MiB of packages that tasks of others may install without asking; 0: ask each time")
    ] = 0
    max_seconds: Annotated[int, Meta(ge=1, description="seconds of one run; a task that asks for more is refused")] = (
        3600
    )
    max_memory_mib: Annotated[
        int, Meta(ge=0, description="MiB of memory of one run; 0: seven eighths of this machine's")
    ] = 0
    max_disk_mib: Annotated[int, Meta(ge=1, description="MiB of files that one run may write")] = 4096
    max_processes: Annotated[int, Meta(ge=1, description="processes of one run")] = 256
    max_output_kib: Annotated[int, Meta(ge=1, description="KiB of what one run prints that are kept")] = 16_384
    cores: Annotated[
        int, Meta(ge=0, le=4096, description="processor cores that all runs together may use; 0: all (Linux)")
    ] = 0
    hours: Annotated[
        str, Meta(description="when runs go on, in local time: mon-fri 19:00-07:00, sat-sun; empty: always")
    ] = ""
    hours_end: Annotated[
        str,
        Meta(pattern="^(finish|stop)$", description="at the end of these hours: finish the runs in hand, or stop them"),
    ] = "finish"
    only_on_mains: Annotated[bool, Meta(description="no runs on battery")] = False
    only_idle: Annotated[
        int, Meta(ge=0, le=1440, description="minutes without use of this machine before runs begin; 0: also in use")
    ] = 0
    idle_unknown: Annotated[
        str, Meta(pattern="^(wait|work)$", description="what only_idle does where nothing tells of use: wait or work")
    ] = "wait"
    pause_memory_mib: Annotated[
        int, Meta(ge=0, description="MiB of free memory below which runs are stopped; 0: never")
    ] = 0
    max_temperature: Annotated[
        int, Meta(ge=0, le=120, description="°C at which runs are stopped; they go on 10 °C below; 0: never")
    ] = 0
    only_free_card: Annotated[bool, Meta(description="no runs while another program computes on a card")] = False


class ExecutorSection(Section, frozen=True, kw_only=True):
    """Where runs are carried out besides this machine: on a cluster whose login node this is, or by SSH."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[\w.-]{1,40}$",
            description="who carries runs out: here, the workers; slurm, a cluster; ssh, another machine; an extension",
        ),
    ] = "here"
    at_most: Annotated[int, Meta(ge=1, le=10_000, description="runs there at a time, waiting ones included")] = 8
    device: Annotated[
        str,
        Meta(
            pattern="^(cpu|cuda(:[0-9]+)?|GPU-[0-9a-fA-F-]+)$",
            description="what a run gets: cpu, cuda (one card), cuda:1, or a card's UUID (nvidia-smi -L)",
        ),
    ] = "cpu"
    host: Annotated[
        str, Meta(pattern=r"^[\w.:@-]*$", description="the machine for ssh, as in the command ssh HOST")
    ] = ""
    python: Annotated[
        str, Meta(pattern=r"^[\w./+-]+$", description="the Python there that has this program installed")
    ] = "python3"
    folder: Annotated[
        str, Meta(pattern=r"^[\w./+-]+$", description="where runs lie there, below the home folder or from /")
    ] = ".cache/autoresearch/runs"
    options: Annotated[
        str, Meta(description="further words for sbatch, as --partition=short --account=lab; or for an extension")
    ] = ""


class LanguageModel(Section, frozen=True, kw_only=True):
    """A language model that proposes changes. Its key is in a variable or the system's keyring, never here."""

    api: Annotated[
        str, Meta(pattern="^(openai|anthropic|ollama)$", description="openai (also vLLM, llama.cpp), anthropic, ollama")
    ] = "openai"
    url: Annotated[str, Meta(description="where it answers; empty: the usual address of that API")] = ""
    model: Annotated[str, Meta(max_length=128, description="its name there; empty: no model is asked")] = ""
    key_variable: Annotated[
        str, Meta(description="environment variable of its key; empty: OPENAI_API_KEY or ANTHROPIC_API_KEY")
    ] = ""
    prompt_kib: Annotated[int, Meta(ge=4, le=1024, description="KiB of a prompt at most")] = 32
    answer_tokens: Annotated[int, Meta(ge=256, le=1 << 20, description="tokens of an answer at most")] = 16_384
    seconds: Annotated[int, Meta(ge=5, le=3600, description="seconds that it has for one answer")] = 300
    fields: Annotated[
        str,
        Meta(description='further fields of each request as JSON, such as {"reasoning_effort": "high"}; empty: none'),
    ] = ""
    tool_calls: Annotated[
        int, Meta(ge=0, le=100, description="questions to the log that it may ask before it answers; 0: none")
    ] = 8
    tool_kib: Annotated[int, Meta(ge=4, le=1024, description="KiB of the answers to these questions at most")] = 48
    price_in: Annotated[float, Meta(ge=0, description="money for a million tokens of prompt")] = 0.0
    price_out: Annotated[float, Meta(ge=0, description="money for a million tokens of answer")] = 0.0
    day_tokens: Annotated[int, Meta(ge=0, description="tokens in 24 hours, then the search goes on; 0: no limit")] = (
        2_000_000
    )
    day_cost: Annotated[float, Meta(ge=0, description="money in 24 hours, then the search goes on; 0: no limit")] = 5.0

    def request_fields(self) -> dict[str, object]:
        """What ``fields`` adds to each request. Raises UsageError where that is no JSON object or sets too much."""
        try:
            fields = read_json(self.fields or "{}")
        except ValueError as error:
            raise UsageError(f"llm.fields is no JSON: {error}", hint=_FIELDS_HINT) from error
        if not isinstance(fields, dict):
            raise UsageError("llm.fields is no JSON object", hint=_FIELDS_HINT)
        if taken := sorted({"model", "messages", "stream", "tools"} & fields.keys()):
            raise UsageError(f"llm.fields can't set {taken[0]}: autoresearch sets that itself", hint=_FIELDS_HINT)
        return fields


_FIELDS_HINT = """autoresearch node config set llm.fields '{"reasoning_effort": "high"}'"""


class AgentCommand(Section, frozen=True, kw_only=True):
    """A program that proposes changes: a coding agent without its user interface, or a script."""

    command: Annotated[
        str, Meta(description="its command line, with {prompt} or {prompt_file}; empty: none is started")
    ] = ""
    seconds: Annotated[int, Meta(ge=1, le=86_400, description="seconds that it has for one change")] = 900
    cost: Annotated[float, Meta(ge=0, description="money that one start costs, as far as known")] = 0.0
    day_starts: Annotated[int, Meta(ge=0, description="starts in 24 hours, then the search goes on; 0: no limit")] = 100
    day_cost: Annotated[float, Meta(ge=0, description="money in 24 hours, then the search goes on; 0: no limit")] = 5.0


class Storage(Section, frozen=True, kw_only=True):
    """What this machine keeps."""

    keep_checkpoints: Annotated[bool, Meta(description="keep every run's checkpoint, not the ten best only")] = False
    blobs_mib: Annotated[
        int,
        Meta(ge=64, description="MiB of blobs; above that, what came from others and was not used for longest goes"),
    ] = 10_240
    minimum_free_mib: Annotated[int, Meta(ge=0, description="stop working when the disk has less free than this")] = 512


class NetworkSection(Section, frozen=True, kw_only=True):
    """The network of nodes."""

    enabled: Annotated[bool, Meta(description="exchange records with other nodes; needs libp2p")] = False
    listen: Annotated[str, Meta(description="TCP multiaddrs to listen on, with commas; port 0 takes any")] = (
        "/ip4/0.0.0.0/tcp/0"
    )
    bootstrap: Annotated[str, Meta(description="addresses of nodes to begin with, with commas: …/p2p/PEER")] = ""
    lan: Annotated[bool, Meta(description="find nodes on the local network")] = True
    gossip: Annotated[
        bool, Meta(description="announce new records at once; without it they travel at the next exchange")
    ] = True
    exchange_seconds: Annotated[
        int, Meta(ge=1, le=86_400, description="seconds between exchanges with a random peer, give or take a quarter")
    ] = 60
    use_relay: Annotated[bool, Meta(description="use a relay while nobody can call this node directly")] = True
    serve_relay: Annotated[bool, Meta(description="be a relay for other nodes, within limits")] = True
    day_mib: Annotated[int, Meta(ge=0, description="MiB a day, in and out, after which no blobs move; 0: no limit")] = 0
    hours: Annotated[str, Meta(description="when this node talks to others, in local time; empty: always")] = ""
    blobs_on_metered: Annotated[
        bool, Meta(description="move programs and checkpoints also where the link is paid by volume")
    ] = False


class Mail(Section, frozen=True, kw_only=True):
    """The account that this node's mails are sent with. Its password is in a file or a variable, never here."""

    host: Annotated[str, Meta(description="SMTP server; empty: this node sends no mail")] = ""
    port: Annotated[int, Meta(ge=1, le=65535, description="its port: 587 for starttls, 465 for tls")] = 587
    security: Annotated[str, Meta(pattern="^(starttls|tls|none)$", description="starttls, tls or none")] = "starttls"
    user: Annotated[str, Meta(description="account name; empty: no login")] = ""
    password_file: Annotated[
        str, Meta(description="file with the password, for you alone; or set AUTORESEARCH_MAIL_PASSWORD")
    ] = ""
    ca_file: Annotated[
        str, Meta(description="certificates to trust besides the system's, for a server of your own")
    ] = ""
    from_address: Annotated[str, Meta(description="the mails' sender; returned mail goes there")] = ""


class Attestor(Section, frozen=True, kw_only=True):
    """Whether this node attests others' mailboxes, and how many mails it sends for that."""

    enabled: Annotated[bool, Meta(description="attest others' mailboxes, with the account of `mail`")] = False
    extension: Annotated[str, Meta(description="what attests: mail, or a name that another package registers")] = "mail"
    mails_per_address: Annotated[int, Meta(ge=1, description="mails a day to one mailbox")] = 3
    mails_per_domain: Annotated[int, Meta(ge=1, description="mails a day to one domain, large providers aside")] = 20
    mails_per_peer: Annotated[int, Meta(ge=1, description="mails a day for one node or participant")] = 10
    mails_per_day: Annotated[int, Meta(ge=1, description="mails a day in all")] = 50
    disposable: Annotated[str, Meta(description="more domains to refuse as throw-away, with commas")] = ""
    disposable_file: Annotated[str, Meta(description="a file with more of them, one a line")] = ""


class Api(Section, frozen=True, kw_only=True):
    """The local HTTP API and the pages."""

    port: Annotated[
        int,
        Meta(ge=0, le=65535, description="TCP port of the pages, and of the API with a token; 0: off"),
    ] = 8420
    address: Annotated[
        str, Meta(description="IPv4 address of that port; other machines than this one can only read pages")
    ] = "127.0.0.1"
    names: Annotated[str, Meta(description="host names by which others reach that address, with commas")] = ""
    read_only: Annotated[bool, Meta(description="serve only pages there, without controls")] = False


NOTIFY_EVENTS = ("best", "verdict", "confirmed", "demoted", "stopped", "condition")
_TOLD = f"({'|'.join(NOTIFY_EVENTS)})"


class Notify(Section, frozen=True, kw_only=True):
    """Whom this node tells what happened."""

    webhook: Annotated[
        str,
        Meta(
            pattern=r"^(https?://\S+)?$",
            description="where JSON is posted, such as a chat's incoming webhook; empty: off",
        ),
    ] = ""
    mail: Annotated[
        str,
        Meta(
            pattern=r"^([^@\s]+@[^@\s]+)?$",
            description="address that is written to, once an hour at most; empty: off",
        ),
    ] = ""
    desktop: Annotated[bool, Meta(description="show it on the desktop of the user who started this node")] = False
    extensions: Annotated[
        str,
        Meta(
            pattern=r"^([^\s=]+=\S+( +[^\s=]+=\S+)*)?$",
            description="ways of other packages, NAME=ADDRESS with spaces between them; empty: none",
        ),
    ] = ""
    events: Annotated[
        str,
        Meta(
            pattern=f"^{_TOLD}(, *{_TOLD})*$",
            description=f"of what, with commas: {', '.join(NOTIFY_EVENTS)}",
        ),
    ] = "best, verdict, stopped"

    def extension_addresses(self) -> dict[str, str]:
        """The ways of other packages by name, each with its address."""
        return dict(pair.split("=", 1) for pair in self.extensions.split())

    def addresses(self) -> dict[str, str]:
        """All ways that are on, by the names of their extensions, each with its address."""
        own = {"webhook": self.webhook, "mail": self.mail, "desktop": "here" if self.desktop else ""}
        return self.extension_addresses() | {name: address for name, address in own.items() if address}


class Logging(Section, frozen=True, kw_only=True):
    """The daemon's log file."""

    level: Annotated[str, Meta(pattern="^(debug|info|warning|error)$", description="debug, info, warning or error")] = (
        "info"
    )


class Settings(Section, frozen=True, kw_only=True):
    """All settings of a node."""

    work: Work = Work()
    llm: LanguageModel = LanguageModel()
    agent: AgentCommand = AgentCommand()
    storage: Storage = Storage()
    executor: ExecutorSection = ExecutorSection()
    network: NetworkSection = NetworkSection()
    mail: Mail = Mail()
    attestor: Attestor = Attestor()
    api: Api = Api()
    notify: Notify = Notify()
    logging: Logging = Logging()


# When and under which conditions this machine is the node's to use.
OWNER_SETTINGS = (
    *("cores", "hours", "hours_end", "only_on_mains", "only_idle", "idle_unknown"),
    *("pause_memory_mib", "max_temperature", "only_free_card"),
)
# A running node goes by these at once, or from the next change to a program on; by the others from its next start.
LIVE_SETTINGS = frozenset(
    {"work.workers", "work.verify_share", "work.proposer"}
    | {f"work.{name}" for name in OWNER_SETTINGS}
    | {f"work.max_{name}" for name in ("seconds", "memory_mib", "disk_mib", "processes", "output_kib")}
    | {"network.hours", "network.blobs_on_metered", "storage.minimum_free_mib"}
    | {f"notify.{name}" for name in Notify.__struct_fields__}
    | {f"llm.{name}" for name in LanguageModel.__struct_fields__}
    | {f"agent.{name}" for name in AgentCommand.__struct_fields__}
)


@functools.cache
def setting_types() -> Mapping[str, tuple[Any, str]]:
    """Every key as ``section.name`` with its type and its description."""
    types: dict[str, tuple[Any, str]] = {}
    for section in msgspec.structs.fields(Settings):
        for field in msgspec.structs.fields(section.type):
            info = msgspec.inspect.type_info(field.type)
            extra = info.extra_json_schema if isinstance(info, msgspec.inspect.Metadata) else None
            types[f"{section.name}.{field.name}"] = (field.type, (extra or {}).get("description", ""))
    return types


def load_settings(path: Path, environment: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """Read the settings and where each value came from: "default", "file" or "environment".

    Raises:
        UsageError: the file can't be read or is not TOML, a key is unknown, or a value has the wrong type or range.
    """
    types = setting_types()
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        text = b""
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
    try:
        document = read_toml(text)
    except ValueError as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}", hint=f"mend it by hand, or move it away: {path}"
        ) from error
    origins = dict.fromkeys(types, "default")
    for section, values in document.items():
        for key in values if isinstance(values, dict) else [""]:
            name = f"{section}.{key}" if key else section
            if name not in types:
                raise unknown_setting(name, where=str(path))
            origins[name] = "file"
    for name, (kind, _) in types.items():
        variable = environment_variable(name)
        if variable in environment:
            section, _, key = name.partition(".")
            document.setdefault(section, {})[key] = parse_setting(name, environment[variable], kind)
            origins[name] = "environment"
    try:
        settings = msgspec.convert(document, Settings)
    except msgspec.ValidationError as error:
        at = re.search(r"`\$\.(\w+\.\w+)`", str(error))
        reason = f"{at[1]} takes {_form(at[1])}" if at and at[1] in types else str(error)
        raise UsageError(f"a setting in {path} is wrong: {reason}", hint="autoresearch node config show") from error
    for name, hours in (("work", settings.work.hours), ("network", settings.network.hours)):
        try:
            parse_hours(hours)
        except UsageError as error:
            raise UsageError(f"{name}.hours is wrong: {error}", hint=error.hint) from error
    return settings, origins


def environment_variable(name: str) -> str:
    """The variable that overrides a setting: ``work.workers`` is ``AUTORESEARCH_WORK_WORKERS``."""
    return ENVIRONMENT_PREFIX + name.replace(".", "_").upper()


def parse_setting(name: str, text: str, kind: Any) -> Any:  # noqa: ANN401 - a setting is a string, a number or a bool
    """The value of ``name`` as typed by a person.

    Raises:
        UsageError: it has the wrong type or is out of range.
    """
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        sentence = f"{name} = {text!r} does not work: it takes {_form(name)}"
        raise UsageError(sentence, hint="autoresearch node config show") from error


def _form(name: str) -> str:
    """What a setting may be, in words. Of a text that is its description: nobody is told a regular expression."""
    kind, description = setting_types()[name]
    info = msgspec.inspect.type_info(kind)
    match info.type if isinstance(info, msgspec.inspect.Metadata) else info:
        case msgspec.inspect.IntType(ge=least, le=most):
            return f"a {number_form(int, least, most)}"
        case msgspec.inspect.FloatType(ge=least, le=most):
            return f"a {number_form(float, least, most)}"
        case msgspec.inspect.BoolType():
            return "true or false"
    return f"a text: {description}"


def unknown_setting(name: str, *, where: str) -> UsageError:
    """The error for a key that does not exist, with the nearest one that does."""
    hint = did_you_mean(name, setting_types()) or "autoresearch node config show lists all settings"
    return UsageError(f"{where}: there is no setting {name}", hint=hint)


def write_setting(path: Path, name: str, text: str) -> None:
    """Change one setting in the file, keeping its comments and order; the file is replaced as a whole.

    Raises:
        UsageError: there is no such setting, the value does not fit, or the file is not TOML.
    """
    import tomlkit
    from tomlkit.exceptions import ParseError

    types = setting_types()
    if name not in types:
        raise unknown_setting(name, where="config set")
    value = parse_setting(name, text, types[name][0])
    try:
        document = tomlkit.parse(path.read_text()) if path.exists() else tomlkit.document()
    except ParseError as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="autoresearch node config edit") from None
    section, _, key = name.partition(".")
    table = document.setdefault(section, tomlkit.table())
    table[key] = value
    with write_refusals(path):
        write_whole(path, tomlkit.dumps(document))
