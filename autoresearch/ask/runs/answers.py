"""The runs of a task as answers: the best, the leaderboard, the rows of the table, the marks of the chart."""

from __future__ import annotations

import msgspec

from autoresearch.ask.node import TaskStatus
from autoresearch.log.standing import answers


class RunRow(answers.RunNumbers, frozen=True, kw_only=True):
    """One run in a table, with its numbers.

    ``task`` is the name of its task, ``number`` its place among the runs of that by time, from 1. ``cost_ms`` is the
    processor time of the runs up to it. ``mark`` is its state, or ``failed``, or ``leading``: only reported, and the
    best value when it came.
    ``refuting_value`` is the median of the values that refuted it.

    ``better`` says whether its gain is one, the verified or else the reported; null where that is ``within_noise`` or
    unknown.
    ``in_doubt``: refuted, fraud or banned. ``leads`` and ``led_by_claim``: it had the best confirmed value, or the best
    reported one, of the runs up to it. ``headline`` tells the change in a line, ``because`` why it was tried. ``jump``:
    too many changes to credit one. ``verdict`` says who measured it and what follows; empty where only its author did.
    ``hidden``: a person hides it here, and none of its words are told.
    """

    id: str
    task: str = ""
    number: int
    time_ms: int
    cost_ms: int
    cpu_ms: int
    mark: str
    state: str
    status: str
    reason: str = ""
    refuting_value: float | None = None
    better: bool | None = None
    within_noise: bool = False
    in_doubt: bool = False
    leads: bool = False
    led_by_claim: bool = False
    headline: str = ""
    because: str = ""
    change: list[ChangeView] = []
    jump: bool = False
    parent: str | None = None
    replicate: int = 0
    proposer: str = ""
    device: str = ""
    participant: answers.ParticipantView = answers.NOBODY
    own: bool = False
    retest: bool = False
    starred: bool = False
    children: int = 0
    verdict: str = ""
    hidden: bool = False


class RunsAnswer(answers.Judged, frozen=True, kw_only=True):
    """One page of the runs of a task that a filter finds.

    ``total`` are all that it finds, ``pages`` the number of pages of ``size`` rows. ``counts`` are runs by mark without
    the filter of marks. ``until`` is to be given with the next page, so that new runs move nothing. ``hidden``: so many
    more are hidden here.
    """

    schema: str = "autoresearch.runs/1"
    task: TaskStatus
    runs: list[RunRow]
    total: int
    page: int
    pages: int
    size: int
    sort: str
    counts: dict[str, int]
    until: int
    hidden: int = 0


class ParticipantRunsAnswer(answers.Judged, frozen=True, kw_only=True):
    """The runs of a participant on all tasks: the newest, the best of each task, how many in all, and on what hardware.

    The best are those that nothing speaks against, the newest first.
    """

    schema: str = "autoresearch.participant-runs/1"
    newest: list[RunRow]
    best: list[RunRow]
    total: int
    devices: list[str]


class ProgressMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that led, or that verifiers measured, on the chart. ``step``: by how much it beat the best before.

    What has its default is left out of JSON: thousands of marks are sent. The other fields are those of RunRow.
    """

    id: str
    number: int
    time_ms: int
    cost_ms: int
    reported: float
    mark: str
    verified: float | None = None
    verified_margin: float | None = None
    leads: bool = False
    led_by_claim: bool = False
    step: float | None = None
    label: str = ""


class ProgressDots(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that led nothing, or failures, as columns. With ``count`` each is a cell of so many runs, without ids.

    ``reported`` are their values.
    """

    number: list[int]
    time_ms: list[int]
    cost_ms: list[int]
    reported: list[float] = []
    id: list[str] = []
    count: list[int] = []


class ProgressAnswer(answers.Judged, frozen=True, kw_only=True):
    """The chart of a task: steps and marks, dots, failures. ``binned``: there were too many dots to send each.

    ``matching`` are the runs that the filter finds, of ``total``.
    """

    schema: str = "autoresearch.progress/1"
    task: TaskStatus
    marks: list[ProgressMark]
    dots: ProgressDots
    failures: ProgressDots
    binned: bool
    matching: int
    total: int


class GroupView(msgspec.Struct, kw_only=True):
    """Runs with the same value of each setting that groups are made by, or with values in one range.

    ``where`` is the condition that finds them, empty where none does. ``best`` is the best value, of ``best_run``,
    ``low`` and ``high`` are the ends of the middle half of values; null from fewer than four. A value is what verifiers
    measured, else what its author reported; those that were refuted are left out.
    """

    settings: list[str]
    where: str = ""
    runs: int
    failed: int = 0
    best: float | None = None
    best_run: str = ""
    median: float | None = None
    low: float | None = None
    high: float | None = None


class GroupsAnswer(answers.Judged, frozen=True, kw_only=True):
    """The runs of a task in groups by one ``setting`` or two; ``runs`` are all that the filter finds.

    ``values`` are the names of the groups of each setting, in order.
    """

    schema: str = "autoresearch.groups/1"
    task: TaskStatus
    setting: list[str]
    values: list[list[str]]
    groups: list[GroupView]
    runs: int


class ColumnsAnswer(answers.Judged, frozen=True, kw_only=True):
    """The runs of a task as columns, in order of time: ids, marks, values, parents, and the settings asked for.

    ``value`` is what verifiers measured, else what its author reported; null where it failed or is compared with no
    other. ``parent`` is the parent's place in the columns, -1 where that is not here. A setting is null where a run has
    none of that name. ``left_out`` runs are older than these; where they are ``sampled``, these were drawn by chance.
    """

    schema: str = "autoresearch.columns/1"
    task: TaskStatus
    id: list[str]
    mark: list[str]
    value: list[float | None]
    parent: list[int]
    settings: dict[str, list[bool | int | float | str | None]] = {}
    left_out: int = 0
    sampled: bool = False


class MarkCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Some runs: how many, how many of each mark, the best value and its origin, ``verified`` or ``reported``."""

    total: int
    counts: dict[str, int]
    best: float | None = None
    best_origin: str = ""


class RunContextAnswer(answers.Answer, frozen=True, kw_only=True):
    """What stands around a run: its row, that of its parent, its best children, the runs of the same program."""

    schema: str = "autoresearch.run-context/1"
    row: RunRow
    parent: RunRow | None = None
    children: list[RunRow] = []
    all_children: MarkCounts
    same_program: list[RunRow] = []


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a lineage: its run, and its other children.

    ``branches`` are the children of this run that are not on the path, ``branch_runs`` the best of them where the path
    is short. They are null where they were not asked for.
    """

    row: RunRow
    branches: MarkCounts | None
    branch_runs: list[RunRow] = []


class PathAnswer(answers.Answer, frozen=True, kw_only=True):
    """The way from the baseline to a run, with branches. ``left_out`` are steps that changed least and are not told."""

    schema: str = "autoresearch.path/1"
    task: TaskStatus
    steps: list[PathStep]
    left_out: int = 0


class RunnerView(msgspec.Struct, frozen=True, kw_only=True):
    """A participant with its runs on a task, for a filter: how many, and on which kinds of hardware."""

    participant: answers.ParticipantView = answers.NOBODY
    runs: int
    devices: list[str] = []


class RunnersAnswer(answers.Answer, frozen=True, kw_only=True):
    """What runs of a task can be chosen by: the participants, those with the most runs first; settings that changed."""

    schema: str = "autoresearch.runners/1"
    runners: list[RunnerView]
    settings: list[str] = []


class DiffAnswer(answers.Answer, frozen=True, kw_only=True):
    """The change from one run's source to another's: a unified diff, and the constants that differ.

    ``old_numbers`` and ``new_numbers`` are those of the two runs; ``is_parent``: the gain of the new one is against the
    old one. In ``change`` the most important stand first. ``episodes`` are how long agents were trained, the older one
    first.
    """

    schema: str = "autoresearch.diff/1"
    old: str
    new: str
    old_numbers: answers.RunNumbers
    new_numbers: answers.RunNumbers
    is_parent: bool = False
    episodes: list[float] = []
    change: dict[str, list[object]] = {}
    diff: str = ""


class TasksAnswer(answers.Judged, frozen=True, kw_only=True):
    """The published tasks that are not archived here, or all. ``hidden``: so many more are hidden here."""

    schema: str = "autoresearch.tasks/1"
    tasks: list[TaskStatus]
    hidden: int = 0


class SizeView(msgspec.Struct, frozen=True, kw_only=True):
    """Another size of a task, and what the program that leads here is worth there.

    ``value`` is the mean of ``runs`` runs of it there, ``gain`` what that is better than the baseline of that size.
    ``best`` is the value that leads there. None: nobody tried.
    """

    name: str
    budget: float
    runs: int = 0
    value: float | None = None
    gain: float | None = None
    best: float | None = None


class BestAnswer(answers.Judged, frozen=True, kw_only=True):
    """The best confirmed program of a task, and beside it the best provisional and the best reported one.

    ``run`` is the one to build upon, ``@``: the first of these, but one's own before others' where nothing is checked.
    ``demoted`` was the best confirmed one before others came to another number. ``other_tasks`` are the names of the
    other tasks. ``sizes`` are those of them that are this task with another budget.
    """

    schema: str = "autoresearch.best/1"
    task: TaskStatus
    confirmed: answers.ProgramView | None = None
    provisional: answers.ProgramView | None = None
    reported: answers.ProgramView | None = None
    demoted: answers.ProgramView | None = None
    run: answers.RunView | None = None
    note: str = ""
    other_tasks: list[str] = []
    sizes: list[SizeView] = []


class BoardLine(msgspec.Struct, frozen=True, kw_only=True):
    """A value that those of a board are compared with: what is ``random``, or ``solved``.

    ``margin`` is half of its 95 % interval, null where it has none. ``verifiers``: so many measured it; with 0 this
    node did. What other authors state of it is no part of it.
    """

    name: str
    value: float
    margin: float | None = None
    verifiers: int = 0


class TopAnswer(answers.Judged, frozen=True, kw_only=True):
    """The leaderboard of a task, section by section. ``other_tasks`` are the names of the other tasks.

    ``hardware`` is the kind whose numbers are compared where the budget is wall-clock time; empty where all are.
    ``lines`` are there for agents in an environment, as verifiers or this node measured them; ``lines_note`` says
    so where nobody did. ``hidden``: so many runs of the task are hidden here.
    """

    schema: str = "autoresearch.top/1"
    task: TaskStatus
    programs: list[answers.ProgramView]
    note: str = ""
    other_tasks: list[str] = []
    hardware: str = ""
    lines: list[BoardLine] = []
    lines_note: str = ""
    hidden: int = 0


class ComponentTopAnswer(answers.Judged, frozen=True, kw_only=True):
    """The agents that use a component: of each environment's leaderboard its rows, which keep their places.

    ``unknown`` counts agents whose programs are not on this machine: nobody here knows what they use.
    """

    schema: str = "autoresearch.component_top/1"
    component: str
    boards: list[TopAnswer]
    unknown: int = 0


class LineageAnswer(answers.Judged, frozen=True, kw_only=True):
    """The path from the baseline to a run."""

    schema: str = "autoresearch.lineage/1"
    task: TaskStatus | None = None
    steps: list[answers.LineageStep]


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One change: a part that was ``added`` or ``dropped``, or a constant that was ``set``.

    ``name`` is that in the genome, of a part with its ``+``. ``text`` is the change in a few characters (``LR ×1.4``).
    ``before`` and ``after`` are the values as text. ``label`` says what a part is. ``place_before`` and ``place_after``
    are places on the range of a constant, 0 to 1.
    """

    name: str
    kind: str
    text: str
    before: str = ""
    after: str = ""
    label: str = ""
    place_before: float | None = None
    place_after: float | None = None


class EffectView(msgspec.Struct, frozen=True, kw_only=True):
    """What adding a part or raising a constant did to the metric in pairs of a run and its parent, the newest 100.

    ``pairs`` are those with two values, ``better`` and ``worse`` those that it improved or not. ``median`` of their
    changes is in the metric's unit and sign, null without any. ``low`` and ``high`` are its 95 % interval, null from
    fewer than six. ``raised`` runs raised or added it, ``lowered`` the opposite; of these some failed, ``failed_as``
    says how where all failed in one way.
    """

    name: str
    pairs: int
    better: int
    worse: int
    median: float | None = None
    low: float | None = None
    high: float | None = None
    raised: int = 0
    raised_failed: int = 0
    lowered: int = 0
    lowered_failed: int = 0
    failed_as: str = ""


class DeadEndView(msgspec.Struct, frozen=True, kw_only=True):
    """What was tried often enough without a gain as large as the noise, or failed each time: ``sentence`` says it all.

    ``runs`` are short ids, of ``participants``. ``setting`` is empty where programs share ``lines`` instead. ``gain``
    is the mean over the parents, positive where better, null where all failed; ``margin`` is half of its 95 % interval.
    """

    sentence: str
    runs: list[str]
    participants: int
    setting: str = ""
    relation: str = ""
    bound: float | str | bool | None = None
    lines: list[str] = []
    gain: float | None = None
    margin: float | None = None


class EffectsAnswer(answers.Judged, frozen=True, kw_only=True):
    """What each setting of a task did to its ``metric``, the surest improvement first. ``task`` is its name.

    ``notes`` say which settings are none of the best program, since that assigns them twice.
    """

    schema: str = "autoresearch.effects/2"
    task: str
    metric: str
    effects: list[EffectView]
    dead_ends: list[DeadEndView] = []
    notes: list[str] = []


class SinceAnswer(answers.Judged, frozen=True, kw_only=True):
    """What happened on a task from ``since_ms`` to ``to_ms``, with ``sentence`` to say it.

    ``participants`` counts those with runs. ``confirmed`` to ``failed`` are of these ``runs``. ``best_before`` and
    ``best`` are what led before and after, as confirmed or, where nothing is, as reported (``origin``). ``gains`` are
    the last runs that led when they came, the newest last. ``held`` and ``not_held`` count hypotheses that were settled
    by a run of this time.
    """

    schema: str = "autoresearch.since/1"
    task: str
    since_ms: int
    to_ms: int = 0
    runs: int = 0
    participants: int = 0
    confirmed: int = 0
    refuted: int = 0
    failed: int = 0
    best_before: float | None = None
    best: float | None = None
    origin: str = ""
    gains: list[RunRow] = []
    held: int = 0
    not_held: int = 0
    sentence: str = ""


class TimelinePart(msgspec.Struct, frozen=True, kw_only=True):
    """What a device did in a part of time, from 0: runs that ended, those of them that failed, verifications."""

    part: int
    runs: int = 0
    failed: int = 0
    verifications: int = 0


class TimelineRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a device did, in all and by parts of time; a part in which it did nothing is left out.

    ``device`` is its key.
    """

    participant: answers.ParticipantView
    device: str
    runs: int
    failed: int
    verifications: int
    parts: list[TimelinePart]


class TimelineAnswer(answers.Judged, frozen=True, kw_only=True):
    """Who worked on a task when, by the times that authors state: parts of ``part_ms`` each from ``since_ms`` on.

    The devices with the most runs and verifications; ``left_out`` others did something too.
    """

    schema: str = "autoresearch.timeline/1"
    task: TaskStatus
    since_ms: int
    to_ms: int
    part_ms: int
    rows: list[TimelineRow]
    left_out: int = 0
