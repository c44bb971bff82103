"""What of this machine a run may see, and the environment it starts with.

Also of another Python than the node's own: where it is, what of it a run has to see, which packages it has.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from autoresearch.errors import CannotRunHere
from autoresearch.run.sandbox.cards import Card, libraries

SYSTEM_FOLDERS = tuple(map(Path, ("/usr", "/nix/store")))
SYSTEM_LINKS = tuple(map(Path, ("/lib", "/lib32", "/lib64", "/bin", "/sbin")))
SYSTEM_FILES = tuple(
    map(Path, ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"))
)
_PROC_SHOWN = frozenset({"cpuinfo", "meminfo", "filesystems", "mounts", "net", "self", "sys", "thread-self"})
PROC_OF_CARDS = frozenset({"devices", "driver", "modules"})
"""What CUDA's driver reads in ``/proc``."""
CARD_FOLDERS = tuple(
    map(Path, ("/sys/devices/system", *(f"/sys/module/nvidia{part}" for part in ("", "_uvm", "_drm", "_modeset"))))
)
"""What CUDA's driver reads in ``/sys``, besides the card's own folder there."""
IDENTITIES = tuple(
    map(
        Path,
        (
            "/proc/sys/kernel/random/boot_id",
            "/proc/sys/kernel/hostname",
            "/proc/stat",
            "/proc/cmdline",
            "/etc/machine-id",
            "/etc/hostname",
            "/var/lib/dbus/machine-id",
            "/sys/class/dmi/id/product_uuid",
        ),
    )
)
SEARCHED = f"{Path(sys.executable).parent}:/usr/bin:/bin"
"""Where a run finds programs by their name: first those beside this Python."""
_THREAD_VARIABLES = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "VECLIB_MAXIMUM", "RAYON", "NUMBA")


def interpreter_folders() -> tuple[Path, ...]:
    """The folders that ``sys.executable`` needs with its site-packages, without those that lie in another one."""
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    return outermost((*map(Path, prefixes), *linked_folders(sys.executable), *package_folders()))


def package_folders() -> tuple[Path, ...]:
    """The folders that hold the packages of this process's Python."""
    return tuple(Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))


def linked_folders(executable: str) -> tuple[Path, ...]:
    """The folders above ``bin`` of a Python and of each file that it is a link to."""
    return tuple(Path(link).parent.parent for link in _link_chain(executable))


def home() -> Path:
    """The home folder, or a path that doesn't exist for a user without one."""
    return Path(os.path.expanduser("~")).absolute()  # noqa: PTH111  (Path.home raises where there is none)


def outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """The existing folders that lie neither in the system's nor in another of them; never a home itself."""
    forbidden = {Path("/"), home(), *home().parents}
    outer: list[Path] = []
    for folder in sorted({f for f in folders if f.is_dir()} - forbidden):
        if not any(folder.is_relative_to(other) for other in (*SYSTEM_FOLDERS, *SYSTEM_LINKS, *outer)):
            outer.append(folder)
    return tuple(outer)


def identifiers(*, host: bool) -> dict[str, str]:
    """What tells this machine from others, by what it is called; its host name too, if ``host``."""
    identities = {"boot id": _content("/proc/sys/kernel/random/boot_id"), "machine id": _content("/etc/machine-id")}
    identities["time of the boot"] = next((line for line in _content("/proc/stat").splitlines() if "btime" in line), "")
    if host:
        identities["host name"] = os.uname().nodename
    return {name: value for name, value in identities.items() if value}


def _content(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def hidden_in_proc(card: Card | None) -> list[Path]:
    """What of ``/proc`` tells of the machine and its other programs rather than of the run: clocks, counters, ids."""
    visible = _PROC_SHOWN | (PROC_OF_CARDS if card else set())
    hidden = (path for path in Path("/proc").iterdir() if not path.name.isdigit() and path.name not in visible)
    return [*sorted(hidden), *(path for path in IDENTITIES if path.name == "boot_id" and path.exists())]


def _link_chain(executable: str) -> list[str]:
    chain = [executable]
    while Path(chain[-1]).is_symlink() and len(chain) < 16:
        target = Path(chain[-1]).readlink()
        chain.append(os.path.normpath(Path(chain[-1]).parent / target))
    return chain


def environment(*, home: str, threads: int, card: Card | None) -> dict[str, str]:
    """The whole environment of a run, apart from the harness's own variables. Nothing is inherited."""
    variables = {
        "PATH": SEARCHED,
        "HOME": home,
        "TMPDIR": home,
        "USER": "nobody",
        "LOGNAME": "nobody",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": "0",
        "TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor",
        "TRITON_CACHE_DIR": f"{home}/triton",
    }
    variables |= {f"{name}_NUM_THREADS": str(threads) for name in _THREAD_VARIABLES}
    if card is not None:
        variables |= {"CUDA_VISIBLE_DEVICES": card.uuid, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        variables["CUDA_CACHE_PATH"] = f"{home}/cuda"
        if folders := libraries():
            variables["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
    else:
        variables["CUDA_VISIBLE_DEVICES"] = ""
    return variables


_CONFIGURED = re.compile(r"^\s*(home|version|version_info)\s*=\s*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}(?:\.\d{1,3}(?:(?:a|b|rc)\d{1,3})?)?")
_OF_HEADER = re.compile(r'^#define\s+PY_VERSION\s+"(.{1,32}?)"', re.MULTILINE)
_READ_BYTES = 65_536
_VERSION_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python environment: its program, its version, the ``folders`` that it needs, those that hold packages."""

    executable: Path
    version: str
    folders: tuple[Path, ...]
    packages: tuple[Path, ...]

    def version_of(self, package: str) -> str | None:
        """The version of an installed package as it says itself, or None."""
        for distribution in distributions(name=package, path=[str(folder) for folder in self.packages]):
            return "".join(filter(str.isprintable, distribution.version or ""))[:_VERSION_CHARACTERS]
        return None


def interpreter_in(environment: Path) -> Interpreter:
    """The Python of an environment that a person made: a venv of any tool, a conda environment, a Python itself.

    It is read and not started: a folder may be a stranger's, and so what it calls a Python.

    Raises:
        CannotRunHere: there is none, or it leads to something that is no Python.
    """
    executable = environment / "bin" / "python"
    if not executable.exists():
        raise CannotRunHere(
            f"{environment} is no Python environment: it has no bin/python",
            hint="make it (python -m venv PATH), or correct venv under [python] in task.toml",
        )
    configured = {name.lower(): text for name, text in _CONFIGURED.findall(_beginning(environment / "pyvenv.cfg"))}
    bases = [Path(configured["home"]).parent] if configured.get("home") else []
    bases += [folder for folder in linked_folders(str(executable)) if folder != environment]
    # Links such as /usr/bin/python -> /etc/alternatives/python are shown to every run.
    bases = [folder for folder in bases if not any(map((folder / "bin").is_relative_to, SYSTEM_FOLDERS + SYSTEM_LINKS))]
    bases = [folder for folder in bases if folder != Path("/etc")] or ([] if bases or configured else [environment])
    for folder in bases:
        if not folder.is_absolute() or not _is_python(folder):
            raise CannotRunHere(
                f"{environment} leads to {folder}, which is no Python", hint=f"make {environment} anew: it is not used"
            )
    version = _version_in(environment, [*bases, Path("/usr")], configured)
    if not version:
        raise CannotRunHere(f"{environment} is no Python environment: it has no version", hint="make it anew")
    packages = tuple(sorted(environment.glob("lib/python*/site-packages")))
    return Interpreter(executable, version, outermost((environment, *bases)), packages)


def _is_python(folder: Path) -> bool:
    """Whether a folder holds a whole Python, with its library; a link to it is as good."""
    libraries = (*folder.glob("lib/python3.*/os.py"), *folder.glob("lib64/python3.*/os.py"))
    return bool(libraries) and any(folder.glob("bin/python3*"))


def _version_in(environment: Path, bases: Sequence[Path], configured: Mapping[str, str]) -> str:
    """The version of an environment's Python as files say it, the most exact first; empty where none does."""
    libraries = [path.name.removeprefix("python") for path in sorted(environment.glob("lib/python3.*"))]
    stated = [configured.get("version_info", ""), configured.get("version", "")]
    minor = next((match[0] for text in (*libraries, *stated) if (match := re.match(r"\d+\.\d+", text))), "3.*")
    headers = [file for base in bases for file in sorted(base.glob(f"include/python{minor}/patchlevel.h"))]
    exact = [match[1] for file in headers[:1] if (match := _OF_HEADER.search(_beginning(file)))]
    conda = [path.name.removeprefix("python-") for path in sorted(environment.glob("conda-meta/python-3*.json"))]
    texts = (*exact, *conda, *stated, *libraries)
    return next((match[0] for text in texts if (match := _VERSION.match(text))), "")


def _beginning(path: Path) -> str:
    """The beginning of a small file of text; empty where there is none."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def made_interpreter(environment: Path, *, with_base: bool) -> Interpreter:
    """The Python of an environment that was made here of strangers' packages; ``with_base``: beside the node's own.

    Nothing in there is started, read or followed to learn where Python is: a package may have put it there.
    """
    base = getattr(sys, "_base_executable", sys.executable)
    needed = (environment, Path(sys.base_prefix), Path(sys.base_exec_prefix), *linked_folders(base))
    packages: tuple[Path, ...] = (site_packages(environment),)
    if with_base:
        needed, packages = (*needed, *interpreter_folders()), (*packages, *package_folders())
    return Interpreter(environment / "bin" / "python", platform.python_version(), outermost(needed), packages)


def seeing(own: Interpreter | None, others: Sequence[Interpreter]) -> Interpreter | None:
    """A Python whose run sees others, too, and may start them; ``own`` None: the node's own."""
    if not others:
        return own
    folders, packages = interpreter_folders(), package_folders()
    own = own or Interpreter(Path(sys.executable), platform.python_version(), folders, packages)
    return replace(own, folders=outermost((*own.folders, *(each for other in others for each in other.folders))))


def site_packages(environment: Path) -> Path:
    """Where an environment of the node's own Python version keeps its packages."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def launcher_python(own: Interpreter | None) -> str:
    """The Python that starts the launcher inside: beside another one, the node's without the node's packages."""
    return sys.executable if own is None else str(Path(sys.executable).resolve())


def shown_folders(own: Interpreter | None) -> tuple[Path, ...]:
    """The folders of Python that a run sees."""
    if own is None:
        return interpreter_folders()
    base = (sys.base_prefix, sys.base_exec_prefix, Path(sys.executable).resolve().parent.parent)
    return outermost((*(Path(folder) for folder in base), *own.folders))
