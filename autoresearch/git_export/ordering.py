"""In which order runs become commits. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterator, Mapping
from typing import TypeVar

Loaded = TypeVar("Loaded")


def parents_first(
    parents: Mapping[bytes, bytes | None], done: Container[bytes], load: Callable[[bytes], Loaded | None]
) -> Iterator[tuple[bytes, Loaded]]:
    """Runs with what ``load`` gives for them, each after its parent.

    ``parents`` has the parent of each run that is to come, None for one that has none. Left out are a run for which
    ``load`` gives None, a run whose parent is neither to come nor ``done``, and all that descend from them.
    """
    children: defaultdict[bytes, list[bytes]] = defaultdict(list)
    ready: deque[bytes] = deque()
    for run, parent in parents.items():
        if parent is None or parent in done:
            ready.append(run)
        else:
            children[parent].append(run)
    while ready:
        run = ready.popleft()
        loaded = load(run)
        if loaded is not None:
            yield run, loaded
            ready.extend(children.pop(run, ()))
