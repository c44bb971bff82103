"""Attestors of other packages: found by entry points, and harmless when they are broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.ask.people.participants import AllowRequest, WithdrawRequest
from autoresearch.errors import AutoresearchError, NotFound
from tests.extension_packages import install, install_example
from tests.trust.attesting.town import ADDRESS, House, Town


def open_with(house: House, extension: str) -> None:
    """Start a node again, as an attestor of this kind."""
    house.close()
    house.open({"AUTORESEARCH_ATTESTOR_ENABLED": "true", "AUTORESEARCH_ATTESTOR_EXTENSION": extension})


@pytest.mark.slow
async def test_the_attestor_of_the_page_attests(place: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_example(tmp_path, monkeypatch, "autoresearch.attestors")
    ada = place.houses["ada"]
    (tmp_path / "staff").write_text(f"{ada.root.public.hex()} employee 17\n")
    monkeypatch.setenv("STAFF_FILE", str(tmp_path / "staff"))
    attestors = [place.houses[f"attestor-{number}"] for number in range(2)]
    for house in attestors:
        open_with(house, "staff")
        await house.attestation_service.keep()
        await house.attestation_service.keep()  # nothing is said twice
        assert len(house.notebook.log.records.of_kinds(["attestation"])) == 1
    place.share()
    assert ada.is_attested()
    assert attestors[0].attestation_service.conditions() == []
    request = WithdrawRequest(participant=ada.root.public.hex(), reason="left")
    assert attestors[0].attestation_service.withdraw(request).acts == []
    place.share()
    assert not ada.is_attested()
    with pytest.raises(NotFound, match="refuses no participant"):
        attestors[0].attestation_service.allow(AllowRequest(participant=ada.root.public.hex()))


BASE = "from autoresearch.ask.acts.attestor import AttestorExtension\nclass Broken(AttestorExtension):\n    "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (None, "no installed package registers broken in autoresearch.attestors"),
        ("import no_such_module", "can't be loaded: ModuleNotFoundError"),
        ("raise SystemExit(0)", "can't be loaded: SystemExit"),
        ("", "can't be loaded: AttributeError"),
        ("Broken = 3", "the extension broken makes no attestor"),
        ("def Broken(node): return 3", "the extension broken makes no attestor"),
        ("def Broken(node): 1 / 0", "the extension broken failed: ZeroDivisionError"),
        ("def Broken(node): raise SystemExit(1)", "the extension broken failed: SystemExit"),
        (BASE + "def keep(self): ...", "the extension broken failed: TypeError"),
        (BASE + "async def keep(self): raise KeyError('x')", "the extension broken failed: KeyError: 'x'"),
        (BASE + "async def answer(self, *_): 1 / 0", "the extension broken failed: ZeroDivisionError"),
        (BASE + "def answer(self, *_): return b''", "the extension broken failed: TypeError"),
    ],
)
async def test_a_broken_attestor_is_named_and_stops_nothing(
    place: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str | None, problem: str
) -> None:
    if module is not None:
        install(tmp_path, monkeypatch, module, "[autoresearch.attestors]\nbroken = my_package:Broken\n")
    house = place.houses["attestor-0"]
    open_with(house, "broken")
    await house.attestation_service.keep()
    answer = await place.houses["ada"].ask(ADDRESS)
    assert len(answer.awaited) == 2  # those of the others
    [condition] = house.attestation_service.conditions()
    assert problem in condition.sentence


@pytest.mark.parametrize("method", ["log", "withdraw", "allow", "close"])
def test_an_act_of_a_broken_attestor_is_a_sentence(
    place: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    module = BASE + f"def {method}(self, *_): 1 / 0"
    install(tmp_path, monkeypatch, module, "[autoresearch.attestors]\nbroken = my_package:Broken\n")
    house = place.houses["attestor-0"]
    open_with(house, "broken")
    service, key = house.attestation_service, "ab" * 32
    acts = {
        "log": service.log,
        "withdraw": lambda: service.withdraw(WithdrawRequest(participant=key, reason="")),
        "allow": lambda: service.allow(AllowRequest(participant=key)),
    }
    for name, act in acts.items():
        if name == method:
            with pytest.raises(AutoresearchError, match="the extension broken failed: ZeroDivisionError"):
                act()
