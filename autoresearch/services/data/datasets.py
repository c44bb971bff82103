"""Episodes as data sets of other libraries. Each format is an extension: ``docs/reference/extending.md``."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from autoresearch.errors import Refused, UsageError
from autoresearch.extensions import ANEW, DATASETS, guard_extension, load_extension
from autoresearch.services.data.tfds import Episode, read_episodes

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def write_dataset(
    form: str, episodes: str | Path | Iterable[Episode], folder: str | Path, name: str = "episodes"
) -> Path:
    """Write episodes, or those of a folder of ``EpisodeWriter``, as the data set ``folder``/``name`` of a format.

    ``form`` is ``rlds``, which TensorFlow Datasets opens, or the name of another extension.

    Returns:
        The folder that the format's library opens.

    Raises:
        NotFound: no extension has this name, or the folder holds no episodes.
        UsageError: a file is no episode, two episodes differ in shapes, or the name has other characters than lower
            case, digits and ``_``.
        Refused: there is such a data set; or the extension fails, or lacks a package.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"“{name[:80]}” can't be the name of a data set", hint="lower case, digits and _")
    write = load_extension(DATASETS, form)
    if not callable(write):
        raise Refused(f"the extension {form} is no function", hint=ANEW)
    target = Path(folder) / name
    if target.exists():
        raise Refused(f"{target} exists already", hint="give another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{name}."))
    try:
        place = beside / name
        place.mkdir()
        with guard_extension(form):
            written = write(read_episodes(episodes) if isinstance(episodes, str | Path) else episodes, place, name)
        if not isinstance(written, Path) or not written.is_relative_to(place) or not written.is_dir():
            raise Refused(f"the extension {form} names no folder that it wrote", hint=ANEW)
        place.replace(target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target / written.relative_to(place)
