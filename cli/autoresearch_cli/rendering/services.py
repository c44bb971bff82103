"""Services in words."""

from __future__ import annotations

from autoresearch.api import ServicesAnswer
from autoresearch.figures import age
from autoresearch.services import Service
from autoresearch_cli.rendering.output import print_labelled, print_table

_ASKED = {
    "env": "GymEnvClient({place})",
    "action": "ActionClient({place}, config=…)",
    "inference": "InferenceClient({place})",
    "trainer": "TrainerClient(…, TrainerConfig({port}, 0), …)",
}


def print_services(answer: ServicesAnswer, *, now_ms: int) -> None:
    """A row for each service."""
    print_table(
        ("name", "kind", "component", "address", "since", "requests", "project"),
        [
            (
                each.name,
                each.kind,
                each.component,
                f"{each.address}:{each.port}",
                age(each.since_ms, now_ms),
                each.requests,
                each.project,
            )
            for each in answer.services
        ],
        right=("requests",),
        optional=("project", "component"),
    )


def print_service(service: Service) -> None:
    """One service that has begun."""
    rows = [
        ("service", service.name),
        ("kind", service.kind),
        ("component", service.component),
        ("address", f"{service.address}:{service.port}"),
    ]
    print_labelled([*rows, *([("public key", service.public_key)] if service.public_key else [])])


def ask_it(service: Service) -> str:
    """How a Python program on this machine asks it."""
    address, port = service.place
    keys = ", keys=…" if service.public_key else ""
    asked = _ASKED[service.kind].format(place=f'"{address}", {port}{keys}', port=port)
    return f"autoresearch.services.{asked}"
