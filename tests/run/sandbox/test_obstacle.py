"""Why there is no sandbox, and what helps: one cause for what was read, and no remedy that opens the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from autoresearch_cli.acts.checks import check_sandbox

from autoresearch.errors import Refused
from autoresearch.run.sandbox import obstacle as module
from autoresearch.run.sandbox.execute import permit
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.obstacle import Readings, find_obstacle, obstacle

UBUNTU = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
MAP = "bwrap: setting up uid map: Permission denied"
DEBIAN = (
    "bwrap: No permissions to creating new namespace, likely because the kernel does not allow non-privileged user "
    "namespaces. On e.g. debian this can be enabled with 'sysctl kernel.unprivileged_userns_clone=1'."
)
FULL = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
CONTAINER = "bwrap: Creating new namespace failed: Operation not permitted"
NO_PROC = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
OLD = "bwrap: Unknown option --disable-userns"
SETUID = "bwrap: --disable-userns doesn't work with a setuid version of bubblewrap"
LOADED = "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict"
COPIED = "sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/"


def _read(message: str, **more: object) -> Readings:
    return Readings(program="/usr/bin/bwrap", message=message, max_user_namespaces="63000", **more)  # type: ignore[arg-type]


CASES: dict[str, tuple[Readings, str, str]] = {
    "ubuntu 24.04": (_read(UBUNTU, apparmor="1"), "AppArmor takes", COPIED),
    "ubuntu, uid map": (_read(MAP, apparmor="1"), "AppArmor takes", "sudo apt install apparmor-profiles"),
    "ubuntu, no mount of proc": (_read(NO_PROC, apparmor="1"), "AppArmor takes", COPIED),
    "ubuntu, profile not loaded": (_read(UBUNTU, apparmor="1", has_profile=True), "AppArmor takes", LOADED),
    "ubuntu, another bubblewrap": (
        Readings(program="/opt/conda/bin/bwrap", message=UBUNTU, apparmor="1"),
        "AppArmor takes",
        "/usr/bin/bwrap alone",
    ),
    "ubuntu, switched off": (_read(UBUNTU, apparmor="0"), "is installed and fails", "issues"),
    "ubuntu, root": (_read(UBUNTU, apparmor="1", is_root=True), "is installed and fails", "issues"),
    "ubuntu, nothing installed": (Readings(apparmor="1"), "is not installed", COPIED),
    "ubuntu, old": (_read(OLD, apparmor="1"), "too old", "0.8.0"),
    "ubuntu, no namespaces at all": (
        Readings(program="/usr/bin/bwrap", message=FULL, apparmor="1", max_user_namespaces="0"),
        "user.max_user_namespaces is 0",
        "administrator",
    ),
    "nothing installed": (Readings(), "is not installed", "sudo apt install bubblewrap"),
    "fedora, nothing installed": (Readings(installer="dnf"), "is not installed", "sudo dnf install bubblewrap"),
    "a mac": (Readings(system="darwin"), "sandbox of Linux only", "--executor ssh"),
    "windows": (Readings(system="win32"), "sandbox of Linux only", "WSL2"),
    "debian": (_read(DEBIAN, userns_clone="0"), "kernel.unprivileged_userns_clone is 0", "administrator"),
    "debian, root": (_read(DEBIAN, userns_clone="0", is_root=True), "is installed and fails", "issues"),
    "a hardened machine": (
        Readings(program="/usr/bin/bwrap", message=FULL, max_user_namespaces="0"),
        "user.max_user_namespaces is 0",
        "Apptainer",
    ),
    "all used up": (_read(FULL), "is installed and fails", "issues"),
    "docker": (_read(CONTAINER, is_container=True, is_root=True), "this container", "seccomp=unconfined"),
    "docker on ubuntu": (_read(NO_PROC, is_container=True, apparmor="1"), "this container", "apparmor=unconfined"),
    "setuid": (_read(SETUID), "setuid", "sudo chmod u-s /usr/bin/bwrap"),
    "no library": (_read("bwrap: error while loading shared libraries: libcap.so.2"), "installed and fails", "issues"),
    "no word": (_read("it ended with status 1"), "is installed and fails: “it ended with status 1”", "issues"),
    "it starts": (_read(""), "an attack on the sandbox got through", "node doctor"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_cause_and_its_remedy(case: str) -> None:
    machine, cause, remedy = CASES[case]
    answer = obstacle(machine)
    assert cause in answer.cause
    assert remedy in answer.remedy
    assert machine.message in answer.cause
    is_absent = machine.system == "linux" and not machine.program
    assert ("install bubblewrap" in answer.remedy) == (is_absent or "conda" in machine.program or "too old" in cause)
    assert "apt" not in answer.remedy or machine.installer == "apt"


@pytest.mark.parametrize("case", CASES)
def test_no_remedy_opens_the_host(case: str) -> None:
    remedy = obstacle(CASES[case][0]).remedy
    for word in ("sysctl", "apparmor_restrict", "aa-disable", "aa-teardown", "systemctl", "userns_clone"):
        assert word not in remedy


@pytest.fixture
def ubuntu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose AppArmor is as on Ubuntu 24.04, and an ordinary user of it."""
    setting = tmp_path / "proc/kernel/apparmor_restrict_unprivileged_userns"
    setting.parent.mkdir(parents=True)
    setting.write_text("1\n")
    program = tmp_path / "bin/bwrap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'a word before' >&2\necho '{UBUNTU}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setattr(module, "PROC", tmp_path / "proc")
    monkeypatch.setattr(module, "PROFILE", tmp_path / "profile")
    monkeypatch.setattr(module, "_IN_CONTAINER", ())
    monkeypatch.setattr(module, "_SYSTEM", str(program))
    monkeypatch.delenv("container", raising=False)
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    return program


def test_what_the_machine_says_decides(ubuntu: Path) -> None:
    cause, remedy = find_obstacle()
    assert UBUNTU in cause
    assert "AppArmor" in cause
    assert "apparmor_parser -r" in remedy


def test_a_refusal_says_it(ubuntu: Path) -> None:
    with pytest.raises(Refused) as caught:
        permit(Level.NONE, foreign=True)
    assert UBUNTU in str(caught.value)
    assert "it allows bubblewrap alone" in caught.value.hint
    assert "install bubblewrap" not in caught.value.hint


def test_the_doctor_says_it(ubuntu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    for level in (Level.NONE, Level.LANDLOCK):
        check = check_sandbox(level, ())
        assert check.result != "ok"
        assert UBUNTU in check.detail
        assert "it allows bubblewrap alone" in check.fix


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "it ended with status 3"),
        ("printf 'bwrap: \\033[31mred\\n' >&2; exit 1", "bwrap: "),
        ("kill -9 $$", "it ended with status -9"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "xxx"),
        ("echo out; exit 1", "it ended with status 1"),
    ],
)
def test_any_bubblewrap_is_quoted_within_bounds(ubuntu: Path, script: str, message: str) -> None:
    ubuntu.write_text(f"#!/bin/sh\n{script}\n")
    cause = find_obstacle().cause
    assert message in cause
    assert "\033" not in cause
    assert len(cause) < 400
