"""The environment of a task's packages: made once on a machine, whole or not at all, shared by equal lists.

Packages may be installed that are one's own, or that a person allowed, or all.

Wheels are unpacked: nothing lands outside of the environment, nothing takes the place of Python there. What pip does
beside that is left out on purpose: scripts and their entry points, whose names strangers choose. Source: the binary
distribution format, https://packaging.python.org/en/latest/specifications/binary-distribution-format/.
"""

from __future__ import annotations

import hashlib
import io
import os
import shlex
import shutil
import stat
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import cache_from_source
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from autoresearch.errors import AutoresearchError, CannotRunHere, TimedOut, UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.context import is_own_task, own_keys
from autoresearch.paths import TOLD_CHARACTERS, Paths, archive_paths
from autoresearch.run.bench import Bench
from autoresearch.run.consent import is_allowed
from autoresearch.run.package_locks import call, pip
from autoresearch.run.sandbox import layout
from autoresearch.run.sandbox.scratch import Scratch, remove_tree, scratch_folder, sweep
from autoresearch.settings import Work
from autoresearch.task.loading import shipped_as
from autoresearch.task.model import Task
from autoresearch.task.needs import Package, lock_digest, program_packages, write_lock
from autoresearch.text import size

ALL = "all"


class PackagesNotAllowed(CannotRunHere):
    """What another participant wrote needs packages, and nobody allowed this machine to install them."""

    def __init__(self, name: str, count: int, *, hint: str) -> None:
        packages = f"{count} Python {'package' if count == 1 else 'packages'}"
        super().__init__(f"{name} needs {packages} that nobody allowed here", hint=hint)


def task_not_allowed(task: Task, option: str = "") -> PackagesNotAllowed:
    """The error for a task. ``option`` of the command in hand allows it."""
    hint = f"{option and f'{option}, or: '}autoresearch task allow {shlex.quote(str(task.folder))}"
    return PackagesNotAllowed(task.name, len(task.packages), hint=hint)


# The bytes that all environments together may take once a person allowed a list: no bound but that of a single list.
ALLOWED = 1 << 62


def may_install(task: Task, paths: Paths, work: Work, log: Log, device: bytes | None, now_ms: int) -> int:
    """The bytes that all environments may take when a task's packages are installed without asking again; 0: ask.

    A person allowed this list, or those of all tasks, or those of any task while the environments are smaller than
    ``work.packages_mib``. ``device`` is this node's key, None where it has none yet.
    """
    own = own_keys(log, device, now_ms) if device else frozenset[bytes]()
    return ALLOWED if is_own_task(log, task, own, shipped=shipped_as(task)) else _agreed(task.packages, paths, work)


def are_allowed(sources: Iterable[str], paths: Paths, work: Work) -> int:
    """The same of the packages that these programs bring; see :func:`may_install`."""
    return min((_agreed(each, paths, work) for each in map(brought_packages, sources) if each), default=ALLOWED)


def _agreed(packages: list[Package], paths: Paths, work: Work) -> int:
    if work.allow_packages == ALL or is_allowed(paths.allowed, lock_digest(packages)):
        return ALLOWED
    budget = work.packages_mib << 20
    return budget if budget and installed_bytes(paths.environments) < budget else 0


def installed_bytes(place: Path) -> int:
    """How much of the disk the environments take; a file that several share counts once."""
    files: dict[tuple[int, int], int] = {}
    for folder, _, names in os.walk(place):
        for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118 - of many thousand files
            with suppress(FileNotFoundError):  # what pip removes meanwhile
                entry = os.lstat(path)
                files[entry.st_dev, entry.st_ino] = entry.st_size
    return sum(files.values())


def brought_packages(source: str) -> list[Package]:
    """The packages that a program brings a list of; none of what is no program."""
    try:
        return program_packages(source)
    except UsageError:  # it has a fault, and its run says so
        return []


# Where the parts of a wheel's folder NAME-VERSION.data go; the others are left out.
_CODE = frozenset({"purelib", "platlib"})
_DATA = "data"
# What an environment has of its own.
_OF_PYTHON = frozenset({"bin", "include", "lib64", "pyvenv.cfg"})


# What one list may have, whoever allowed it: the largest frameworks with all that they need take some 10 GiB.
LIST_BYTES = 32 << 30
LIST_FILES = 400_000
# The directory of a wheel is read whole; that of the largest frameworks has 2 MiB.
_DIRECTORY_BYTES = 16 << 20
_COPY_BYTES = 1 << 20
_PLAIN = (0, stat.S_IFREG, stat.S_IFDIR)


def unpack(wheels: Sequence[Path], environment: Path, hashes: Collection[str], most: int = LIST_BYTES) -> None:
    """Unpack wheels, of ``most`` bytes together, after a look at all of them; their SHA-256, in hex, are in ``hashes``.

    Raises:
        CannotRunHere: one has another hash, is no wheel, or has an impossible file; or there are too many or too large.
    """
    files: list[tuple[Path, zipfile.ZipInfo, Path]] = []
    for wheel in wheels:
        with wheel.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() not in hashes:
                raise CannotRunHere(f"{wheel.name} has another hash than the lock says", hint="ask the task's author")
        with _opened(wheel) as archive:
            files += ((wheel, entry, target) for entry, target in _checked(archive, environment))
        if len(files) > LIST_FILES:
            raise CannotRunHere(f"the packages have more than {LIST_FILES:,} files", hint="ask the task's author")
    total = sum(entry.file_size for _, entry, _ in files)
    if total > most:
        sentence = f"the packages take {size(total)} when they are unpacked, and {size(most)} are allowed"
        hint = "autoresearch task allow TASK allows a list, up to " + size(LIST_BYTES)
        raise CannotRunHere(sentence, hint=hint)
    if total > shutil.disk_usage(environment).free:
        raise CannotRunHere(f"the disk is too full for packages of {size(total)}", hint="free some space")
    for wheel, group in groupby(files, key=itemgetter(0)):
        with _opened(wheel) as archive:
            for _, entry, target in group:
                _extract(archive, entry, target)


@contextmanager
def _opened(wheel: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with _Bounded(wheel) as file, zipfile.ZipFile(file) as archive:
            yield archive
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, zlib.error, EOFError) as error:
        raise CannotRunHere(f"{wheel.name} can't be unpacked: {error}", hint="ask the task's author") from error


class _Bounded(io.FileIO):
    """A file that gives nobody more than a directory of files may have in one piece."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(_DIRECTORY_BYTES + 1 if size is None or size < 0 else min(size, _DIRECTORY_BYTES + 1))
        if data is not None and len(data) > _DIRECTORY_BYTES:
            raise zipfile.BadZipFile("its list of files is too long")
        return data


def _checked(archive: zipfile.ZipFile, environment: Path) -> Iterator[tuple[zipfile.ZipInfo, Path]]:
    """The files that are unpacked, and where to. Raises ValueError for one that no wheel has."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]  # folders are made for their files
    paths = archive_paths(entry.orig_filename for entry in entries)
    for entry, path in zip(entries, paths, strict=True):
        name = entry.orig_filename[:TOLD_CHARACTERS]
        if stat.S_IFMT(entry.external_attr >> 16) not in _PLAIN or entry.flag_bits & 1:
            raise ValueError(f"{name!r} is a link, a device or encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is compressed in a way that no wheel has")
        if (target := _target(path, environment)) is not None:
            yield entry, target


def _target(path: PurePosixPath, environment: Path) -> Path | None:
    """Where a file of a wheel belongs; None: nowhere."""
    parts = path.parts
    if not parts[0].endswith(".data"):
        return layout.site_packages(environment).joinpath(*parts)
    kind, rest = parts[1:2], parts[2:]
    if not rest:
        return None
    if kind[0] in _CODE:
        return layout.site_packages(environment).joinpath(*rest)
    is_pythons = rest[0] in _OF_PYTHON or (rest[0] == "lib" and rest[1:2] and rest[1].startswith("python"))
    return environment.joinpath(*rest) if kind[0] == _DATA and not is_pythons else None


def _extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Write one file; what it takes is what the directory says, of which the sum was checked."""
    target.parent.mkdir(parents=True, exist_ok=True)
    left = entry.file_size
    with archive.open(entry) as source, target.open("wb") as copy:
        while piece := source.read(_COPY_BYTES):
            left -= copy.write(piece)
            if left < 0:
                raise ValueError(f"{entry.filename[:TOLD_CHARACTERS]!r} is longer than it says")
    runs = bool(entry.external_attr >> 16 & stat.S_IXUSR)
    target.chmod(0o755 if runs else 0o644)


INSTALL_SECONDS = 3600.0
# An environment that nobody used for so long is removed when the next one is made.
UNUSED_DAYS = 30
_LOCK_SECONDS = 0.2
_BASE = "autoresearch_base.pth"
# Folders of packages with the time of their last change, compiled as far as they are Python of this version.
_compiled: set[tuple[Path, int]] = set()
_COMPILE = "import compileall, sys; compileall.compile_dir(sys.argv[1], maxlevels=100, quiet=2, workers=0)"


def task_python(
    task: Task,
    place: Path,
    *,
    may_install: Callable[[], int],
    cancelled: Callable[[], bool] | None = None,
) -> layout.Interpreter | None:
    """The Python that runs a task's programs; None: the node's own. Its packages are installed if they are not here.

    ``may_install`` gives the bytes that all environments may take then, 0 for none: see the function of that name.

    Raises:
        PackagesNotAllowed: they have to be installed, and ``may_install`` says no.
        CannotRunHere: the task's venv is no environment, or a package can't be installed.
        TimedOut: installing took too long.
        AutoresearchError: it was cancelled.
    """
    if task.python is None:
        return None
    if task.python.venv:
        return layout.interpreter_in(Path(task.python.venv).expanduser())
    package_set = _of_task(task)
    most = 0 if package_set.is_installed(place) else may_install()
    if not most and not package_set.is_installed(place):
        raise task_not_allowed(task)
    return package_set.python(place, most, cancelled=cancelled)


def uncompiled_folders() -> list[Path]:
    """Folders of this Python's packages that were installed without being compiled, where that can be made up for."""
    folders = []
    for folder in layout.package_folders():
        if not os.access(folder, os.W_OK) or (folder, folder.stat().st_mtime_ns) in _compiled:
            continue
        sources = (*folder.glob("*.py"), *folder.glob("*/__init__.py"))
        if all(Path(cache_from_source(source)).exists() for source in sources):
            _compiled.add((folder, folder.stat().st_mtime_ns))
        else:
            folders.append(folder)
    return folders


def compile_libraries(folder: Path, *, cancelled: Callable[[], bool] | None = None) -> None:
    """Compile the packages in a folder; what is no Python of this version stays as it is.

    A run sees the folder and can't keep what it compiles there. Torch alone takes each process of it three seconds
    more, which a budget in seconds pays. Installers such as uv compile nothing, and pip has ``--no-compile``.

    Raises AutoresearchError where it was cancelled.
    """
    with suppress(CannotRunHere, TimedOut):  # then runs are slower
        command = [sys.executable, "-I", "-c", _COMPILE, str(folder)]
        call(command, f"{folder} can't be compiled", seconds=INSTALL_SECONDS, cancelled=cancelled)
    _compiled.add((folder, folder.stat().st_mtime_ns))


def program_python(source: str, bench: Bench) -> layout.Interpreter | None:
    """The Python that runs a program: the one with the packages that it brings, else that of its task.

    Raises:
        PackagesNotAllowed: they have to be installed, and nobody allowed it.
        CannotRunHere, TimedOut, AutoresearchError: as :func:`task_python`.
    """
    if not (packages := brought_packages(source)):
        return bench.python
    package_set = PackageSet("the program", packages, base=True)
    if bench.environments is None or not (bench.may_install or package_set.is_installed(bench.environments)):
        hint = "autoresearch work TASK --allow-packages, or: autoresearch node config set work.allow_packages all"
        raise PackagesNotAllowed(package_set.name, len(packages), hint=hint)
    return package_set.python(bench.environments, bench.may_install, cancelled=bench.cancelled)


def environment_folder(task: Task, place: Path) -> Path:
    """Where the environment of a task's packages is, or will be: another place for another Python."""
    return _of_task(task).folder(place)


def is_installed(task: Task, place: Path) -> bool:
    """Whether the environment of a task's packages is here."""
    return _of_task(task).is_installed(place)


@dataclass(frozen=True, slots=True)
class PackageSet:
    """Locked packages of something, by its name; with ``base`` they are beside the node's own."""

    name: str
    packages: list[Package]
    base: bool

    def folder(self, place: Path) -> Path:
        """Where their environment is, or will be: another place for another Python."""
        base = [str(folder) for folder in layout.package_folders()] if self.base else []
        text = repr((write_lock(self.packages), sys.version, base))
        return place / hashlib.sha256(text.encode()).hexdigest()

    def is_installed(self, place: Path) -> bool:
        """Whether their environment is here."""
        return self.folder(place).is_dir()

    def python(self, place: Path, most: int, *, cancelled: Callable[[], bool] | None = None) -> layout.Interpreter:
        """The Python that has them. They are installed if they are not here: all lists take ``most`` bytes then.

        Raises:
            CannotRunHere: one can't be installed.
            TimedOut: installing took too long.
            AutoresearchError: it was cancelled.
        """
        target = self.folder(place)
        if not target.is_dir():
            _install(self, target, most, cancelled)
        os.utime(target)  # it is in use
        return layout.made_interpreter(target, with_base=self.base)


def _of_task(task: Task) -> PackageSet:
    assert task.python is not None
    return PackageSet(task.name, task.packages, task.python.base)


def _install(packages: PackageSet, target: Path, most: int, cancelled: Callable[[], bool] | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Where a bound holds for all lists together, they are installed one after the other.
    in_turn = nullcontext() if most == ALLOWED else _alone(target.parent / "bounded", cancelled)
    with in_turn, _alone(target, cancelled):
        if target.is_dir():  # another process made it meanwhile
            return
        sweep(target.parent)
        _remove_unused(target.parent)
        with scratch_folder(target.parent) as scratch:
            left = LIST_BYTES if most == ALLOWED else min(most - installed_bytes(target.parent), LIST_BYTES)
            made = _made(packages, scratch, left, cancelled)
            made.rename(target)


def _made(packages: PackageSet, scratch: Scratch, most: int, cancelled: Callable[[], bool] | None) -> Path:
    """A new environment in a scratch folder, with ``most`` bytes of packages.

    pip brings the files, and this process unpacks them: a package can neither run nor write anything while it is
    installed. pip holds the folder's lock too: should this process be killed, no sweep takes the folder from under it.
    """
    made, wheels, requirements = (scratch.folder / name for name in ("made", "wheels", "requirements.txt"))
    requirements.write_text(write_lock(packages.packages))
    wheels.mkdir()

    def is_over() -> bool:
        if installed_bytes(scratch.folder) > 2 * most + made_bytes:  # pip copies what it has brought
            sentence = f"the packages of {packages.name} are larger than {size(max(most, 0))}, which is what is allowed"
            raise CannotRunHere(sentence, hint=f"autoresearch task allow TASK allows a list, up to {size(LIST_BYTES)}")
        return cancelled is not None and cancelled()

    words = ["--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--dest", str(wheels)]
    step = partial(
        call,
        what=f"the packages of {packages.name} can't be installed",
        seconds=INSTALL_SECONDS,
        cwd=scratch.folder,
        held=[scratch.lock],
    )
    step([sys.executable, "-I", "-m", "venv", "--without-pip", str(made)], cancelled=cancelled)
    made_bytes = installed_bytes(scratch.folder)
    # What pip has not whole yet lies there too, so that it is counted.
    step(pip("download", *words, "--requirement", str(requirements)), cancelled=is_over, temporary=scratch.folder)
    allowed = {digest for package in packages.packages for digest in package.hashes}
    unpack(sorted(wheels.iterdir()), made, allowed, most)
    # A run can't keep what it compiles. Files that are no Python of this version are no fault.
    step([sys.executable, "-I", "-c", _COMPILE, str(layout.site_packages(made))], cancelled=cancelled)
    for folder in (made, *made.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    if packages.base:
        (layout.site_packages(made) / _BASE).write_text("".join(f"{folder}\n" for folder in layout.package_folders()))
    return made


@contextmanager
def _alone(target: Path, cancelled: Callable[[], bool] | None) -> Iterator[None]:
    """Only one process makes an environment; the others wait for it."""
    deadline = time.monotonic() + INSTALL_SECONDS
    while True:
        try:
            with FileLock(f"{target}.lock", timeout=_LOCK_SECONDS):
                yield
                return
        except Timeout:
            if cancelled is not None and cancelled():
                raise AutoresearchError("installing packages was stopped on request") from None
            if time.monotonic() > deadline:
                sentence = "another process has been installing the same packages for too long"
                raise TimedOut(sentence, hint=f"is it stuck? {target}.lock") from None


def _remove_unused(place: Path) -> None:
    oldest = time.time() - UNUSED_DAYS * 86_400
    for folder in place.iterdir():
        if folder.is_dir() and len(folder.name) == 64 and folder.stat().st_mtime < oldest:
            remove_tree(folder)
