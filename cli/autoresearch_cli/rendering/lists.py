"""The lists that only the command line has: settings, checks, devices, networks and invites, projects. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autoresearch.face.columns.column import CODE, COUNT, RECORD, CellFormat, Column, Columns, Face
from autoresearch.text import age, moment

if TYPE_CHECKING:
    from autoresearch.ask.node import Check, Setting
    from autoresearch.ask.records import RecordView
    from autoresearch_cli.agent.models import ProjectComponent, ProjectRun, SweepRow
    from autoresearch_cli.models import DeviceRow, HomeNetworkView, InvitationRow

# Enough to tell a key, a network or an invite apart, and to type it.
KEY_CHARACTERS = 16
ID_DIGITS = 8
TOKEN_CHARACTERS = 8


_NUMBER = CellFormat(str, lambda number, _: str(number), right=True)


def _reward(number: float | None) -> str:
    return "–" if number is None else f"{number:.4g}"


_REWARD = CellFormat(_reward, lambda number, _: _reward(number), right=True)


def _assigned(parameters: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def walls(level: int, trusted: Sequence[str]) -> str:
    """How a run was walled in: the level of its sandbox, or whose components ran without one."""
    if level:
        return f"S{level}"
    return f"none, by choice: {', '.join(trusted)}" if trusted else ""


def setting_columns(*, origin: bool) -> Columns[Setting]:
    """The settings; with ``origin`` where each value comes from, and its variable."""
    faces = Face.ALL if origin else Face.NOWHERE
    return (
        Column("setting", lambda setting: setting.name),
        Column("value", lambda setting: setting.text),
        Column("from", lambda setting: setting.origin, faces=faces),
        Column("variable", lambda setting: setting.variable, faces=faces),
        Column("meaning", lambda setting: setting.description),
    )


_SIGNS = {"ok": "✓", "warning": "!", "failed": "✗"}
CHECK_COLUMNS: Columns[Check] = (
    Column("sign", lambda check: _SIGNS[check.result], heading="", faces=Face.TERMINAL),
    Column("check", lambda check: check.name),
    Column("result", lambda check: check.result, faces=Face.PIPE),
    Column("found", lambda check: check.detail, display=lambda check, _: check.sentence),
    Column("fix", lambda check: check.fix, faces=Face.PIPE),
)

DEVICE_COLUMNS: Columns[DeviceRow] = (
    Column("device key", lambda row: row.device_key, display=lambda row, _: row.device_key[:KEY_CHARACTERS]),
    Column("state", lambda row: row.state),
    Column("until", lambda row: moment(row.until) if row.until else "never"),
    Column("this", lambda row: "this one" if row.this else "", heading=""),
)

HOME_NETWORK_COLUMNS: Columns[HomeNetworkView] = (
    Column("name", lambda network: network.name),
    Column("id", lambda network: network.id, display=lambda network, _: network.id[:ID_DIGITS]),
    Column("participants", lambda network: network.participants, COUNT),
    Column("records", lambda network: network.records, COUNT),
    Column("in use", lambda network: "✓" if network.in_use else ""),
)

BROUGHT_COLUMNS: Columns[RecordView] = (
    Column("id", lambda run: run.id, RECORD),
    Column("run", lambda run: run.summary),
)

INVITATION_COLUMNS: Columns[InvitationRow] = (
    Column("token", lambda row: row.token, CODE, display=lambda row, _: row.token[:TOKEN_CHARACTERS]),
    Column("state", lambda row: row.state),
    Column("admitted", lambda row: len(row.admitted), display=lambda row, _: f"{len(row.admitted)} of {row.uses}"),
    Column("uses", lambda row: row.uses, faces=Face.PIPE),
    Column(
        "until",
        lambda row: moment(row.expires_ms),
        display=lambda row, _: moment(row.expires_ms) if row.state == "open" else "",
    ),
    Column("made", lambda row: moment(row.made_ms), display=lambda row, now_ms: age(row.made_ms, now_ms)),
)

PROJECT_COLUMNS: Columns[ProjectComponent] = (
    Column("type", lambda row: row.type),
    Column("default", lambda row: "*" if row.is_default else ""),
    Column("name", lambda row: row.name),
    Column("from", lambda row: " ".join(filter(None, (row.source, row.version))) or "own", optional=2),
    Column("class", lambda row: row.class_name, optional=1),
    Column("parameters", lambda row: _assigned(row.parameters)),
)


def project_run_columns(head: str) -> Columns[ProjectRun]:
    """The runs of a project; a star stands at the ``head``, from which the next one goes on."""
    return (
        Column("id", lambda run: run.id),
        Column("mode", lambda run: run.mode if run.status == "ok" else f"{run.mode} ({run.status})"),
        Column("from", lambda run: run.parent),
        Column("episodes", lambda run: run.metrics.get("episodes", 0), _NUMBER),
        Column("mean", lambda run: run.metrics.get("mean_reward"), _REWARD),
        Column("max", lambda run: run.metrics.get("max_reward"), _REWARD, optional=1),
        Column("trained", lambda run: run.totals["training_episodes"], _NUMBER),
        Column("sandbox", lambda run: walls(run.sandbox, run.trusted), optional=2),
        Column("head", lambda run: "*" if run.id == head else ""),
    )


SWEEP_COLUMNS: Columns[SweepRow] = (
    Column("mean reward", lambda row: row.mean_reward, _REWARD),
    Column("train", lambda row: row.train),
    Column("run", lambda row: row.bench),
    Column("parameters", lambda row: _assigned(row.parameters)),
)
