"""An operation: one address of the API and the function that answers it. Its decorator, and what both ends need of it.

Routes, the OpenAPI document, the calls of clients and the tables of docs/reference/api.md follow from the functions:
the type of the second parameter is what an operation takes, that of the result what it answers, the docstring's first
paragraph what it is for. Loads quickly, since every command loads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, urlencode

import msgspec

from autoresearch.ask.requests import EventsSince, Nothing, Parameters
from autoresearch.errors import UsageError
from autoresearch.log.standing.answers import Judged

if TYPE_CHECKING:
    from autoresearch.ask.desk import Desk
    from autoresearch.log.standing.answers import Answer

JSON = "application/json"
PLAIN = "text/plain"
# The daemon answers from memory; ten seconds mean that it hangs or the machine is out of memory.
USUAL_SECONDS = 10.0

# The types of values as a person calls them.
KINDS = {"str": "text", "int": "a whole number", "float": "a number", "array": "a list"}


class Text(str):
    """An answer that is text, as somebody wrote it."""

    __slots__ = ()


F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Operation:
    """One address of the API: what it takes, what it answers, what it is for, how long a client waits.

    ``reads``: the log answers it, and its function takes a Desk. ``writes``: it publishes, and its function takes the
    Notebook. Neither needs a daemon.
    """

    name: str
    address: str  # method and path
    takes: type[msgspec.Struct]
    answers: type[Answer | Text]
    summary: str
    media: str = JSON
    seconds: float = USUAL_SECONDS
    reads: bool = False
    writes: bool = False

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.address.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, with its parameters in braces."""
        return self.address.partition(" ")[2]

    @property
    def has_body(self) -> bool:
        """Whether it takes a body; else it takes parameters."""
        return not issubclass(self.takes, Parameters)

    @property
    def in_path(self) -> frozenset[str]:
        """The parameters that are parts of the path."""
        return frozenset(re.findall(r"{(\w+)}", self.path))

    def check(self, request: msgspec.Struct) -> None:
        """Refuse, before it is sent, what no daemon would take.

        Raises:
            UsageError: a value is out of its bounds, or a part of the path is empty.
        """
        sent = msgspec.to_builtins(request)
        for name in {"id", "old", "new", *self.in_path} & sent.keys():
            if sent[name] in ("", ".", ".."):
                raise UsageError(f"“{sent[name]}” names no run.", hint="an id or its beginning, or @ for the best run")
        try:
            msgspec.convert(sent, type(request))
        except msgspec.ValidationError as error:
            reason, _, field = str(error).partition(" - at `$.")
            for kind, words in KINDS.items():
                reason = reason.replace(f"`{kind}`", words)
            name = field.rstrip("`").replace("_", "-") or "request"
            sentence = f"This {name} can't be taken: {reason[:1].lower()}{reason[1:]}."
            raise UsageError(sentence, hint=f"give another {name}; --help has its form") from error

    def target(self, request: msgspec.Struct | None) -> str:
        """The path and the query string of a request."""
        if request is None or self.has_body:
            return self.path
        sent = {name: value for name, value in msgspec.to_builtins(request).items() if value is not None}
        rest = {name: value for name, value in sent.items() if name not in self.in_path}
        query = urlencode(rest, doseq=True)
        path = self.path.format(**{name: quote(str(value), safe="@~") for name, value in sent.items()})
        return f"{path}?{query}" if query else path


# These write to the connection themselves.
METRICS = Operation(
    "metrics", "GET /metrics", Nothing, Text, "The node in numbers, for Prometheus.", "text/plain; version=0.0.4"
)
OPENAPI = Operation("openapi", "GET /openapi.json", Nothing, Text, "This API, described by OpenAPI 3.1.")
EVENTS = Operation(
    "events",
    "GET /v1/events",
    EventsSince,
    Text,
    "Events as they happen, as server-sent events; after a gap, first those that were missed.",
    "text/event-stream",
)


def operation(address: str, *, media: str = JSON, seconds: float = USUAL_SECONDS) -> Callable[[F], F]:
    """Make a function an operation of the API: a question to the log, a publication, or an act of the node.

    ``seconds`` is how long a client waits for the answer.
    """

    def declare(function: F) -> F:
        # Only the types of what is sent are looked up: those of a desk would load all that reads the log.
        names = dict(function.__annotations__)

        def kind(name: str) -> Any:  # noqa: ANN401 - a class
            first, *rest = name.split(".")
            return reduce(getattr, rest, function.__globals__[first])

        answers = kind(names.pop("return"))
        reads, writes = (names.pop(place, None) is not None for place in ("desk", "notebook"))
        takes = kind(names.popitem()[1]) if names else Nothing
        summary = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
        declared = Operation(function.__name__, address, takes, answers, summary, media, seconds, reads, writes)
        made = _with_unsettled(function) if reads and issubclass(answers, Judged) else function
        if reads and "hidden" in takes.__struct_fields__:
            made = _with_hidden(made)
        made.operation = declared  # type: ignore[attr-defined]  # read by operation_of alone
        return made

    return declare


def _with_unsettled(question: F) -> F:
    """The same question, whose answer says how many runs are still to be judged."""

    @wraps(question)
    def ask(desk: Desk, *request: msgspec.Struct) -> Judged:
        answer = cast("Judged", question(desk, *request))
        return msgspec.structs.replace(answer, unsettled=desk.log.todo.count())

    return cast("F", ask)


def _with_hidden(question: F) -> F:
    """The same question, which may be asked for what a person hides too."""

    @wraps(question)
    def ask(desk: Desk, request: msgspec.Struct) -> object:
        if not getattr(request, "hidden", False):
            return question(desk, request)
        with desk.log.hidden.included():
            return question(desk, request)

    return cast("F", ask)


def operation_of(question: Callable[..., object]) -> Operation:
    """What a function was declared as."""
    return cast("Operation", question.operation)  # type: ignore[attr-defined]


def declared(*places: object) -> dict[str, Callable[..., Any]]:
    """The functions of modules and classes that are operations, by name."""
    return {
        name: function
        for place in places
        for name, function in vars(place).items()
        if isinstance(getattr(function, "operation", None), Operation)
    }
