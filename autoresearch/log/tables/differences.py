"""In which settings a run differs from its parent, and what that did to the reported value: the table ``pair``."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autoresearch.log.connection import VISIBLE, Reader
from autoresearch.log.rows import PairRow
from autoresearch.words import DOUBTED

Scalar = bool | int | float | str


def differing(
    before: Mapping[str, Scalar], after: Mapping[str, Scalar], *, same_base: bool = True
) -> dict[str, tuple[Scalar, Scalar]]:
    """The settings of two runs that differ, each with both values.

    A part (``+name``) that one lacks is off there if both change the ``same_base``; another base may have it in its
    text. What else one lacks is left out, and so are all settings where one has none: it is not known what they are.
    """
    if not before or not after:
        return {}
    changed = {name: (old, new) for name, new in after.items() if (old := before.get(name, new)) != new}
    if same_base and before.keys() != after.keys():
        changed |= {name: (False, new) for name, new in after.items() if name not in before and _is_part(name, new)}
        changed |= {name: (old, False) for name, old in before.items() if name not in after and _is_part(name, old)}
    return changed


def _is_part(name: str, value: Scalar) -> bool:
    """Whether a setting is a part that is on."""
    return name.startswith("+") and bool(value)


def raised(before: Scalar, after: Scalar) -> int:
    """1 where a setting is raised or a part added, -1 where it is lowered or dropped, 0 where neither is the larger."""
    if isinstance(before, str) or isinstance(after, str):
        return 0
    return (after > before) - (after < before)


# A pair that differs in more settings says too little about each.
FEW_CHANGES = 3
# Of a setting so many pairs are read, the newest, of so many that are looked at.
PAIRS_MOST = 100
LOOKED_AT_MOST = 5_000
# So many settings of a task are named: its program has fewer, but strangers may name any.
SETTINGS_MOST = 1_000

_SETTINGS = f"""
WITH RECURSIVE named(setting) AS (
    SELECT min(setting) FROM pair WHERE task = ?1
    UNION ALL SELECT (SELECT min(setting) FROM pair WHERE task = ?1 AND setting > named.setting) FROM named
    WHERE setting IS NOT NULL
) SELECT setting FROM named WHERE EXISTS(
    SELECT 1 FROM pair CROSS JOIN run ON run.n = pair.n WHERE pair.task = ?1 AND pair.setting = named.setting
    AND {VISIBLE.format("run")}
) LIMIT ?2
"""  # noqa: S608
_DOUBTED = f"IN ({', '.join(repr(state.value) for state in sorted(DOUBTED))})"
_ROWS = f"""
SELECT pair.time, pair.raised, pair.delta, child.value, above.value, child.status
FROM pair CROSS JOIN run AS child ON child.n = pair.n CROSS JOIN standing AS judged ON judged.n = pair.n
CROSS JOIN run AS above ON above.n = pair.parent CROSS JOIN standing AS judged_above ON judged_above.n = pair.parent
WHERE pair.task = ? AND pair.setting = ? AND pair.time < ?
AND pair.time >= coalesce((
    SELECT time FROM pair WHERE task = ? AND setting = ? AND time < ? ORDER BY time DESC LIMIT 1 OFFSET ?), 0)
AND changes <= {FEW_CHANGES} AND same_base AND raised <> 0 AND (delta IS NOT NULL OR pair.failed)
AND (judged.compared OR (pair.failed AND child.budget = above.budget)) AND judged.state NOT {_DOUBTED}
AND judged_above.compared AND judged_above.state NOT {_DOUBTED}
AND {VISIBLE.format("child")} AND {VISIBLE.format("above")}
AND (judged.attested OR child.author IN ({{0}})) AND (judged_above.attested OR above.author IN ({{0}}))
ORDER BY pair.time DESC, child.id LIMIT {PAIRS_MOST}
"""  # noqa: S608


class Pairs:
    """Pairs of a run and its parent, by the settings in which they differ."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def settings(self, task: bytes) -> list[str]:
        """The settings and parts that runs of a task changed, by name."""
        return [setting for (setting,) in self._reader.read(_SETTINGS, (task, SETTINGS_MOST))]

    def of_setting(self, task: bytes, setting: str, *, before_ms: int, own: Collection[bytes]) -> list[PairRow]:
        """The pairs that say something of a setting, the newest first: those of runs older than a time.

        Both runs are by attested participants or by one of the keys ``own``, their values may be compared, and neither
        is in doubt.
        """
        place = (task, setting, before_ms)
        keys = tuple(own)
        query = _ROWS.format(", ".join(["?"] * len(keys)))
        return [PairRow(*row) for row in self._reader.read(query, (*place, *place, LOOKED_AT_MOST, *keys, *keys))]
