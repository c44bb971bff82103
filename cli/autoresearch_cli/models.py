"""Answers that only the command line gives: about this machine, not about the notebook."""

from __future__ import annotations

import msgspec

from autoresearch.ask.challenges.answers import ContestantView
from autoresearch.ask.node import Check, TaskStatus, VoterView
from autoresearch.ask.records import RecordView, ShowAnswer
from autoresearch.log.standing.answers import Answer, ProgramView, RunNumbers


class Problem(Answer, frozen=True, kw_only=True):
    """A command that failed: the sentence, what to do next, and the exit status."""

    schema: str = "autoresearch.failure/1"
    error: str
    hint: str = ""
    exit_status: int


class WaitedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A proposed run that ended, by its ``name``; ``lost`` says why there is no ``run``: it did not take place."""

    name: str
    run: ShowAnswer | None = None
    lost: str = ""


class WaitedAnswer(Answer, frozen=True, kw_only=True):
    """Several proposed runs that were waited for, in the order of their ends; ``left`` go on."""

    schema: str = "autoresearch.waited/1"
    ended: list[WaitedRun]
    left: list[str]


class OpenAnswer(Answer, frozen=True, kw_only=True):
    """Where the pages of the local daemon are, without the token that controls it."""

    schema: str = "autoresearch.open/1"
    address: str


class UpAnswer(Answer, frozen=True, kw_only=True):
    """The daemon runs. ``state`` is "started" or "already_running".

    ``working``: it was asked to work, now or before it was stopped.
    """

    schema: str = "autoresearch.up/1"
    state: str
    pid: int | None = None
    working: bool = False


class InstallAnswer(Answer, frozen=True, kw_only=True):
    """The daemon is a service of this machine, or no longer. ``sandbox`` is what it measured inside the service."""

    schema: str = "autoresearch.install/1"
    path: str
    installed: bool
    ready: bool = False
    sandbox: str = ""


class DownAnswer(Answer, frozen=True, kw_only=True):
    """The daemon doesn't run any more. ``state`` is "stopped" or "was_not_running"."""

    schema: str = "autoresearch.down/1"
    state: str
    waited_ms: int = 0


class PathsAnswer(Answer, frozen=True, kw_only=True):
    """Where everything lives: the five folders that hold all, and places in them."""

    schema: str = "autoresearch.paths/1"
    config: str
    data: str
    state: str
    cache: str
    run: str
    settings: str
    log: str
    blobs: str
    keys: str
    task_data: str
    environments: str
    daemon_log: str
    socket: str


class VersionAnswer(Answer, frozen=True, kw_only=True):
    """The version here. ``peers`` counts the connected peers by the version that they say they have.

    ``newest`` is the newest of them where it is newer than this one, else empty. Both are empty unless asked for.
    """

    schema: str = "autoresearch.version/1"
    version: str
    python: str
    platform: str
    newest: str = ""
    peers: dict[str, int] = {}


class Probe(Answer, frozen=True, kw_only=True):
    """One attack on the sandbox, and whether it was blocked."""

    name: str
    blocked: bool


class DoctorAnswer(Answer, frozen=True, kw_only=True):
    """What was looked at on this machine; ``healthy`` when nothing failed."""

    schema: str = "autoresearch.doctor/1"
    healthy: bool
    checks: list[Check]
    probes: list[Probe]


class IdentityAnswer(Answer, frozen=True, kw_only=True):
    """The keys of this participant, in hexadecimal: the root key for the person, the device key for this machine.

    ``root_key`` says how the root key lies here: plain, encrypted, or elsewhere. ``name`` is what it calls itself.
    """

    schema: str = "autoresearch.id/1"
    participant: str
    device_key: str
    folder: str
    root_key: str = "plain"
    name: str = ""


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A device of a participant. ``until`` is when its delegation ends or ended; null: never."""

    device_key: str
    state: str
    since: int
    until: int | None = None
    this: bool = False


class DevicesAnswer(Answer, frozen=True, kw_only=True):
    """The devices of this participant, as the log here has them."""

    schema: str = "autoresearch.devices/1"
    participant: str
    devices: list[DeviceRow]


class EnrolAnswer(Answer, frozen=True, kw_only=True):
    """A step of making a second machine a device of the same participant; ``text`` is to be pasted on the other one."""

    schema: str = "autoresearch.add_device/1"
    step: str
    device_key: str
    text: str = ""


class MergeAnswer(Answer, frozen=True, kw_only=True):
    """The root key ended the forks of a device by the record ``id``. ``heads`` are the last records of its branches.

    ``seq`` is the number up to which its records count again; ``runs``, how many of them are runs.
    """

    schema: str = "autoresearch.merge/1"
    device_key: str
    id: str
    heads: list[str]
    seq: int
    runs: int


class BackupAnswer(Answer, frozen=True, kw_only=True):
    """An encrypted backup of the root key."""

    schema: str = "autoresearch.backup/1"
    participant: str
    file: str


class HomeBackupAnswer(Answer, frozen=True, kw_only=True):
    """A backup of the whole home that was written, or put back: how many files are in it, and its bytes."""

    schema: str = "autoresearch.home_backup/1"
    file: str
    files: int
    bytes: int


class CompactedFile(Answer, frozen=True, kw_only=True):
    """A database, and its bytes before and after."""

    file: str
    before: int
    after: int


class CompactAnswer(Answer, frozen=True, kw_only=True):
    """The databases of this home, made as small as what is in them."""

    schema: str = "autoresearch.compact/1"
    files: list[CompactedFile]


class RepairedFile(Answer, frozen=True, kw_only=True):
    """A database that was damaged: the rows that could be read, the records that could not; where the old file is."""

    file: str
    rows: int
    lost: int
    kept_as: str


class RepairAnswer(Answer, frozen=True, kw_only=True):
    """The databases that were damaged and were made anew."""

    schema: str = "autoresearch.repair/1"
    files: list[RepairedFile]


class InvitationRow(Answer, frozen=True, kw_only=True):
    """An invite that admits ``uses`` participants until a time. ``admitted`` are the root keys that came with it.

    ``state`` is "open", "used up", "expired" or "ended".
    """

    token: str
    made_ms: int
    expires_ms: int
    uses: int
    state: str = "open"
    admitted: list[str] = []


class InvitationsAnswer(Answer, frozen=True, kw_only=True):
    """The invites of this machine that admit, or did, the newest first."""

    schema: str = "autoresearch.invitations/1"
    network: str
    invitations: list[InvitationRow]


class NetworkAnswer(Answer, frozen=True, kw_only=True):
    """A network as its manifest has it. ``constants`` are those that are not the usual ones, ``addresses`` this node's.

    Keys, ids and tasks are hexadecimal. ``file`` is the manifest, which need not exist for the built-in network;
    ``enabled`` is whether this node exchanges records with others. ``voters`` are the participants that count, by the
    log here; ``note`` says how many more it takes, ``way`` what this participant does or waits for so that it counts.
    ``invite`` admits by ``admission``, where that is not null.
    """

    schema: str = "autoresearch.network/1"
    name: str
    id: str
    file: str
    enabled: bool
    constants: dict[str, int]
    attestors: list[str]
    needed: int
    participants: list[str]
    tasks: list[str]
    bootstrap: list[str]
    addresses: list[str] = []
    invite: str = ""
    founders: list[str] = []
    admission: InvitationRow | None = None
    voters: list[VoterView] = []
    note: str = ""
    way: str = ""


class JoinAnswer(Answer, frozen=True, kw_only=True):
    """How far a machine came that joined a network. ``sandbox`` says whether others' programs may run on it.

    ``connected`` are the peers at that time, ``records`` those of the log here. ``task`` is what the network works on;
    ``voter`` why this participant counts, null where it does not, and ``way`` then what it waits for. ``working``: this
    machine runs experiments on the task. ``place``, with `--wait`: its best program on the board.
    """

    schema: str = "autoresearch.join/1"
    network: str
    network_id: str
    sandbox: Check
    connected: int
    records: int
    task: TaskStatus | None
    other_tasks: list[str] = []
    voter: VoterView | None = None
    way: str = ""
    working: bool = False
    place: ProgramView | None = None


class HomeNetworkView(Answer, frozen=True, kw_only=True):
    """One network of this home: how many participants signed something in its log, and how many records that has.

    ``name`` is unique in this home: of two networks with one name each has the beginning of its id with it. The numbers
    are null where the log can't be read.
    """

    name: str
    id: str
    participants: int | None
    records: int | None
    in_use: bool


class HomeNetworksAnswer(Answer, frozen=True, kw_only=True):
    """The networks of this home; one is in use."""

    schema: str = "autoresearch.networks/1"
    networks: list[HomeNetworkView]


class BroughtRunsAnswer(Answer, frozen=True, kw_only=True):
    """Own runs of the network ``origin``, published in ``network``: how many now.

    ``skipped`` were left out because their program is not on this machine, ``repeated`` because another participant has
    run it in that network with the same seed. ``runs``: with `--dry-run`, those that would be brought.
    """

    schema: str = "autoresearch.brought/1"
    network: str
    origin: str
    brought: int = 0
    skipped: int = 0
    repeated: int = 0
    runs: list[RecordView] = []


class ConstantAnswer(Answer, frozen=True, kw_only=True):
    """A constant of the task's program that the search changes, and between which bounds, as a comment would say it."""

    name: str
    value: int | float | str | bool
    range: str


class TaskAnswer(Answer, frozen=True, kw_only=True):
    """A task folder: what is asked, and the rules. ``ceiling`` is what this machine allows of the ``limits``.

    ``mounts`` are the folders of this machine that its programs may read, by name; ``inputs`` are what they read in
    the folder itself. ``packages`` are its own Python
    packages; ``venv`` is the environment of this machine that runs it instead of the node's own. ``search`` is what
    the search changes in its program. ``edit`` are the files of the program, ``build`` and ``command`` what starts it.
    ``evaluator`` is the command that measures its ``artifact``. ``attacked`` says what attested participants of this
    network found when they attacked it, where they did.
    """

    schema: str = "autoresearch.task/1"
    folder: str
    name: str
    digest: str
    summary: str = ""
    metric: str
    direction: str
    metric_source: str
    floor: float | None = None
    noise: float | None = None
    noise_runs: int | None = None
    budget_unit: str
    budget: float
    limits: dict[str, int | float | bool]
    files: list[str]
    edit: list[str] = []
    build: str = ""
    command: str = ""
    evaluator: str = ""
    artifact: str = ""
    ceiling: dict[str, int | float] = {}
    mounts: dict[str, str] = {}
    inputs: list[str] = []
    packages: list[str] = []
    venv: str = ""
    search: list[ConstantAnswer] = []
    attacked: str = ""


class ArchivedAnswer(Answer, frozen=True, kw_only=True):
    """A task is archived on this machine, or is no more; ``changed`` is false where it was so before."""

    schema: str = "autoresearch.archived/1"
    name: str
    digest: str
    archived: bool
    changed: bool


class PackagesAnswer(Answer, frozen=True, kw_only=True):
    """The Python packages of a task: ``source`` is where pip takes them from, ``folder`` where they are or will be.

    ``reaches`` is what it reaches outside of its folder, as the kind, its own word, and where that leads.
    """

    schema: str = "autoresearch.packages/1"
    task: str
    digest: str = ""
    reaches: list[str] = []
    packages: list[str] = []
    source: str = ""
    folder: str = ""
    installed: bool = False


class NextAnswer(Answer, frozen=True, kw_only=True):
    """The program that a task folder holds now. ``run`` is null for the baseline, ``value`` the run's own.

    ``changed``: its program was another one before. ``edit`` are its files. ``kept`` is the file with an edit that was
    never run. ``history`` is the file with what is known of the task.
    """

    schema: str = "autoresearch.next/1"
    folder: str
    run: str | None = None
    title: str = ""
    value: float | None = None
    edit: list[str] = []
    changed: bool = False
    backup: str | None = msgspec.field(name="kept", default=None)
    history: str


class ExportAnswer(Answer, frozen=True, kw_only=True):
    """Runs written to a file."""

    schema: str = "autoresearch.export/1"
    file: str
    format: str
    runs: int


class ImportAnswer(Answer, frozen=True, kw_only=True):
    """Rows brought in as notes; those that are in the log already are left alone."""

    schema: str = "autoresearch.import/1"
    file: str
    added: int
    present: int


class BundleAnswer(Answer, frozen=True, kw_only=True):
    """A bundle was written. ``missing``: blobs that its records refer to and that are not here."""

    schema: str = "autoresearch.bundle/1"
    file: str
    records: int
    blobs: int
    missing: int
    size_bytes: int


class HtmlExportAnswer(Answer, frozen=True, kw_only=True):
    """The pages of a task are in a folder: ``pages`` files, of which ``runs`` are about one run."""

    schema: str = "autoresearch.html_export/1"
    folder: str
    task: str
    pages: int
    runs: int


class BundleImportAnswer(Answer, frozen=True, kw_only=True):
    """What became of a bundle's records: ``early`` ones are ahead of the clock here and may be imported again later.

    ``over_quota``: more than peers keep. ``blobs``: how many are new. ``reason``: why the first refused one was.
    """

    schema: str = "autoresearch.bundle_import/1"
    file: str
    new: int
    present: int
    refused: int
    early: int
    over_quota: int
    blobs: int
    reason: str


class DemoAnswer(Answer, frozen=True, kw_only=True):
    """What a demo reached: runs finished, how many of them failed, and the numbers of a task's best before and after.

    With several daemons it says how many there were and are left, and whether those hold the same records and the same
    best. It counts the runs that repeat what another had measured. At the end it has the home of the first daemon, how
    many participants were attested, and how many runs had which state.
    """

    schema: str = "autoresearch.demo/1"
    runs: int
    failed: int
    task: str = ""
    metric: str = ""
    best_before: RunNumbers | None = None
    best: RunNumbers | None = None
    floor: float | None = None
    peers: int = 1
    peers_left: int = 1
    equal: bool = True
    done_twice: int = 0
    home: str = ""
    attested: int = 0
    states: dict[str, int] = {}


class TextAnswer(Answer, frozen=True, kw_only=True):
    """Text that belongs to a record: ``what`` is "code", "log" or "rules"; or the "program" of a mail, of no record."""

    schema: str = "autoresearch.text/1"
    id: str
    what: str
    text: str


class FieldAnswer(Answer, frozen=True, kw_only=True):
    """One field of a record."""

    schema: str = "autoresearch.field/1"
    id: str
    name: str
    value: object


class ImportedRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A release of a registry file: its record ``id``, or the ``reason`` why it was not published."""

    type: str
    name: str
    version: str
    id: str = ""
    reason: str = ""


class RegistryAnswer(Answer, frozen=True, kw_only=True):
    """What became of the releases of a registry ``file``."""

    schema: str = "autoresearch.registry/1"
    file: str
    releases: list[ImportedRelease]


class ClientAnswer(Answer, frozen=True, kw_only=True):
    """The file of a coding agent that names the server, or named it: its ``text`` now, and whether that ``changed``."""

    schema: str = "autoresearch.mcp-client/1"
    client: str
    path: str
    changed: bool
    text: str


class NewChallengeAnswer(Answer, frozen=True, kw_only=True):
    """A contest that was founded: its network, its task, its end in Unix milliseconds, and the files of its page.

    ``line`` is what others type to join; for a class it has INVITE in place of one, and ``codes`` is the file with an
    invite for each. ``reachable``: the invites hold an address of this node.
    """

    schema: str = "autoresearch.new-challenge/1"
    network: str
    network_id: str
    task: str
    title: str
    ends_ms: int
    pages: list[str]
    line: str
    codes: str = ""
    reachable: bool = False


class ClosedChallengeAnswer(Answer, frozen=True, kw_only=True):
    """The files of a contest's end: the board as text, as pages, as marks, as JSON, and the signed records."""

    schema: str = "autoresearch.closed-challenge/1"
    folder: str
    board: str
    marks: str
    result: str
    pages: str
    bundle: str
    placed: int
    submissions: int


class GradesAnswer(Answer, frozen=True, kw_only=True):
    """A line for each participant of a contest. ``file`` is empty where none was written."""

    schema: str = "autoresearch.grades/1"
    title: str
    ended: bool
    file: str = ""
    contestants: list[ContestantView]
