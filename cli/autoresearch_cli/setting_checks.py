"""What a value of a setting must be beyond its type: it is refused when it is set, not when the daemon starts."""

from __future__ import annotations

from collections.abc import Callable

from autoresearch_cli import here


def check_setting(name: str, value: str) -> None:
    """Refuse with a UsageError, or NotFound, a value that no daemon could start with."""
    check = _CHECKS.get(name)
    if check is not None:
        check(value)


def _task(value: str) -> None:
    from autoresearch.tasks import load_task

    if value:
        load_task(here.existing_folder(value))


def _device(value: str) -> None:
    from autoresearch.settings import named_devices

    named_devices(value)


def _listen(value: str) -> None:
    from autoresearch.networks import check_listen_address

    for address in filter(None, map(str.strip, value.split(","))):
        check_listen_address(address, "network.listen")


def _bootstrap(value: str) -> None:
    from autoresearch.networks import check_peer_address

    for address in filter(None, map(str.strip, value.split(","))):
        check_peer_address(address, "network.bootstrap")


_CHECKS: dict[str, Callable[[str], None]] = {
    "work.task": _task,
    "work.device": _device,
    "network.listen": _listen,
    "network.bootstrap": _bootstrap,
}
