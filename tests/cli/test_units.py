"""The node as a service: its unit, by systemd's own checker, and a daemon that a manager starts and watches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from autoresearch_cli.acts.units import Unit, install, is_installed, systemd_unit, uninstall

from autoresearch.errors import NotFound, Refused, UsageError
from tests.cli.conftest import Process

ODD = '/srv/a "quoted" 100% $HOME\\here'
# Notes what it is asked; starts the daemon as systemd would: by the unit's command and variables, with a socket.
SYSTEMCTL = """\
import os, shlex, signal, subprocess, sys
from contextlib import suppress
from pathlib import Path
words, folder = [word for word in sys.argv[1:] if word != "--user"], Path({folder!r})
with (folder / "asked").open("a") as asked:
    print(*words, file=asked)
pid = folder / "pid"
if words[0] == "restart":
    text = (Path(os.environ["XDG_CONFIG_HOME"]) / "systemd/user" / words[1]).read_text().splitlines()
    given = dict(shlex.split(line[12:])[0].split("=", 1) for line in text if line.startswith("Environment="))
    command = shlex.split(next(line[10:] for line in text if line.startswith("ExecStart=")))
    given |= {{"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": "1000000"}}
    given["PYTHONPATH"] = os.environ["PYTHONPATH"]
    quiet = subprocess.DEVNULL
    pid.write_text(str(subprocess.Popen(command, env=given, start_new_session=True, stdout=quiet, stderr=quiet).pid))
elif words[0] == "disable" and pid.exists():
    os.kill(int(pid.read_text()), signal.SIGTERM)
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": os.defpath, "XDG_CONFIG_HOME": str(folder / "config"), **more}


@pytest.mark.parametrize("system", [False, True])
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="apt install systemd")
def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path, *, system: bool) -> None:
    unit = systemd_unit(environment(tmp_path, AUTORESEARCH_HOME=ODD), user="root", system=system)
    file = tmp_path / "autoresearch.service"
    file.write_text(unit.text)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    words = ["systemd-analyze", *([] if system else ["--user"]), "verify", str(file)]
    local = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    done = subprocess.run(words, env=local, capture_output=True, text=True, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "autoresearch" in line]
    assert (done.returncode, ours) == (0, [])


def test_a_unit_of_another_home_stays_and_what_goes_wrong_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unit(home: str) -> Unit:
        return systemd_unit(environment(tmp_path, AUTORESEARCH_HOME=home), user="ann", system=False)

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused, match="no systemctl on this machine") as refused:  # as on a Mac
        install(unit("/srv/one"))
    assert "autoresearch up" in refused.value.hint
    with pytest.raises(NotFound, match="not installed"):
        uninstall(unit("/srv/one"))
    message = tmp_path / "systemctl"
    message.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    message.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    with pytest.raises(Refused, match="daemon-reload: Failed to connect to bus"):
        install(unit("/srv/one"))
    assert is_installed(unit("/srv/one"))
    with pytest.raises(Refused, match="another home: /srv/one"):
        install(unit("/srv/two"))
    with pytest.raises(UsageError, match="control character"):
        unit("/srv/\nExecStart=/bin/sh")


@pytest.mark.slow
def test_a_manager_starts_the_node_and_hears_that_it_is_ready_and_alive(
    tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "systemctl"
    fake.write_text(f"#!{sys.executable}\n{SYSTEMCTL.format(folder=str(tmp_path))}")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        done = process("node", "install")
        assert (done.returncode, "the daemon runs" in done.stderr) == (0, True), done.stderr
        first, *lines = manager.recv(4096).decode().splitlines()
        assert first == "READY=1"
        assert "WATCHDOG=1" in lines
        assert any(line.startswith("STATUS=") and len(line) > len("STATUS=") for line in lines)
        assert "WATCHDOG=1" in manager.recv(4096).decode()
        assert "inside the service programs run at the sandbox level" in done.stderr
        daemon = json.loads(process("status", "--json").stdout)["pid"]
        os.kill(daemon, signal.SIGSTOP)
        manager.setblocking(False)
        with suppress(BlockingIOError):
            while manager.recv(4096):
                pass
        manager.settimeout(3)
        with pytest.raises(TimeoutError):  # systemd would start it again: it hears nothing for its second
            manager.recv(4096)
        os.kill(daemon, signal.SIGCONT)
        manager.settimeout(60)
        assert "WATCHDOG=1" in manager.recv(4096).decode()
        assert process("down").returncode == 0
        assert process("up").returncode == 0
        assert process("node", "uninstall").returncode == 0
    requests = (tmp_path / "asked").read_text().splitlines()
    name = "autoresearch.service"
    assert requests == [
        "daemon-reload",
        f"enable {name}",
        f"restart {name}",
        f"restart {name}",
        f"disable --now {name}",
    ]
    assert not (tmp_path / "config/systemd/user" / name).exists()
    assert process("node", "uninstall").returncode == 4
