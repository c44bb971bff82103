"""Components in a process of their own: calls over two pipes, which both sides make and answer.

While one side waits for an answer it answers what the other asks meanwhile. Values are copied; other components of the
project are passed by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from autoresearch.errors import AutoresearchError, BadMessage
from autoresearch.projects.inside.conversation import Conversation, ConversationEnded
from autoresearch.projects.own_process.loading import ComponentFailed, failed
from autoresearch.projects.own_process.members import OWNER
from autoresearch.projects.own_process.recording import Recorder, takes_seed
from autoresearch.projects.spaces import described, space_of
from autoresearch.sanitise import one_line


class Link:
    """One side. ``find`` gives this side's component of a type and name; it may raise NotFound."""

    def __init__(self, talk: Conversation, find: Callable[[str, str], Any]) -> None:
        self.talk = talk
        self._find = find

    def get(self, owner: tuple[str, str], name: str) -> Any:  # noqa: ANN401
        """An attribute of a component of the other side; a method is called over there."""
        return self._asked(owner, "get", [owner, name])

    def call(self, owner: tuple[str, str], name: str, *given: Any, **named: Any) -> Any:  # noqa: ANN401
        """Call a method of a component of the other side."""
        told = [[_sent(each) for each in given], {key: _sent(each) for key, each in named.items()}]
        return self._asked(owner, "call", [owner, name, *told])

    def put(self, owner: tuple[str, str], name: str, value: object) -> None:
        """Set an attribute of a component of the other side."""
        self._asked(owner, "put", [owner, name, _sent(value)])

    def serve(self) -> None:
        """Answer until the other side has ended."""
        while True:
            try:
                self._answer(self.talk.receive())
            except ConversationEnded:
                return

    def _asked(self, owner: tuple[str, str], word: str, about: list[Any]) -> Any:  # noqa: ANN401
        try:
            self.talk.send([word, *about])
            while (told := self.talk.receive())[0] in _WORDS:
                self._answer(told)
        except ConversationEnded:
            raise ComponentFailed(f"{'.'.join(owner)}: its process ended", hint="its messages are in the log") from None
        match told:
            case ["method"]:
                return functools.partial(self.call, owner, about[1])
            case ["none"]:
                raise AttributeError(f"{'.'.join(owner)} has no {about[1]}")
            case ["error", str() as sentence, str() as hint]:
                raise ComponentFailed(sentence, hint=hint)
            case ["value", value]:
                return self._received(value)
        raise BadMessage(f"{'.'.join(owner)}: its process told something else than an answer")

    def _answer(self, told: Any) -> None:  # noqa: ANN401
        """Do what the other side asks for. What goes wrong is its answer."""
        word, (kind, name), attribute, *given = told
        try:
            component = self._find(kind, name)
            if isinstance(component, Recorder) and word != "call":
                component = component.inner
            answer = self._done(component, word, attribute, given)
        except ConversationEnded:
            raise
        except Exception as error:  # noqa: BLE001 - a component's own error, told where it was asked for
            known = error if isinstance(error, AutoresearchError) else failed(f"{kind}.{name}", error)
            answer = ["error", str(known), known.hint]
        try:
            self.talk.send(answer)
        except BadMessage as error:
            sentence = f"{kind}.{name}: what {attribute} gives can't be passed to another process: {error}"
            self.talk.send(
                ["error", one_line(sentence, 300), "return numbers, text, arrays, lists or mappings of them"]
            )

    def _done(self, component: Any, word: str, attribute: str, given: list[Any]) -> list[Any]:  # noqa: ANN401
        if word == "put":
            setattr(component, attribute, self._received(given[0]))
            return ["value", ["v", None]]
        found: Any = getattr(component, attribute, _NOTHING)
        if found is _NOTHING:
            return ["none"]
        if word == "get":
            return ["method"] if callable(found) else ["value", _sent(found)]
        words = {key: self._received(each) for key, each in given[1].items()}
        if attribute == "reset" and "seed" in words and not takes_seed(found):
            del words["seed"]
        return ["value", _sent(found(*map(self._received, given[0]), **words))]

    def _received(self, told: Any) -> Any:  # noqa: ANN401
        match told:
            case ["v", value]:
                return value
            case ["space", space]:
                return space_of(space)
            case ["component", str() as kind, str() as name]:
                return self._find(kind, name)
        raise BadMessage("a value came that is none")


class Elsewhere:
    """A component that is in another process, as its users see it."""

    def __init__(self, link: Link, kind: str, name: str) -> None:
        self.__dict__.update(_link=link, _owner=(kind, name), _methods={})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        methods: dict[str, Any] = self.__dict__["_methods"]
        if name not in methods:
            found = self.__dict__["_link"].get(self.__dict__["_owner"], name)
            if not isinstance(found, functools.partial):
                return found
            methods[name] = found
        return methods[name]

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__["_link"].put(self.__dict__["_owner"], name, value)


def _sent(value: object) -> list[Any]:
    """A value as it is sent: a component by its name, a space as its description, all else as it is."""
    if isinstance(value, Recorder):
        value = value.inner
    if isinstance(value, Elsewhere):
        return ["component", *value.__dict__["_owner"]]
    if (owner := getattr(value, "__dict__", {}).get(OWNER)) is not None:
        return ["component", *owner]
    space = described(value)
    return ["v", value] if space is None else ["space", space]


_NOTHING = object()
_WORDS = frozenset(("get", "call", "put"))
