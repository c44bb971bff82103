"""OpenSSH's server on loopback, and a home folder whose ``ssh lab`` reaches it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.daemon.daemons import kill, wait_for

SERVER = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
MISSING = "" if SERVER and shutil.which("ssh-keygen") else "apt install openssh-server"


@dataclass
class Sshd:
    """The server. What is started through it has ``AUTORESEARCH_HOME`` in ``remote_home``; ``home`` is the client's."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home, self.remote_home = self.folder / "home", self.folder / "there"
        (self.home / ".ssh").mkdir(parents=True, mode=0o700)
        self.remote_home.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        for name in (self.folder / "host", self.home / ".ssh" / "id_ed25519"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], check=True)
        (self.home / ".ssh" / "config").write_text(
            f"Host lab\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n"
        )
        self.trust((self.folder / "host.pub").read_text())
        (self.folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\n"
            f"HostKey {self.folder}/host\n"
            f"AuthorizedKeysFile {self.home}/.ssh/id_ed25519.pub\n"
            f"SetEnv AUTORESEARCH_HOME={self.remote_home}\n"
            "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password\n"
            "Subsystem sftp internal-sftp\nMaxStartups 100\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)

    def trust(self, key: str) -> None:
        """Note a key as the server's."""
        (self.home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")

    def start(self) -> Sshd:
        assert SERVER
        log = (self.folder / "sshd.log").open("ab")
        self.process = subprocess.Popen([SERVER, "-D", "-e", "-f", self.folder / "sshd_config"], stderr=log)
        wait_for(self._listens)
        return self

    def _listens(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def connections(self) -> list[psutil.Process]:
        """The processes that serve one connection each."""
        assert self.process
        return psutil.Process(self.process.pid).children()

    def kill(self) -> None:
        """End the server and all its connections, as a machine does that goes off."""
        assert self.process
        for process in (*self.connections(), psutil.Process(self.process.pid)):
            kill(process)
        self.process.wait()
