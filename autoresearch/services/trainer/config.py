"""What a trainer and its actors must agree on, and what they say to each other. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from autoresearch.errors import BadMessage


@dataclass
class TrainerConfig:
    """What both sides must agree on. Ports may differ; 0 is a free one that the system chooses at the server.

    ``broadcast_port`` is where weights are published; 0 at a client is where the server says. ``request_types`` are the
    names of the program's own requests. ``rate_limit`` is how many requests and updates a client sends in a second.
    ``experimental_pipeline_port`` is taken for programs written for agentlace and opens nothing: every update is fast
    and arrives once.
    """

    port_number: int = 5555
    broadcast_port: int = 5556
    request_types: list[str] = field(default_factory=list)
    rate_limit: float | None = None
    version: str = "0.0.2"
    experimental_pipeline_port: int | str | None = None

    def agreed(self) -> dict[str, object]:
        """What is compared between client and server."""
        return {"request_types": sorted(self.request_types), "version": self.version}


class RowsSent(msgspec.Struct, frozen=True):
    """Rows of a client's store: the last ``count`` up to number ``last``. ``after`` is what the server said it had."""

    store: str
    source: str
    after: int
    last: int
    count: int
    columns: Any


class RowsTaken(msgspec.Struct, frozen=True):
    """What became of rows: how many were stored now, and the number of the last one that the server has."""

    stored: int
    offset: int


def as_message(said: RowsSent | RowsTaken) -> dict[str, object]:
    """A struct as what can be sent."""
    return {name: getattr(said, name) for name in said.__struct_fields__}


def rows_sent(message: object) -> RowsSent:
    """Rows from a message. Raises BadMessage where it is another one."""
    match message:
        case {
            "store": str() as store,
            "source": str() as source,
            "after": int() as after,
            "last": int() as last,
            "count": int() as count,
            "columns": columns,
        } if after >= -1 and 0 <= count <= last + 1:
            return RowsSent(store, source, after, last, count, columns)
    raise BadMessage("rows came without what says which they are")


def rows_taken(message: object) -> RowsTaken:
    """What a server said about rows. Raises BadMessage where it is something else."""
    match message:
        case {"stored": int() as stored, "offset": int() as offset}:
            return RowsTaken(stored, offset)
    raise BadMessage("the server did not say what became of the rows")
