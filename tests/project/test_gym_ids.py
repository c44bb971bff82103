"""Ids of Gymnasium: what there is none of is refused with what is meant, and the rest asks for its packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import NotFound
from autoresearch.project.components import finding
from autoresearch.project.components.finding import find_offer, gym_offer, needed_packages, unchecked_id
from autoresearch.run.package_locks import has_packages


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("CartPole", "gym:CartPole-v1"),
        ("cartpole-v1", "gym:CartPole-v1"),
        ("CartPol-v1", "gym:CartPole-v1"),
        ("CartPole-v99", "gym:CartPole-v1"),
        ("Nowhere-v0", ""),
    ],
)
def test_an_id_that_gymnasium_lacks_is_refused_with_the_one_that_is_meant(
    tmp_path: Path, typed: str, meant: str
) -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(NotFound, match="has no environment") as error:
        find_offer("environment", f"gym:{typed}", tmp_path)

    assert error.value.hint
    assert error.value.hint.endswith(meant)


@pytest.mark.parametrize(
    ("typed", "name", "gym_id", "package"),
    [
        ("CartPole-v1", "cartpole", "CartPole-v1", None),
        ("LunarLander-v3", "lunarlander", "LunarLander-v3", "box2d"),
        ("Ant-v5", "ant", "Ant-v5", "mujoco"),
        ("ALE/Pong-v5", "pong", "ale_py:ALE/Pong-v5", "ale_py"),
        ("somewhere:Own-v0", "own", "somewhere:Own-v0", None),
    ],
)
def test_an_environment_asks_for_the_packages_of_its_group_where_they_are_not_here(
    tmp_path: Path, typed: str, name: str, gym_id: str, package: str | None
) -> None:
    offer = find_offer("environment", f"gym:{typed}", tmp_path)

    assert (offer.name, offer.parameters, offer.pins) == (name, {"id": gym_id}, {"source": f"gym:{typed}"})
    names = {line.partition("=")[0].rstrip("><!~") for line in offer.requirements}
    if package is None:
        assert not names
    elif not has_packages([package]):
        assert package in names
    assert not any(has_packages([line]) for line in offer.requirements)


def test_an_id_that_nobody_could_check_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium")
    reasons = [unchecked_id(gym_offer(each)) for each in ("CartPole-v1", "here:Own-v0", "ALE/Pong-v5")]
    assert reasons[0] == "" == unchecked_id(find_offer("policy", "random", tmp_path))
    assert reasons[1] == "here:Own-v0 is not checked: here, which has it, is not imported here"
    monkeypatch.setattr(finding, "find_spec", lambda _name: None)
    assert unchecked_id(gym_offer("Lunar-v3")) == "Lunar-v3 is not checked: Gymnasium is not here"


@pytest.mark.parametrize(
    ("gym_id", "has_more"), [("CartPole-v1", False), ("LunarLander-v3", True), ("Ant-v5", True), ("ALE/Pong-v5", True)]
)
def test_it_asks_for_the_same_packages_where_gymnasium_is_not_here(
    gym_id: str, has_more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    of_extra = {line for line in needed_packages(gym_id) if not line.startswith("packaging")}
    monkeypatch.setattr(finding, "find_spec", lambda _name: None)
    lines = needed_packages(gym_id)
    assert lines[0].startswith("gymnasium")
    assert set(lines[1:]) == of_extra
    assert bool(of_extra) == has_more
