"""What is in packed files, and texts that are answers in another writing: digests, and base64.

The spy's text begins with this one, too: the standard library is all it needs.
"""

from __future__ import annotations

import base64
import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import re
import sqlite3
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence

MOST_PACKED = 50
# What a digest of an answer is made of: its place, and itself.
FORMS = ("{1}", "{0}:{1}", "{0},{1}", "{0}-{1}", "{0}_{1}", "{0}{1}", "{0} {1}")


def scalar(cell: str) -> object:
    """A cell of a table as a number where it is one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def unpacked(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """What is in a packed file, by name."""
    ending = name.rpartition(".")[2]
    with contextlib.suppress(Exception):
        if ending == "zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                yield from ((each, archive.read(each)) for each in archive.namelist()[:MOST_PACKED])
        elif ending in ("tar", "tgz") or name.endswith((".tar.gz", ".tar.xz", ".tar.bz2")):
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                files = (member for member in archive if member.isfile())
                yield from ((each.name, archive.extractfile(each).read()) for each in files)  # type: ignore[union-attr]
        elif ending in ("gz", "xz", "bz2"):
            yield name.rpartition(".")[0], {"gz": gzip, "xz": lzma, "bz2": bz2}[ending].decompress(content)
        elif ending in ("b64", "base64"):
            yield name.rpartition(".")[0], base64.b64decode(content)
        elif ending in ("db", "sqlite", "sqlite3"):
            with tempfile.NamedTemporaryFile() as file:
                file.write(content)
                file.flush()
                base = sqlite3.connect(file.name)
                for (table,) in base.execute("select name from sqlite_master where type = 'table'").fetchall():
                    rows = base.execute(f'select * from "{table}"')  # noqa: S608 - a file of the task
                    heads = [each[0] for each in rows.description]
                    yield f"{table}.json", json.dumps([dict(zip(heads, row, strict=True)) for row in rows]).encode()


def decoded(values: Sequence[object], words: Sequence[object]) -> list[object] | None:
    """Texts that are digests of answers, or answers in another writing; None where they are neither."""
    texts = [each for each in values if isinstance(each, str)]
    if len(texts) < len(values) or len(set(map(len, texts))) > 3:
        return None
    sizes = {name: 2 * hashlib.new(name).digest_size for name in ("md5", "sha1", "sha256", "sha512")}
    makers = [name for name, size in sizes.items() if size == len(texts[0])]
    if makers and all(re.fullmatch("[0-9a-f]+", text) for text in texts):
        answers: list[object] = []
        for at, text in enumerate(texts):
            named = ((word, form.format(at, word)) for word in words for form in FORMS)
            fits = (word for word, line in named if hashlib.new(makers[0], line.encode()).hexdigest() == text)
            if (answer := next(fits, None)) is None:
                return None
            answers.append(answer)
        return answers
    with contextlib.suppress(ValueError):
        return [scalar(base64.b64decode(text, validate=True).decode()) for text in texts]
    return None
