"""A Slurm cluster of one node on this machine, in namespaces of its own: Debian's packages, started by this file.

``python -m tests.run.slurm.cluster MODULE WORDS…`` runs a module with that cluster around it. Nothing of it outlives
the command, and nothing of it is reachable from outside.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "munged", "unshare", "ip")
APART = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CONFIGURATION = """
ClusterName=lab
SlurmctldHost=lab1(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={D}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={D}/state
SlurmdSpoolDir={D}/spool
SlurmctldPidFile={D}/slurmctld.pid
SlurmdPidFile={D}/slurmd.pid
SlurmctldLogFile={D}/slurmctld.log
SlurmdLogFile={D}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,sched_min_interval=1000,batch_sched_delay=0,bf_interval=1
ReturnToService=2
SlurmdTimeout=10
KillWait=5
NodeName=lab1 NodeAddr=127.0.0.1 CPUs={CPUS} RealMemory={MIB} State=UNKNOWN
PartitionName=main Nodes=lab1 Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why there can be no cluster here; empty: there can."""
    if os.geteuid() != 0:
        return "the daemons of Slurm are started by root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if absent:
        return f"apt install slurm-wlm munge iproute2: there is no {', '.join(absent)}"
    tried = subprocess.run([*APART, "true"], capture_output=True, check=False)
    return "no namespaces can be made here" if tried.returncode else ""


def run_in_cluster(folder: Path, module: str, *arguments: str, seconds: float) -> str:
    """What a module prints that is run with a cluster around it; the cluster's files are in ``folder``."""
    around = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin", "SLURM_CONF": str(folder / "slurm.conf")}
    words = [*APART, sys.executable, "-m", __name__, str(folder), module, *arguments]
    printed = folder / "printed"
    with printed.open("w") as out:
        try:
            status = subprocess.run(words, stdout=out, stderr=out, timeout=seconds, check=False, env=around).returncode
        except subprocess.TimeoutExpired:
            status = -1
    logs = "".join(path.read_text()[-3000:] for path in folder.rglob("*.log")) if status else ""
    assert status == 0, "\n".join([logs, printed.read_text()])
    return printed.read_text()


def start(program: str) -> None:
    """Start ``slurmctld`` or ``slurmd``, which go into the background."""
    subprocess.run([program, *(["-N", "lab1"] if program == "slurmd" else [])], check=True)


def pid_of(program: str, folder: Path) -> int:
    """The process of a daemon."""
    return int((folder / f"{program}.pid").read_text())


def _build(folder: Path) -> None:
    """Everything that a cluster needs, inside of the namespaces."""
    # Without an address besides loopback's the C library resolves no names here.
    for words in ("link set lo up", "addr add 10.77.0.1/32 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    subprocess.run(["hostname", "lab1"], check=True)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    text = CONFIGURATION.format(D=folder, CPUS=os.cpu_count(), MIB=8000)
    (folder / "slurm.conf").write_text(text)
    munge = [
        f"--{name}={folder}/munge.{end}"
        for name, end in (
            ("key-file", "key"),
            ("socket", "sock"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        )
    ]
    subprocess.run(["munged", "--force", *munge], check=True)
    start("slurmctld")
    start("slurmd")
    deadline = time.monotonic() + 60
    while "idle" not in subprocess.run(["sinfo", "-h", "-o", "%t"], capture_output=True, text=True, check=False).stdout:
        assert time.monotonic() < deadline, "the cluster's node does not come up"
        time.sleep(0.2)


if __name__ == "__main__":
    _build(Path(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__")
