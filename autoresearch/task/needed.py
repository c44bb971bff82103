"""The files that a program needs beside it: what is pinned with the task, what is shown to runs where it lies.

Small files with plain names are pinned, and travel with the task. Everything else is shown to runs, read-only, at its
place: large files, many files, names with blanks, files that tools obey. Runs nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autoresearch.beneath import is_file_beneath, open_beneath
from autoresearch.errors import UsageError
from autoresearch.task import mentions
from autoresearch.task.inputs import described, read_input, source_of
from autoresearch.task.listing import FolderListing, list_folder
from autoresearch.task.loading import MAX_FILE_BYTES, MAX_FILES, MAX_PLACE, check_source
from autoresearch.task.model import MAX_INPUTS, PLACE, Input, Recipe
from autoresearch.task.program import check_file_name, check_file_names

PREPARE = "prepare.py"
# A folder with more files that are shown is shown as a whole.
_MOST_SINGLE = 8
# So many of the files that runs don't see are named.
_MOST_LEFT_OUT = 6
# Folders that a training writes into, and how a program shows that it does.
_RESULTS = re.compile(
    r"(?:out|outputs?|results?|runs?|logs?|checkpoints?|ckpts?|saved?(?:_models?)?|wandb|mlruns|lightning_logs"
    r"|tb_logs|tensorboard|figures|plots)(?:[-_].*)?",
    re.IGNORECASE,
)
_WRITES = re.compile(r"\b(?:makedirs|mkdir|save\w*|SummaryWriter|output_dir|default_root_dir|dump|to_csv)\b")
_RESULTS_REASON = "results of earlier runs; to show it to runs: --mount {}"
_WRITTEN_REASON = "the program writes it; to show it to runs: --mount {}"


@dataclass(slots=True)
class Needed:
    """What a program needs beside it: ``fixed`` files, pinned by their content, and ``inputs``, shown where they lie.

    ``folders`` are the mounts elsewhere, ``mounts`` the places of task.toml for links that lead there. ``left_out`` has
    a reason for each path that runs won't see, those that the program names first.
    """

    fixed: dict[str, bytes] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    mounts: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def needed_files(folder: Path, recipe: Recipe, mounts: Sequence[str] = (), also: Collection[str] = ()) -> Needed:
    """The files that a program needs: what Python imports, what its text or its command names; and ``also`` these.

    A Python program's ``prepare.py`` is one of them. Of ``mounts``, the folders that runs may read, those in the folder
    are inputs, and links that lead into one are shown at their place. Raises UsageError where an imported file is no
    Python, or more places are needed than a task can have.
    """
    allowed = [Path(mount).expanduser().resolve() for mount in mounts]
    listing = list_folder(folder, allowed)
    search = _Search(folder, recipe, listing, _inside(folder, allowed), also)
    inputs = search.inputs | _overflow(search.fixed)
    modules = {name for name in search.fixed if name.endswith(".py")} - inputs
    places = sorted(_places(inputs, {*recipe.edit, *modules}, listing))
    if len(places) > MAX_INPUTS:  # rather a module that is shown with its folder than no task
        places = sorted(_places(inputs, set(recipe.edit), listing))
    if len(places) > MAX_INPUTS:
        hint = f"put them into one folder: {MAX_INPUTS} files and folders are shown where they lie"
        raise UsageError(f"{folder} has {len(places)} files that the program needs, and that are not pinned", hint=hint)
    places += _linked_to(folder, places, listing.names, (*recipe.edit, *search.fixed))
    below = tuple(f"{place}/" for place in places)
    if hidden := next((name for name in recipe.edit if name.startswith(below)), ""):
        hint = f"--edit is a file that runs change; name the folders with data alone: --mount {folder}/…"
        raise UsageError(f"{hidden} lies in a folder that is shown to runs as a whole", hint=hint)
    folders = tuple(mount for mount, path in zip(mounts, allowed, strict=True) if not path.is_file())
    needed = Needed(folders=folders, left_out=search.left_out)
    for name, content in sorted(search.fixed.items()):
        if name not in places and not name.startswith(below):
            needed.fixed[name] = content
    check_file_names((*recipe.edit, *needed.fixed))
    for place in places:
        if len(place) > MAX_PLACE:
            needed.left_out[place[:MAX_PLACE]] = f"its path has more than {MAX_PLACE} characters"
            continue
        needed.left_out.pop(place, None)
        if place in listing.leading_out:
            needed.mounts[PLACE + place] = listing.leading_out[place]
        needed.inputs[place] = read_input(source_of(folder, needed.mounts, place))
    return needed


def _linked_to(folder: Path, places: Sequence[str], names: Collection[str], files: Collection[str]) -> list[str]:
    """Where the links in folders that are shown lead, in the task's own: a store of large files, as that of DVC."""
    real, stores = folder.resolve(), list[str]()
    for place in places:
        whole = (folder / place).resolve()
        links = (folder / name for name in names if name.startswith(f"{place}/") and (folder / name).is_symlink())
        targets = [path for path in (link.resolve() for link in links) if path.is_relative_to(real)]
        if not (targets := [path for path in targets if not path.is_relative_to(whole)]):
            continue
        common = Path(os.path.commonpath(targets))
        store = str((common if common.is_dir() else common.parent).relative_to(real))
        if not any(_is_below(each, store) or _is_below(store, each) for each in (*places, *stores, *files)):
            stores.append(store)
    return stores


def _inside(folder: Path, allowed: Iterable[Path]) -> set[str]:
    """The places of those folders that lie in the task's own, the outermost alone."""
    real = folder.resolve()
    inner = {path for path in allowed if path.is_relative_to(real) and path != real}
    return {str(path.relative_to(real)) for path in inner if not inner & set(path.parents)}


def describe_needed(needed: Needed, besides: Needed | None = None) -> list[str]:
    """What runs see where it lies, and what they don't see, as sentences; ``besides``: what was said before."""
    before = besides or Needed()
    sentences = [
        f"{described(place, entry)} is shown to runs, read only: it stays on this machine, and a published task has "
        "its size and digest alone"
        for place, entry in needed.inputs.items()
        if place not in before.inputs
    ]
    if besides is not None and (added := [name for name in needed.fixed if name not in before.fixed]):
        sentences.append(f"its run did not find a file of its folder; fixed too: {', '.join(added)}")
    left_out = [(name, reason) for name, reason in needed.left_out.items() if name not in before.left_out]
    sentences += [f"left out: {name}, {reason}" for name, reason in left_out[:_MOST_LEFT_OUT]]
    more = len(left_out) - _MOST_LEFT_OUT
    return [*sentences, *([f"left out: {more} more"] if more > 0 else [])]


def missed_files(folder: Path, text: str) -> set[str]:
    """The files of a folder that a run did not find, by what it printed, and the data that lies beside them."""
    names = list_folder(folder).names
    paths = [path.removeprefix("./") for path in re.findall(r"No such file or directory: [bru]?[\"']([^\"'\n]+)", text)]
    missed = {name for name in names for path in paths if name == path or path.endswith(f"/{name}")}
    data = [name for name in names if not name.endswith((".py", ".md"))]
    missed |= {name for name in data for path in paths if name.startswith(f"{path.rstrip('/')}/")}
    folders = {name.rpartition("/")[0] for name in missed} - {""}
    return missed | {name for name in data if name.rpartition("/")[0] in folders}


class _Search:
    """What a program needs, found file by file: ``fixed`` with their content, ``inputs`` without."""

    def __init__(
        self, folder: Path, recipe: Recipe, listing: FolderListing, forced: Collection[str], also: Collection[str]
    ) -> None:
        self.fixed: dict[str, bytes] = {}
        self.inputs: set[str] = set(forced)
        self.left_out: dict[str, str] = {}
        self._folder, self._listing, self._edit = folder, listing, recipe.edit
        self._names = mentions.FileNames(listing.names)
        self._texts: list[str] = []
        self._written: set[str] = set()
        names, roots = frozenset(listing.names), mentions.roots_of(recipe.edit, listing.names)
        below = tuple(f"{place}/" for place in forced)
        pending = [
            *recipe.edit,
            *mentions.named_by_command(recipe, names),
            *(name for name in also if name in names),
            *([PREPARE] if PREPARE in names and any(name.endswith(".py") for name in recipe.edit) else []),
        ]
        seen, modules = set(forced), set[str]()
        while pending:
            name = pending.pop()
            if name in seen or name.startswith(below):
                continue
            seen.add(name)
            text = self._read(name)
            if name.endswith(".py"):
                # Of a file that a script starts, Python looks beside it first.
                own = [] if name in modules else mentions.roots_of([name], ())
                modules |= (others := set(mentions.imported(folder, name, names, [*roots, *own])))
                pending += others
            if text:
                self._texts.append(text)
                pending += self._names.named_in(text, name)
                pending += self._named_in_crowded(text)
        self._leave_out(set(forced) | set(also))

    def _named_in_crowded(self, text: str) -> list[str]:
        """The files that a text has in quotes, and that lie among so many that the listing has not all of them."""
        if not self._listing.crowded:
            return []
        quoted = {path.removeprefix("./") for path in re.findall(r"[\"']([^\"'\n]{1,200})[\"']", text)}
        inner = [
            path for path in quoted if path.rpartition("/")[0] in self._listing.crowded and path not in mentions.NO_PART
        ]
        visible = (path for path in inner if not path.rpartition("/")[2].startswith("."))
        return [path for path in visible if is_file_beneath(self._folder, path)]

    def _read(self, name: str) -> str:
        """Take up a file; its text, where that can name others."""
        path, is_own = self._folder / name, name in self._edit
        try:
            link = next((link for link in self._listing.leading_out if _is_below(name, link)), "")
            target = (Path(self._listing.leading_out.get(link, "")) / name.removeprefix(link).lstrip("/")).resolve()
            with open_beneath(target.parent, target.name) if link else open_beneath(self._folder, name) as file:
                length = os.fstat(file.fileno()).st_size
                content = file.read(MAX_FILE_BYTES) if length <= MAX_FILE_BYTES else b""
        except OSError as error:
            if is_own:
                raise UsageError(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error
            self.left_out[name] = f"it can't be read: {error.strerror}"
            return ""
        if is_own and length > MAX_FILE_BYTES:
            hint = f"a file that may change has at most {MAX_FILE_BYTES >> 10} KiB: keep data in files of their own"
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES >> 10} KiB", hint=hint)
        if name.endswith(".py") and content:
            check_source(path, content)
        if length <= MAX_FILE_BYTES and _is_plain(name) and not link:
            if not is_own:
                self.fixed[name] = content
        else:
            self.inputs.add(name)
        text = "" if Path(name).suffix in mentions.DATA else content.decode("utf-8-sig", "replace")
        if name.endswith(".py"):
            self._written |= mentions.written_by(text)
        return text

    def _leave_out(self, named: Collection[str]) -> None:
        """Leave out what earlier runs wrote, but what a person ``named``. What the program names comes first."""
        text = "\n".join(self._texts)
        writes = _WRITES.search(text) is not None
        for name in sorted((self.fixed.keys() | self.inputs) - set(named)):
            results = next((part for part in mentions.folders_of(name) if _RESULTS.fullmatch(Path(part).name)), "")
            is_code = name.endswith((".py", ".sh"))
            if results and writes and not is_code:
                self.left_out[results] = _RESULTS_REASON.format(self._folder / results)
            elif name in self.inputs and name in self._written:
                self.left_out[name] = _WRITTEN_REASON.format(self._folder / name)
            else:
                continue
            self.fixed.pop(name, None)
            self.inputs.discard(name)
        by_reason = sorted(
            self._listing.left_out.items(), key=lambda item: not mentions.is_word(Path(item[0]).name, text)
        )
        self.left_out |= dict(by_reason)


def _is_plain(name: str) -> bool:
    try:
        check_file_name(name)
    except UsageError:
        return False
    return True


def _overflow(fixed: dict[str, bytes]) -> set[str]:
    """What is too much to be pinned: the data of the fullest folders, and where that is not enough their programs."""
    inputs: set[str] = set()
    for suffixes in ((".py", ".sh"), ()):
        while len(fixed) - len(inputs) > MAX_FILES:
            rest = [name for name in fixed if name not in inputs and not name.endswith(suffixes or "\0")]
            folders = Counter(name.rpartition("/")[0] for name in rest)
            if not folders:
                break
            fullest = max(folders, key=lambda folder: (folder != "", folders[folder], folder))
            most = len(fixed) - len(inputs) - MAX_FILES if fullest == "" else len(rest)
            inputs |= set(sorted(name for name in rest if name.rpartition("/")[0] == fullest)[:most])
    return inputs


def _places(inputs: Collection[str], programs: Collection[str], listing: FolderListing) -> Iterator[str]:
    """The files and folders that are shown: a folder as a whole where that is many files, and no program lies in it."""

    def visit(prefix: str, names: list[str]) -> Iterator[str]:
        by_folder: dict[str, list[str]] = {}
        for name in names:
            first, _, rest = name[len(prefix) :].partition("/")
            if rest:
                by_folder.setdefault(prefix + first, []).append(name)
            else:
                yield name
        for inside, below in by_folder.items():
            has_program = any(name.startswith(f"{inside}/") for name in programs)
            is_full = len(below) > _MOST_SINGLE or any(_is_below(name, inside) for name in listing.crowded)
            if inside in listing.leading_out or (is_full and not has_program):
                yield inside
            else:
                yield from visit(f"{inside}/", below)

    yield from visit("", sorted(inputs))


def _is_below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")
