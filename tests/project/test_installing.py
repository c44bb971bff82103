"""Components put into a project and taken out again, from what ships, from files, and from a further source."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project, uninstall, use
from autoresearch.project.components.trusting import ComponentOffer
from autoresearch.project.model import load_project

CODE = b"from autoresearch import Policy\nclass Far(Policy):\n    def decide(self, observation):\n        return 1\n"


def far(version: str, **more: object) -> ComponentOffer:
    pins = {"source": "log", "release": "9f3c", "version": version}
    return ComponentOffer(
        type="policy", name="far", class_name="inner.far:Far", files={"inner/far.py": CODE}, pins=pins, **more
    )


def test_a_further_source_is_asked_for_names_that_do_not_ship_and_for_versions(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    requests: list[tuple[str, str, str]] = []

    def source(kind: str, name: str, version: str) -> ComponentOffer | None:
        requests.append((kind, name, version))
        return far(version or "2.0.0", parameters={"speed": "3"}) if name == "far" else None

    assert find_offer("policy", "q_table", tmp_path, sources=[source]).pins["source"] == "shipped"
    assert requests == []
    offer = find_offer("policy", "far", tmp_path, sources=[source])
    project = install(project, offer, default=True)
    component = project.component("policy")
    assert (component.pins["version"], component.settings["speed"].value) == ("2.0.0", "3")
    assert Path(component.file).read_bytes() == CODE
    ini = project.ini.read_text().replace("speed = 3", "speed = 5  # mine")
    project.ini.write_text(ini)
    project = install(
        load_project(tmp_path), find_offer("Policy", "far==1.0.0", tmp_path, sources=[source]), default=True
    )
    assert project.ini.read_text() == ini.replace("2.0.0", "1.0.0")
    for requirement in ("q_table==3", "ann/q_table"):
        with pytest.raises(NotFound):
            find_offer("policy", requirement, tmp_path, sources=[source])
    assert requests == [
        ("policy", "far", ""),
        ("policy", "far", "1.0.0"),
        ("policy", "q_table", "3"),
        ("policy", "ann/q_table", ""),
    ]


@pytest.mark.parametrize("name", ["../../agent.py", "/tmp/x.py", "a/../../b.py", ""])
def test_a_file_outside_of_the_components_folder_is_refused(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="outside of its folder"):
        install(
            project,
            ComponentOffer(type="policy", name="bad", class_name="b:B", files={"b.py": b"", name: b""}),
            default=True,
        )
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["..", "a/b", ".hidden", "a b", "x" * 65, "[x]", "default"])
def test_a_name_that_can_be_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_bytes(CODE)
    with pytest.raises(UsageError, match="can't be a component's name"):
        find_offer("policy", str(tmp_path / "mine.py"), tmp_path, name=name)


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/q.git",
        "https://127.0.0.1:1/q.git@v1",
        "git+https://example.org/q",
        "file:///srv/mine.py",
        "git@example.org:ann/q.git",
        "example.org/ann/q",
    ],
)
def test_an_address_leads_to_a_clone(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError, match="is an address, no name of a component") as caught:
        find_offer("policy", address, tmp_path)
    assert caught.value.hint == "git clone ADDRESS FOLDER, then autoresearch install policy ./FOLDER"


def test_a_component_of_ones_own_is_never_overwritten(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "mine.py").write_bytes(CODE)
    project = install(project, find_offer("policy", str(tmp_path / "mine.py"), tmp_path, name="far"), default=True)
    with pytest.raises(Refused, match="is a component of your own"):
        install(project, far("1.0.0"), default=True)
    project = uninstall(project, "policy", "far")
    assert (tmp_path / "mine.py").read_bytes() == CODE
    assert project.defaults["policy"] == "random"


def test_taking_a_component_out_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project = install(project, find_offer("policy", "q_table", tmp_path), default=True)
    before = project.ini.read_text()
    project = install(project, far("1.0.0"), default=False)
    project = use(project, "policy", "far")
    project = use(project, "policy", "q_table")
    project = uninstall(project, "policy", "far")
    assert project.ini.read_text() == before
    assert not (tmp_path / ".autoresearch/components/policy/far").exists()


def test_the_class_is_found_without_running_the_file(tmp_path: Path) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "raise SystemExit\nclass One:\n    def decide(self, o): ...\nclass Two:\n    def train(self, p): ...\n"
    )
    assert find_offer("policy", str(file), tmp_path).class_name == "two:One"
    assert find_offer("trainer", str(file), tmp_path).name == "two"
    with pytest.raises(UsageError, match="does not say which class is the environment: One, Two"):
        find_offer("environment", str(file), tmp_path)
    assert find_offer("environment", str(file), tmp_path, class_name="Two").class_name == "two:Two"
    file.write_text("class (")
    with pytest.raises(UsageError, match=r"two\.py, line 1"):
        find_offer("policy", str(file), tmp_path)
