"""Runs on another machine by SSH. Their folders are carried over by SFTP; standard input is the leash.

Each run has a connection of its own. When that ends, with this process or with the network, the runner there stops and
leaves its outcome, which is fetched when the machine answers again. Keys and host names are those of ``~/.ssh``.
"""

from __future__ import annotations

import asyncio
import re
import stat
import threading
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from autoresearch.errors import CannotRunHere, Refused, TimedOut, install_command
from autoresearch.run.bench import MIB
from autoresearch.run.executors import MACHINE, SSH, EngineJob, Executor
from autoresearch.run.folder import (
    CHECKPOINT,
    EVENTS,
    LOG,
    MODEL,
    MOST_LOG_BYTES,
    MOST_OUTCOME_BYTES,
    OUTCOME,
    PARENT_MODEL,
    REQUEST,
    TAIL_BYTES,
    Fault,
    RunReply,
    is_begun,
    put,
    read_request,
    write_outcome,
)
from autoresearch.settings import ExecutorSection

try:
    import asyncssh
    from asyncssh import SFTPClient, SSHClientConnection, SSHClientProcess
except ModuleNotFoundError as error:
    raise CannotRunHere("runs by SSH need asyncssh", hint=install_command(SSH)) from error

# A machine that is away is given up after so long; one that answers no more, after three questions.
CONNECT_SECONDS, KEEPALIVE_SECONDS = 10, 5
# A short command, and the runner's word on its machine: it tests the sandbox.
COMMAND_SECONDS, ANSWER_SECONDS = 15, 60
# A key that stands in none of these is refused; nobody is asked, and nothing is added.
KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_RUNNER = re.compile(r"^\s*(\d+) .*-m autoresearch\.run (\S+)$")
T = TypeVar("T")


class Ssh(Executor):
    """The executor. ``python`` runs there, ``folder`` holds the runs: from ``/``, or below the home folder."""

    kind, has_host = SSH, True

    def __init__(self, settings: ExecutorSection, host: str) -> None:
        super().__init__(settings, host)
        self.host, self.python, self.folder = host, settings.python, settings.folder
        self._loop = asyncio.new_event_loop()
        self._main: SSHClientConnection | None = None
        self._leashes: dict[str, tuple[SSHClientConnection, SSHClientProcess[str]]] = {}
        threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True).start()

    def listed(self) -> dict[str, EngineJob]:
        """The runners of this user that are at work there in that folder, by one ``ps``."""
        return parse_processes(self._printed("ps xww -o pid=,args=", COMMAND_SECONDS), Path(self.folder))

    def start(self, folder: Path) -> None:
        """Carry the folder over and begin its run, unless that is at work. A run that was begun is not begun again."""
        if folder.name in self.listed():
            return
        remote = self._place(folder)
        command = f"exec {self.python} -P -m autoresearch.run {remote}"

        async def begin() -> None:
            connection = await self._connection()
            try:
                async with connection.start_sftp_client() as sftp:
                    await sftp.makedirs(remote, exist_ok=True)
                    names = [name for name in (MODEL, PARENT_MODEL, REQUEST) if (folder / name).exists()]
                    await sftp.put([folder / name for name in names], remote)
                self._leashes[folder.name] = (connection, await connection.create_process(command))
            except BaseException:
                connection.abort()
                raise

        self._wait_for(begin())

    def cancel(self, folder: Path) -> None:
        """Have the runner stop, which then leaves its outcome."""
        if runner := self.listed().get(folder.name):
            self._printed(f"kill {runner.native}; true", COMMAND_SECONDS)  # it may have ended meanwhile

    def collect(self, folder: Path) -> None:
        """Fetch the outcome and what belongs to it, and before there is one how far the run is."""
        most = read_request(folder).task.limits.disk_mib * MIB
        remote = self._place(folder)

        async def fetch(sftp: SFTPClient) -> None:
            if not await sftp.lexists(f"{remote}/{OUTCOME}"):
                await copied(sftp, f"{remote}/{EVENTS}", folder / EVENTS, MOST_LOG_BYTES, last=TAIL_BYTES)
                await self._look_at_leash(folder)
                return
            for name, bytes_ in ((LOG, MOST_LOG_BYTES), (CHECKPOINT, most)):
                await copied(sftp, f"{remote}/{name}", folder / name, bytes_)
            content = folder / f".{OUTCOME}"
            await copied(sftp, f"{remote}/{OUTCOME}", content, MOST_OUTCOME_BYTES)
            put(folder, OUTCOME, content.read_bytes() if content.exists() else b"")  # b"": it is no plain file
            content.unlink(missing_ok=True)

        self._by_sftp(fetch)

    async def _look_at_leash(self, folder: Path) -> None:
        """Write the outcome of a run that could not begin: the runner is not there, or reads no request of this."""
        _, runner = self._leashes.get(folder.name, (None, None))
        if runner is None or not runner.exit_status or is_begun(folder):
            return
        complaint = " ".join(str(await runner.stderr.read()).split())[-300:]
        fault = Fault(sentence=f"{self.host}: {complaint or f'the runner ended with {runner.exit_status}'}")
        write_outcome(folder, RunReply(run=folder.name, fault=fault))

    def forget(self, folder: Path) -> None:
        """Have the runner stop, where it is still there, and remove its folder."""
        self.cancel(folder)

        async def remove(sftp: SFTPClient) -> None:
            if leash := self._leashes.pop(folder.name, None):
                leash[0].abort()
            if await sftp.lexists(self._place(folder)):
                await sftp.rmtree(self._place(folder))

        self._by_sftp(remove)

    def printed_machine(self) -> str:
        """What the runner says of the machine."""
        try:
            return self._printed(f"{self.python} -P -m autoresearch.run {MACHINE}", ANSWER_SECONDS)
        except Refused as error:
            hint = "install this program there; its Python: autoresearch node config set executor.python PATH"
            raise Refused(str(error), hint=hint) from error

    def close(self) -> None:
        """Let go of all leashes; what waits for the machine ends at once."""
        for connection in (self._main, *(leash for leash, _ in self._leashes.values())):
            if connection is not None:
                self._loop.call_soon_threadsafe(connection.abort)

    def _place(self, folder: Path) -> str:
        return f"{self.folder}/{folder.name}"

    def _printed(self, command: str, seconds: float) -> str:
        """What a command there prints. Raises Refused where it fails, TimedOut where nobody says how it ended."""

        async def run(connection: SSHClientConnection) -> tuple[int, str, str]:
            done = await connection.run(command, check=False, timeout=seconds, errors="replace")
            if done.exit_status is None:
                raise ConnectionResetError("the connection broke")
            return done.exit_status, str(done.stdout), str(done.stderr)

        status, printed, complaint = self._with_connection(run)
        if status == 0:
            return printed
        raise Refused(f"{self.host}: {' '.join(complaint.split())[-300:] or f'{command} ended with {status}'}")

    def _by_sftp(self, act: Callable[[SFTPClient], Awaitable[T]]) -> T:
        async def run(connection: SSHClientConnection) -> T:
            async with connection.start_sftp_client() as sftp:
                return await act(sftp)

        return self._with_connection(run)

    def _with_connection(self, act: Callable[[SSHClientConnection], Awaitable[T]]) -> T:
        async def run() -> T:
            if self._main is None or self._main.is_closed():
                self._main = await self._connection()
            return await act(self._main)

        return self._wait_for(run())

    async def _connection(self) -> SSHClientConnection:
        user, _, host = self.host.rpartition("@")
        known_hosts = [str(path) for path in map(Path.expanduser, map(Path, KNOWN_HOSTS)) if path.is_file()]
        return await asyncssh.connect(
            host,
            username=user or (),
            known_hosts=known_hosts or b"",
            connect_timeout=CONNECT_SECONDS,
            login_timeout=CONNECT_SECONDS,
            keepalive_interval=KEEPALIVE_SECONDS,
        )

    def _wait_for(self, act: Coroutine[Any, Any, T]) -> T:
        """Wait for what is done in the loop of the connections. Raises what the machine's silence or refusal means."""
        try:
            return asyncio.run_coroutine_threadsafe(act, self._loop).result()
        except asyncssh.HostKeyNotVerifiable as error:
            sentence = f"the key of {self.host} is not the one in {KNOWN_HOSTS[0]}, or stands in none"
            raise Refused(sentence, hint=f"compare it with the machine's own: ssh {self.host}") from error
        except asyncssh.PermissionDenied as error:
            sentence = f"{self.host} accepts none of your keys"
            raise Refused(sentence, hint=f"this has to work without a password: ssh {self.host} true") from error
        except (TimeoutError, asyncssh.Error, OSError) as error:
            raise TimedOut(f"{self.host}: {error or type(error).__name__}") from error


async def copied(sftp: SFTPClient, source: str, target: Path, most: int, *, last: int | None = None) -> None:
    """Copy a plain file of at most so many bytes, or its ``last`` ones.

    Nothing is copied where it is missing, larger or something else.
    """
    if not await sftp.lexists(source):
        return
    attributes = await sftp.lstat(source)
    if not stat.S_ISREG(attributes.permissions or 0) or (attributes.size or 0) > most:
        return
    async with sftp.open(source, "rb") as file:
        await file.seek(max(0, (attributes.size or 0) - last) if last else 0)
        with target.open("wb") as copy:
            while (left := most - copy.tell()) > 0 and (chunk := await file.read(min(left, MIB))):
                assert isinstance(chunk, bytes), "the file was opened so"
                copy.write(chunk)


def parse_processes(printed: str, folder: Path) -> dict[str, EngineJob]:
    """The runners in a folder that ``ps`` lists, by run; of one and its children the first process is the one."""
    runners: dict[str, EngineJob] = {}
    for line in printed.splitlines():
        if (match := _RUNNER.match(line)) and Path(match[2]).parent == folder:
            runners.setdefault(Path(match[2]).name, EngineJob(native=match[1], state="running"))
    return runners
