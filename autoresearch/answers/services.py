"""The services of this machine."""

from __future__ import annotations

from pathlib import Path

import msgspec

from autoresearch.api import ServicesAnswer, ServiceView
from autoresearch.services import Service, running_services


def services_answer(folder: Path) -> ServicesAnswer:
    """The services whose files are in a folder, and that run."""
    return ServicesAnswer(services=[service_view(each) for each in running_services(folder)])


def service_view(service: Service) -> ServiceView:
    """One service."""
    return ServiceView(**msgspec.structs.asdict(service))
