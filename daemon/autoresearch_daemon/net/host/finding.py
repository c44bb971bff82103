"""Finding peers on the local network: multicast DNS as the libp2p specification has it (specs/discovery/mdns).

zeroconf blocks for seconds when it starts and stops and has a thread of its own; the host's loop never waits for it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from functools import partial

import trio
from zeroconf import InterfaceChoice, ServiceBrowser, ServiceInfo, ServiceListener, Zeroconf

from autoresearch_daemon.net.host.dialling import is_loopback
from autoresearch_daemon.net.model import HostOptions

logger = logging.getLogger(__name__)

SERVICE = "_p2p._udp.local."
ANSWER_MS = 3000
ADDRESSES_MAX = 8
CLOSE_SECONDS = 1.0


class Listener(ServiceListener):
    """Hands on the addresses that other hosts announce. Called in zeroconf's thread."""

    def __init__(self, learn: Callable[[str], None], own_name: str) -> None:
        self._learn = learn
        self._own_name = own_name

    def add_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """A host announces itself."""
        if name == self._own_name:
            return
        info = zc.get_service_info(type_, name, timeout=ANSWER_MS)
        values = [value for key, value in (info.properties if info else {}).items() if key.startswith(b"dnsaddr")]
        for value in values[:ADDRESSES_MAX]:
            if value:
                self._learn(value.decode("ascii", "replace"))

    def update_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """A host announces itself anew."""
        self.add_service(zc, type_, name)

    def remove_service(self, zc: Zeroconf, type_: str, name: str) -> None:
        """A host is gone; its connection says so too."""


async def announce_and_listen(
    addresses: Callable[[], list[str]], options: HostOptions, learn: Callable[[str], object]
) -> None:
    """Announce this host and pass on those that are heard, until cancelled. A network without multicast is no error."""
    token = trio.lowlevel.current_trio_token()
    name = f"{secrets.token_hex(16)}.{SERVICE}"

    def hand_on(address: str) -> None:
        try:
            token.run_sync_soon(partial(learn, address))
        except trio.RunFinishedError:
            return

    advertised = [address for address in addresses() if options.lan_interfaces or not is_loopback(address)]
    info = service_info(name, advertised[:ADDRESSES_MAX])
    started: list[Zeroconf] = []

    def start() -> None:
        started.append(Zeroconf(interfaces=list(options.lan_interfaces) or InterfaceChoice.All))
        started[0].register_service(info)
        ServiceBrowser(started[0], SERVICE, Listener(hand_on, name))

    try:
        await in_thread(start)
        await trio.sleep_forever()
    except Exception as error:  # noqa: BLE001 - no multicast, no interface, a name conflict: discovery is a comfort
        logger.info("no discovery on the local network: %r", error)
    finally:
        if started:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
                await in_thread(started[0].close)


async def in_thread(function: Callable[[], None]) -> None:
    """Run it in a thread; when this is cancelled the thread is left to itself."""
    await trio.to_thread.run_sync(function, abandon_on_cancel=True)  # type: ignore[call-arg,unused-ignore]


def service_info(name: str, addresses: list[str]) -> ServiceInfo:
    """What is announced: one TXT entry an address."""
    port = int(addresses[0].split("/")[4]) if addresses else 0
    texts: dict[str | bytes, str | bytes | None] = {
        f"dnsaddr{number or ''}": address for number, address in enumerate(addresses)
    }
    ips = [address.split("/")[2] for address in addresses]  # other programs take an entry without them for incomplete
    return ServiceInfo(
        SERVICE, name, port, properties=texts, parsed_addresses=ips, server=f"{name.partition('.')[0]}.local."
    )
