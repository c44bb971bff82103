"""Looks every few seconds whether this machine is its owner's, and has the service hold its work then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import msgspec
import structlog

from autoresearch.ask.health import warning
from autoresearch.ask.node import Check, MachineStatus, OwnerStatus
from autoresearch.settings import Settings
from autoresearch.words import OWNER_REASONS, WHY_SENTENCES, Part, Why
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.owner.host import CAN_BIND, LocalMachine, keep_to_cores
from autoresearch_daemon.owner.rules import Heat, NetworkRest, Reading, WorkRefusal, network_rest, refusals, unheld
from autoresearch_daemon.owner.sleep import Sleep
from autoresearch_daemon.service.effects import ServiceStatus
from autoresearch_daemon.service.inputs import Blocked

logger = structlog.get_logger()

# Work stops within this time and the deadline of an answer.
LOOK_SECONDS = 5.0
# Whether runs have stopped is asked so often while the machine waits with its sleep.
STOPPED_SECONDS = 0.1


class OwnerWatch:
    """The refusals at the last look. ``take`` gives the service its blocks; ``workers`` are process ids.

    ``rest`` has the network rest. ``woke`` is called after a sleep of the machine, before which runs are stopped; None
    where no run is on a card, as others survive that.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        service: Callable[[], ServiceStatus],
        machine: Callable[[], MachineStatus | None],
        *,
        take: Callable[[Blocked], None],
        workers: Callable[[], Iterable[int]],
        rest: Callable[[NetworkRest], None],
        woke: Callable[[], None] | None,
        host: LocalMachine | None = None,
    ) -> None:
        self._settings, self._service, self._machine, self._take = settings, service, machine, take
        self._rest, self._woke = rest, woke
        self._is_asleep = False
        self._host = host or LocalMachine()
        self._refused: dict[Why, WorkRefusal] = {}
        self._problems: list[str] = []
        self._reading: Reading | None = None
        self._turn = asyncio.Lock()
        self._workers = workers
        self._is_bound = False

    async def keep(self) -> None:
        """Look until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._woke:
                group.create_task(Sleep(self._fall_asleep, self._wake).keep())
            group.create_task(self._keep_looking())

    async def _fall_asleep(self) -> None:
        """Have all runs stopped, and wait until they are."""
        self._is_asleep = True
        self._take(Blocked(Why.GOING_TO_SLEEP, WHY_SENTENCES[Why.GOING_TO_SLEEP], stops=True))
        while any(worker.run for worker in self._service().workers):  # noqa: ASYNC110 - for seconds, and nobody tells
            await asyncio.sleep(STOPPED_SECONDS)

    def _wake(self) -> None:
        self._is_asleep = False
        if self._woke:
            self._woke()
        self._take(Blocked(Why.GOING_TO_SLEEP, None))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except Exception:  # a look that fails must not be the last
                logger.exception("it could not be looked whether this machine is its owner's")

    async def look(self) -> None:
        """Have nothing begun, and what is in hand stopped, as the settings say."""
        async with self._turn:
            await self.look_at_network()
            work, now, machine = self._settings().work, self._service(), self._machine()
            cards = machine.cards if machine else []
            heats = [Heat(card.name, card.celsius) for card in cards if card.celsius is not None]
            running = any(worker.run for worker in now.workers)
            reading = self._reading = await self._host.read(work, now_ms(), running=running, card_heats=heats)
            if CAN_BIND and (work.cores or self._is_bound):
                self._is_bound = bool(work.cores)
                await asyncio.to_thread(keep_to_cores, list(self._workers()), work.cores)
            self._problems = unheld(work, reading)
            if work.cores and not CAN_BIND:
                text = "this system binds no program to cores, so work.cores limits nothing"
                self._problems.append(f"{text} → autoresearch node config set work.cores 0")
            # What an executor carries out elsewhere takes nothing of this machine.
            self._refused = {} if now.front.executor else refusals(work, reading, self._refused)
            if self._is_asleep:
                self._refused[Why.GOING_TO_SLEEP] = WorkRefusal(WHY_SENTENCES[Why.GOING_TO_SLEEP])
            for why in OWNER_REASONS:
                refusal = self._refused.get(why)
                self._take(Blocked(why, refusal.sentence, refusal.stops) if refusal else Blocked(why, None))

    async def look_at_network(self) -> None:
        """Have the network rest as the settings say."""
        time.tzset()  # a machine that travels has another local time
        network = self._settings().network
        if network.enabled:
            at_ms = now_ms()
            metered = None if network.blobs_on_metered else await self._host.is_metered(at_ms)
            self._rest(network_rest(network, at_ms, metered=metered))

    def seen(self, machine: MachineStatus | None) -> MachineStatus | None:
        """The machine's status, with what it showed of its owner."""
        if machine is None or self._reading is None:
            return machine
        reading = self._reading
        owner = OwnerStatus(
            on_mains=reading.on_mains,
            celsius=reading.heat.celsius if reading.heat and self._settings().work.max_temperature else None,
            used_ms=reading.use.last_ms if reading.use else None,
            used_by=reading.use.source if reading.use else "",
            unknown=reading.unanswered,
        )
        return msgspec.structs.replace(machine, owner=owner)

    @property
    def is_hot(self) -> bool:
        """Whether work waits until the machine is cooler."""
        return Why.TOO_HOT in self._refused

    def conditions(self) -> list[Check]:
        """The limits that this machine can't hold."""
        return [warning(Part.LIMITS, problem) for problem in self._problems]
