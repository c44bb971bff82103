"""What each setting of a task did, for people."""

from __future__ import annotations

import math

from autoresearch.answers.task_lookup import FoundTask
from autoresearch.api import EffectsAnswer, EffectView
from autoresearch.log import Log
from autoresearch.proposers import Effect
from autoresearch.sanitise import one_line
from autoresearch.views import comparisons, kept_answer

# A name of a setting has no more characters.
_NAME_CHARACTERS = 64
# Strangers may name any setting; a program has fewer.
_MOST = 200


@kept_answer
def effects_answer(log: Log, task: FoundTask, *, me: bytes | None = None) -> EffectsAnswer:
    """What each setting did in pairs of a run and its parent; own runs of the device ``me`` count, attested or not."""
    compared = comparisons(log, task.digest, me=me)
    return EffectsAnswer(effects=[_view(effect) for effect in compared.effects[:_MOST]])


def _view(effect: Effect) -> EffectView:
    is_bounded = math.isfinite(effect.low) and math.isfinite(effect.high)
    return EffectView(
        name=one_line(effect.parameter, _NAME_CHARACTERS),
        pairs=effect.pairs,
        better=effect.better,
        mean=effect.mean,
        low=effect.low if is_bounded else None,
        high=effect.high if is_bounded else None,
    )
