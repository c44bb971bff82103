"""The order of versions: Semantic Versioning, and what Python projects write beside it: 1.0rc1, 1.0.post1. Pure."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v?(?P<numbers>[0-9]+(?:\.[0-9]+)*)(?P<rest>.*)", re.DOTALL)
_PARTS = re.compile(r"[0-9]+|[a-z]+")
# Between the numbers and what follows them, so that 1.0rc1 < 1.0 < 1.0.post1 < 1.0.1.
_PRERELEASE, _FINAL = "!", "-"
_AFTER = "post"


def version_key(version: str) -> str:
    """A text that sorts as the versions do; empty, and so before all others, for what is no version."""
    found = _VERSION.fullmatch(version.lower())
    if found is None:
        return ""
    numbers = found["numbers"].split(".")
    while len(numbers) > 1 and not int(numbers[-1]):
        numbers.pop()
    key = "".join(f".{_number(digits)}" for digits in numbers)
    parts = _PARTS.findall(found["rest"].partition("+")[0])
    further = " ".join(f"0{_number(part)}" if part.isdigit() else f"1{part}" for part in parts)
    return f"{key}{_PRERELEASE if parts and parts[0] != _AFTER else _FINAL}{further}"


def is_prerelease(version: str) -> bool:
    """Whether a version says that it comes before a release: 1.0-beta, 2.0rc1."""
    return _PRERELEASE in version_key(version)


def _number(digits: str) -> str:
    """A number that sorts as text: the longer one is the larger one."""
    plain = digits.lstrip("0") or "0"
    return f"{len(plain):03d}{plain}"
