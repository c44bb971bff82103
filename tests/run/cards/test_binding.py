"""Which card a run gets: by number, by UUID, in a job of Slurm."""

from __future__ import annotations

import pytest

from autoresearch.errors import CannotRunHere, UsageError
from autoresearch.run.bench import device_name, environment
from autoresearch.run.sandbox.cards import card_of, cards, driver_version, make_nodes, named_devices
from tests.run.cards.conftest import UUID, Machine

OTHER = "GPU-aaaa8a56-1111-2222-3333-444455556666"


@pytest.fixture
def two(machine: Machine) -> Machine:
    """Two cards; the first on the bus has the second device file."""
    machine.add(1, "0000:01:00.0", UUID)
    machine.add(0, "0000:02:00.0", OTHER)
    return machine


@pytest.mark.parametrize(
    ("device", "uuid"),
    [("cuda", UUID), ("cuda:0", UUID), ("cuda:1", OTHER), (OTHER, OTHER), ("gpu-aaaa", OTHER), ("GPU-d4", UUID)],
)
def test_a_card_is_found_by_its_place_on_the_bus_or_its_uuid(two: Machine, device: str, uuid: str) -> None:
    card = card_of(device)
    assert card is not None
    assert (card.uuid, card.minor) == (uuid, 1 if uuid == UUID else 0)
    assert [node.name for node in card.nodes] == [card.node.name, "nvidiactl", "nvidia-uvm"]


@pytest.mark.parametrize("device", ["cuda:2", "GPU-bbbb", "GPU-"])
def test_what_names_no_card_or_several_is_refused(two: Machine, device: str) -> None:
    with pytest.raises(CannotRunHere, match=device) as refused:
        card_of(device)
    assert refused.value.hint


def test_auto_is_every_card_and_a_card_is_named_by_its_uuid(two: Machine) -> None:
    assert named_devices("auto") == ["cuda:0", "cuda:1"]
    assert named_devices(f"{UUID}, cpu") == [UUID, "cpu"]
    for word in ("gpu", "cudax", "cuda:x"):
        with pytest.raises(UsageError, match="is no device"):
            named_devices(word)


def test_a_record_names_card_and_driver(two: Machine) -> None:
    assert device_name(OTHER) == "NVIDIA Stand-in 24G"
    assert driver_version() == "570.86.15"
    assert environment(None, "cuda:1").items() >= {"card": OTHER, "driver": "570.86.15"}.items()
    assert "card" not in environment()


@pytest.mark.parametrize(
    ("numbers", "closed", "uuids"),
    [("1", None, [UUID]), ("0", None, [OTHER]), ("", None, []), ("7", 0, [UUID]), ("0,1", None, [UUID, OTHER])],
    ids=["by the device file", "the other", "none", "kept from the others", "both"],
)
def test_in_a_job_of_slurm_there_are_its_cards_alone(
    two: Machine, monkeypatch: pytest.MonkeyPatch, numbers: str, closed: int | None, uuids: list[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_JOB_GPUS", numbers)
    if closed is not None:  # a device that a control group closes can't be opened, as a folder can't be written
        node = two.folder / "dev" / f"nvidia{closed}"
        node.unlink()
        node.mkdir()
    assert [card.uuid for card in cards()] == uuids
    if uuids != [UUID, OTHER]:
        missing = UUID if OTHER in uuids else OTHER
        with pytest.raises(CannotRunHere, match="Slurm job 12") as refused:
            card_of(missing)
        assert (uuids[0] if uuids else "no card") in str(refused.value)


def test_a_missing_device_file_is_said_with_its_remedy(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    make_nodes()
    (machine.folder / "dev" / "nvidia-uvm").unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(CannotRunHere, match="nvidia-uvm is missing") as refused:
        make_nodes()
    assert "nvidia-modprobe" in refused.value.hint
