"""Landlock: what the kernel offers and which paths a run may see. The launcher makes the system calls.

Source: Linux ``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET = 444
_VERSION_FLAG = 1

MINIMAL_ABI = 6
"""Linux 6.12: from here on signals and abstract local sockets stay within the run."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_FILE_RIGHTS = (1 << 16) - 1
_ALL_NETWORK_RIGHTS = 3
_ALL_SCOPES = 3
_MAKE_DEVICES = (1 << 6) | (1 << 11)  # MAKE_CHAR, MAKE_BLOCK

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = _ALL_FILE_RIGHTS & ~_IOCTL_DEV & ~_MAKE_DEVICES
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

HANDLED = (_ALL_FILE_RIGHTS, _ALL_NETWORK_RIGHTS, _ALL_SCOPES)
"""Everything that ABI 6 can forbid: file rights, TCP bind and connect, abstract sockets and signals."""


def abi_version() -> int:
    """The kernel's landlock version, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, int(syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def rules(read: Iterable[Path], write: Iterable[Path], devices: Iterable[Path]) -> list[tuple[str, int]]:
    """Path and access rights for each path that exists; a file gets only the rights that files have."""
    wanted = ((read, READ), (write, WRITE), (devices, DEVICE))
    return [
        (str(path), access if path.is_dir() else access & _FILE_ONLY)
        for paths, access in wanted
        for path in paths
        if path.exists()
    ]
