"""A component in a process of its own, with Python packages of its own, or as a service.

Both sides call each other over one link. While one side waits for an answer it answers what the other asks meanwhile.
Values are copied. The other components of the project stay where they are and are passed by name, so it reaches them as
ever (``self.environment``).
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autoresearch.errors import AutoresearchError, BadMessage, UsageError
from autoresearch.link import LinkEnded, keep_link, start_linked
from autoresearch.project.child import messages
from autoresearch.project.child.actors import Acting, Learning
from autoresearch.project.child.child import go_on, keep_learned
from autoresearch.project.child.members import OWNER, ComponentFailed, Members, failed, use
from autoresearch.project.child.recording import Recorder, Tally, takes_seed
from autoresearch.project.model import AGENT, Project
from autoresearch.services import ActionServer, GymEnvServer, InferenceServer, TrainerServer
from autoresearch.services.links.sockets import KeyPair, ServerKeys
from autoresearch.services.spaces import description_of, space_of
from autoresearch.text import one_line


class Calls:
    """One side. ``find`` gives this side's component of a type and name; it may raise NotFound."""

    def __init__(self, talk: messages.Conversation, find: Callable[[str, str], Any]) -> None:
        self.talk = talk
        self._find = find

    def get(self, owner: tuple[str, str], name: str) -> Any:  # noqa: ANN401
        """An attribute of a component of the other side; a method is called over there."""
        return self._ask(owner, "get", [owner, name])

    def call(self, owner: tuple[str, str], name: str, *args: Any, **named: Any) -> Any:  # noqa: ANN401
        """Call a method of a component of the other side."""
        arguments = [[_sent(each) for each in args], {key: _sent(each) for key, each in named.items()}]
        return self._ask(owner, "call", [owner, name, *arguments])

    def put(self, owner: tuple[str, str], name: str, value: object) -> None:
        """Set an attribute of a component of the other side."""
        self._ask(owner, "put", [owner, name, _sent(value)])

    def serve(self) -> None:
        """Answer until the other side has ended."""
        while True:
            try:
                self._answer(self.talk.receive())
            except LinkEnded:
                return

    def _ask(self, owner: tuple[str, str], word: str, about: list[Any]) -> Any:  # noqa: ANN401
        try:
            self.talk.send([word, *about])
            while (message := self.talk.receive())[0] in _WORDS:
                self._answer(message)
        except LinkEnded:
            raise ComponentFailed(f"{'.'.join(owner)}: its process ended", hint="its messages are in the log") from None
        match message:
            case ["method"]:
                return functools.partial(self.call, owner, about[1])
            case ["none"]:
                raise AttributeError(f"{'.'.join(owner)} has no {about[1]}")
            case ["error", str() as sentence, str() as hint]:
                raise ComponentFailed(sentence, hint=hint)
            case ["value", value]:
                return self._received(value)
        raise BadMessage(f"{'.'.join(owner)}: its process told something else than an answer")

    def _answer(self, message: Any) -> None:  # noqa: ANN401
        """Do what the other side asks for. What goes wrong is its answer."""
        word, (kind, name), attribute, *args = message
        try:
            component = self._find(kind, name)
            if isinstance(component, Recorder) and word != "call":
                component = component.inner
            answer = self._done(component, word, attribute, args)
        except LinkEnded:
            raise
        except Exception as error:  # noqa: BLE001 - a component's own error, told where it was asked for
            failure = error if isinstance(error, AutoresearchError) else failed(f"{kind}.{name}", error)
            answer = ["error", str(failure), failure.hint]
        try:
            self.talk.send(answer)
        except BadMessage as error:
            sentence = f"{kind}.{name}: what {attribute} gives can't be passed to another process: {error}"
            self.talk.send(
                ["error", one_line(sentence, 300), "return numbers, text, arrays, lists or mappings of them"]
            )

    def _done(self, component: Any, word: str, attribute: str, args: list[Any]) -> list[Any]:  # noqa: ANN401
        if word == "put":
            setattr(component, attribute, self._received(args[0]))
            return ["value", ["v", None]]
        member: Any = getattr(component, attribute, _NOTHING)
        if member is _NOTHING:
            return ["none"]
        if word == "get":
            return ["method"] if callable(member) else ["value", _sent(member)]
        words = {key: self._received(each) for key, each in args[1].items()}
        if attribute == "reset" and "seed" in words and not takes_seed(member):
            del words["seed"]
        return ["value", _sent(member(*map(self._received, args[0]), **words))]

    def _received(self, content: Any) -> Any:  # noqa: ANN401
        match content:
            case ["v", value]:
                return value
            case ["space", space]:
                return space_of(space)
            case ["component", str() as kind, str() as name]:
                return self._find(kind, name)
        raise BadMessage("a value came that is none")


class RemoteComponent:
    """A component that is in another process, as its users see it."""

    def __init__(self, calls: Calls, kind: str, name: str) -> None:
        self.__dict__.update(_calls=calls, _owner=(kind, name), _methods={})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        methods: dict[str, Any] = self.__dict__["_methods"]
        if name not in methods:
            value = self.__dict__["_calls"].get(self.__dict__["_owner"], name)
            if not isinstance(value, functools.partial):
                return value
            methods[name] = value
        return methods[name]

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__["_calls"].put(self.__dict__["_owner"], name, value)


def _sent(value: object) -> list[Any]:
    """A value as it is sent: a component by its name, a space as its description, all else as it is."""
    if isinstance(value, Recorder):
        value = value.inner
    if isinstance(value, RemoteComponent):
        return ["component", *value.__dict__["_owner"]]
    if (owner := getattr(value, "__dict__", {}).get(OWNER)) is not None:
        return ["component", *owner]
    space = description_of(value)
    return ["v", value] if space is None else ["space", space]


_NOTHING = object()
_WORDS = frozenset(("get", "call", "put"))


_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from autoresearch.project.child.apart import main; main(int(sys.argv[2]))"
)
_ROOT = Path(__file__).parents[3]


def started_apart(
    executable: str, project: Project, seed: int, owner: tuple[str, str], find: Callable[[str, str], Any]
) -> RemoteComponent:
    """Start the process of a component. It is built there when it is first used, and ends with this process.

    ``find`` gives the components that it asks for.
    """
    _, descriptor = start_linked([executable, "-P", "-c", _START, str(_ROOT)])
    calls = Calls(messages.Conversation(descriptor, descriptor), find)
    order = messages.RunOrder(project=project, mode="train", episodes=0, seed=seed, learned="", out="")
    calls.talk.send([messages.encode_line(order), *owner])
    return RemoteComponent(calls, *owner)


def main(descriptor: int) -> None:
    """Be the process of the component that the first message names, until the other side ends."""
    keep_link(descriptor)
    from autoresearch.project import acr

    sys.modules["acr"] = acr
    talk = messages.Conversation(descriptor, descriptor)
    word, kind, name = talk.receive()
    order = messages.decode_order(word)
    members = _Apart(order.project, order.seed, (kind, name))
    members.calls = Calls(talk, members.get)
    use(members)
    members.calls.serve()
    sys.stdout.flush()
    os._exit(0)  # a component's own threads must not hold it


class _Apart(Members):
    """The components as this one sees them: itself here, all others in the process that started this one."""

    calls: Calls

    def __init__(self, project: Project, seed: int, owner: tuple[str, str]) -> None:
        super().__init__(project, seed=seed, made=lambda _kind, _name, component: component)
        self._owner = owner

    def get(self, kind: str, name: str) -> Any:  # noqa: ANN401
        """The component of this name. Raises NotFound, and for the own one UsageError, ComponentFailed."""
        if (kind, name) == self._owner:
            return super().get(kind, name)
        if (kind, name) not in self.built:
            self.project.component(kind, name)
            self.built[kind, name] = RemoteComponent(self.calls, kind, name)
        return self.built[kind, name]


TELL_SECONDS = 0.5
# What a component needs to be served as each kind.
NEEDED = {
    "env": ("reset", "step", "action_space", "observation_space"),
    "action": ("reset", "step"),
    "inference": ("decide",),
    "trainer": ("train",),
}


Server = GymEnvServer | InferenceServer | ActionServer | TrainerServer


class ComponentHost:
    """Builds the component of an order, and serves it.

    Raises:
        AutoresearchError: the component is missing, wrong, or raised an error; or its address is refused.
    """

    def __init__(self, order: messages.ServeOrder) -> None:
        self._order = order
        self._members = Members(order.project, made=self._made, isolated=order.isolated)
        use(self._members)
        component = self._members.get(*order.component)
        missing = [name for name in NEEDED[order.kind] if getattr(component, name, None) is None]
        if missing:
            sentence = f"{'.'.join(order.component)} lacks {', '.join(missing)}, so it can't be served as {order.kind}"
            raise UsageError(sentence, hint="autoresearch list --check")
        keys = None
        if order.secret:
            own = KeyPair(secret=bytes.fromhex(order.secret), public=bytes.fromhex(order.public))
            keys = ServerKeys.of(own, order.clients, Path(order.own_machines) if order.own_machines else None)
        self._learning: Learning | None = None
        self._server = self._made_server(component, keys)

    def serve(self, tell: Callable[[messages.Message], None], stop: threading.Event) -> None:
        """Answer until it is told to stop, then write what a trainer has learned.

        Raises:
            AutoresearchError: a trainer's or a dataset's code raised an error.
        """
        began = told_at = time.monotonic()
        self._server.start(threaded=True)
        try:
            tell(messages.ServiceStarted(self._server.port))
            reported = 0
            while not stop.wait(self._learning.pause_s if self._learning else TELL_SECONDS):
                if self._learning:
                    self._learning.learn()
                counts = self._server.counts
                requests = counts.answered + counts.failed
                if requests != reported and time.monotonic() - told_at >= TELL_SECONDS:
                    reported, told_at = requests, time.monotonic()
                    tell(messages.Served(requests))
        finally:
            self._server.stop()
        if self._learning:
            self._learning.learn()
            keep_learned(self._members, Path(self._order.out))
        metrics = self._learning.metrics() if self._learning else {}
        used = sorted(".".join(key) if key[0] != AGENT else AGENT for key in self._members.built)
        counts = self._server.counts
        tell(messages.Served(counts.answered + counts.failed))
        tell(messages.OrderDone(metrics, [], time.monotonic() - began, used))

    def _made(self, kind: str, name: str, component: Any) -> Any:  # noqa: ANN401
        go_on(Path(self._order.learned) if self._order.learned else None, kind, name, component)
        return Recorder(component, Tally()) if kind == "environment" else component

    def _made_server(self, component: Any, keys: ServerKeys | None) -> Server:  # noqa: ANN401
        port, address = self._order.port, self._order.address
        match self._order.kind:
            case "env":
                return GymEnvServer(component, port, address, keys)
            case "action":
                return Acting(component, port, address, keys).server
            case "trainer":
                members = self._members
                self._learning = Learning(
                    component, members.default("policy"), members.default("dataset"), port, address, keys
                )
                return self._learning.server
        server = InferenceServer(port, address, keys)
        server.register_interface("decide", component.decide)
        return server
