"""What the machine is busy with, by counters as the kernel and the cards' program write them."""

from __future__ import annotations

from pathlib import Path

import psutil
from autoresearch_daemon.gauges import Gauges, card_of


def part(powercap: Path, number: int, name: str, energy: int) -> Path:
    folder = powercap / f"intel-rapl:{number}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text("1000000000\n")
    (folder / "energy_uj").write_text(f"{energy}\n")
    return folder / "energy_uj"


def test_energy_adds_up_over_a_counter_that_begins_again_and_without_the_platform(tmp_path: Path) -> None:
    first, platform = part(tmp_path, 0, "package-0", 999_000_000), part(tmp_path, 1, "psys", 0)
    gauges = Gauges(tmp_path)
    first.write_text("3000000\n")  # 1 J to the end, and 3 J after it
    platform.write_text("9000000\n")
    gauges.look(cards=False)
    first.write_text("5000000\n")
    gauges.look(cards=False)
    assert gauges.status
    assert gauges.status.joules == 6.0
    assert gauges.status.watts
    assert gauges.status.watts > 0
    assert 0 < gauges.status.memory_bytes < gauges.status.memory_total_bytes == psutil.virtual_memory().total


def test_energy_that_nobody_may_read_is_unknown_and_no_nought(tmp_path: Path) -> None:
    part(tmp_path, 0, "package-0", 0).unlink()
    for powercap in (tmp_path, tmp_path / "nothing"):
        gauges = Gauges(powercap)
        gauges.look(cards=True)
        assert gauges.status
        assert (gauges.status.watts, gauges.status.joules) == (None, None)


def test_a_card_says_what_it_can() -> None:
    whole = card_of("NVIDIA H100 80GB HBM3, 97, 20480, 81559, 301.55, 64")
    assert whole
    assert (whole.name, whole.busy, whole.memory_bytes, whole.watts, whole.celsius) == (
        "NVIDIA H100 80GB HBM3",
        0.97,
        20 << 30,
        301.55,
        64,
    )
    quiet = card_of("GeForce GT 710, [N/A], 100, 2048, [Not Supported], [N/A]")
    assert quiet
    assert (quiet.busy, quiet.watts) == (None, None)
    assert card_of("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.") is None
