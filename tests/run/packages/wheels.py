"""Tiny packages in a folder, as pip reads them: wheels, and an archive of sources that says so when it is built."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path, name: str, version: str, code: str, *requires: str, further: Mapping[str, str] | None = None
) -> Path:
    """A wheel with one module and ``further`` files by their path; the same arguments give the same bytes."""
    about = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    files = {
        f"{name}.py": code,
        **(further or {}),
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{about}/RECORD"] = "".join(map(_recorded, files, files.values())) + f"{about}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return place


def write_sources(folder: Path, name: str, version: str, built: Path) -> Path:
    """An archive of sources; whoever builds it, or only asks it for its name, makes the file ``built``."""
    setup = f"open({str(built)!r}, 'w')\nfrom setuptools import setup\nsetup(name={name!r}, version={version!r})\n"
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        entry = tarfile.TarInfo(f"{name}-{version}/setup.py")
        entry.size = len(setup)
        archive.addfile(entry, io.BytesIO(setup.encode()))
    return place


def _recorded(path: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(text)}\n"
