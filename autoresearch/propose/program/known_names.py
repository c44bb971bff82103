"""What a constant may be whose comment says nothing: by its name where that is well known, else around its value.

The rules are read from top to bottom and the first that fits counts: names that are never turned, well-known names,
names that say how long a program trains or how large its data is. docs/reference/search.md has the same as a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from autoresearch.propose.program.ranges import Value, ValueRange, interval

# A number with another name may be this many times larger or smaller; a known range reaches as far past such a value.
FACTOR = 4.0
# Whole numbers from here on stand for something else than a setting.
_HUGE = 1e7


def _words(words: str) -> re.Pattern[str]:
    """A pattern for names that have one of these words in them; names are written as ``_max_depth_`` here."""
    return re.compile("_(?:" + "|".join(words.split()) + ")_")


# Where one of these words stands anywhere in the name, the number says what is measured, or where, or on what machine.
NEVER = _words(
    "seeds? rng random_state version port path dir folder file url host address devices?(?!_batch) cuda gpus? "
    "local_rank ddp_rank world_size workers? jobs? n_?threads? threads? process(?:es)? eval evals evaluate "
    "evaluation tests? testing val valid validation holdout metric log logs logging print verbose verbosity "
    "report display plot save checkpoint ckpt interval every freq frequency time timeout seconds? secs? minutes? "
    "hours? deadline budget class(?:es)? labels n_?label num_?label vocab vocabulary tokenizer tokens? pad bos "
    "eos unk ids? idx index n_in n_out num_in num_out (?:in|out)_(?:features|channels|dim|size) inputs? outputs? "
    "targets? use enable is has debug flag amp compile deterministic bits bytes mb mib gb gib flops peak memory "
    "pi inf infinity nan sample_rate year patience "
    "(?:image|img|frame|screen|data|feature|obs|state|action)_(?:width|height|dim|size)"
)

# After the well-known names: how long the program trains, and the size and shape of its data, are the task's.
TASK = _words(
    "epochs? steps? iters? iterations? max_iter rounds? trials? repeats? folds? cv splits? batches updates? "
    "episodes? generations? data dataset samples? examples? rows docs points? train sequences? seq seq_?len "
    "block_size context ctx length len images? img pixels? features? channels? columns? noise mean means std stds"
)

# In a section of this name stands what the data are, but for what is well known.
_OF_DATA = frozenset({"_data_", "_dataset_", "_datasets_", "_env_", "_environment_"})

# Of words to choose among: what is measured, and on what, are the task's too.
_CHOSEN = _words(
    "dataset corpus split task mode env environment dtype precision backend format lang language level kind type "
    "metric model_name preset size"
)

Shape = Literal["log", "int", "float", "sizes", "choices"]


@dataclass(frozen=True, slots=True)
class NameRule:
    """A well-known name: how its values are spaced, between which bounds, and at most so many times its own value."""

    words: re.Pattern[str]
    shape: Shape
    low: float = 0.0
    high: float = 0.0
    reach: float | None = None
    whole: bool | None = None
    """True: for whole numbers only, which stay whole; False: for others only."""
    least: float = -math.inf
    most: float = math.inf
    """A value outside these says that the name means something else here."""
    zero: tuple[Value, ...] = ()
    """What is tried where the value is 0 and the shape has no place for it."""
    choices: tuple[float, ...] = ()

    def fits(self, name: str, value: float) -> bool:
        """Whether the rule is for this constant."""
        if self.words.search(name) is None or not self.least <= value <= self.most:
            return False
        if self.whole is not None and isinstance(value, int) != self.whole:
            return False
        return value > 0 or (value == 0 and (bool(self.zero) or self.shape in {"float", "choices"}))

    def range(self, value: float) -> ValueRange | None:
        """The range around a value; one outside the bounds widens it."""
        if value == 0 and self.zero:
            return ValueRange("one of", choices=self.zero)
        if self.shape == "choices":
            return ValueRange("one of", choices=tuple(sorted({*self.choices, float(value)})))
        low, high = self.low, self.high
        if self.reach is not None:
            low, high = max(low, value / self.reach), min(high, value * self.reach)
        if value < self.low:
            low = value / FACTOR
        if value > self.high:
            high = min(self.most, value * FACTOR)
        if self.shape == "sizes":
            return _sizes(int(value), low, high)
        if self.whole:
            low, high = max(1, round(low)), max(round(high), value + 2)
        return interval(self.shape, low, high, whole=self.whole is True)


_REGULAR = (0.0, 0.0001, 0.001, 0.01, 0.1)
_BETA1 = (0.8, 0.85, 0.9, 0.95, 0.98)
_BETA2 = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
_MOMENTUM = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99)
_NEAR_ONE = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

_WARM = _words("warm_?up warm_?down cool_?down")
_EXPAND = _words("mlp_ratio mlp_mult ffn?_mult hidden_mult expansion expand")
_WIDE = _words("width hidden embd embed embedding d_model dim d_ff ffn units filters (?:base|hidden)_channels")
_SHARE_KEPT = _words("subsample colsample[a-z_]* feature_fraction bagging_fraction max_features max_samples keep_prob")
_SHARE = _words("frac fraction ratio prob probability share portion percentile quantile threshold rate")

KNOWN = (
    NameRule(_WARM, "float", 0, 0.5, most=1, whole=False),
    NameRule(_WARM, "log", 1, 10_000, FACTOR, whole=True, zero=(0, 10, 30, 100, 300)),
    NameRule(_words("smoothing"), "float", 0, 0.3, most=0.9),
    NameRule(_words("p?_?drop_?out drop_path drop_rate drop p_drop"), "float", 0, 0.5, most=0.9),
    NameRule(_words("beta_?1 betas_0 adam_b1"), "choices", choices=_BETA1, most=0.9999, whole=False),
    NameRule(_words("beta_?2 betas_1 adam_b2"), "choices", choices=_BETA2, most=0.99999, whole=False),
    NameRule(_words("momentum"), "choices", choices=_MOMENTUM, most=0.9999),
    NameRule(_words("eps epsilon"), "log", 1e-12, 1e-3, 100, most=1e-2),
    NameRule(
        _words("gamma discount decay ema rho polyak gae_lambda"),
        "choices",
        choices=_NEAR_ONE,
        least=0.8,
        most=0.99999,
        whole=False,
    ),
    # The width of a kernel, or by how much a step makes the learning rate smaller.
    NameRule(_words("gamma"), "log", 1e-6, 1, 10, most=0.8, whole=False),
    NameRule(_words("weight_decay wd"), "log", 1e-5, 1, 100, zero=_REGULAR),
    NameRule(
        _words("l1 l2 lambda lam reg regulari[sz]ation ridge lasso penalty alpha"), "log", 1e-8, 100, 30, zero=_REGULAR
    ),
    NameRule(re.compile("^_c_$"), "log", 1e-4, 1e4, 30),
    NameRule(
        _words("grad_?clip gradient_clip clip clipping grad_norm max_norm clip_norm clip_value"),
        "log",
        0.01,
        100,
        10,
        zero=(0.0, 0.3, 1.0, 3.0),
    ),
    NameRule(_words("lr_frac lr_fraction lr_ratio final_lr lr_floor"), "float", 0, 0.5, most=1, whole=False),
    NameRule(_words("lr learning_rate lrate eta"), "log", 1e-7, 1, 30, whole=False, most=10),
    NameRule(re.compile("_(?:lr|learning_rate)_$"), "log", 1e-7, 1, 30, most=10),
    NameRule(_words("step_size"), "log", 1e-7, 1, 30, whole=False, most=10),
    NameRule(_words("batch batch_?size minibatch mini_?batch_?size bs"), "sizes", 1, 2**24, FACTOR, whole=True),
    NameRule(_words("accum accumulation"), "sizes", 1, 256, FACTOR, whole=True),
    NameRule(_words("max_depth tree_depth"), "int", 1, 64, 2, whole=True),
    NameRule(_words("depth layers n_?layer num_layer blocks n_block num_block"), "int", 1, 128, 2, whole=True),
    NameRule(_words("head_dim head_size dim_head"), "sizes", 4, 512, FACTOR, whole=True),
    NameRule(_words("n_?heads? heads?"), "sizes", 1, 256, FACTOR, whole=True),
    NameRule(_EXPAND, "log", 1, 16, FACTOR, whole=True),
    NameRule(_EXPAND, "log", 1, 16, FACTOR),
    NameRule(_WIDE, "sizes", 1, 65_536, FACTOR, whole=True),
    NameRule(_words("estimators n_trees num_trees trees boost_rounds?"), "log", 1, 10_000, FACTOR, whole=True),
    NameRule(_words("leaves leaf_nodes"), "log", 2, 4096, FACTOR, whole=True),
    NameRule(_words("samples_split"), "log", 2, 200, 8, whole=True),
    NameRule(_words("samples_leaf data_in_leaf child_samples child_weight"), "log", 1, 200, 8, whole=True),
    NameRule(_words("n_components"), "log", 1, 10_000, FACTOR, whole=True),
    NameRule(_words("degree"), "int", 1, 10, 2, whole=True),
    NameRule(_words("neighbou?rs"), "log", 1, 200, FACTOR, whole=True),
    NameRule(_SHARE_KEPT, "float", 0.2, 1, most=1, whole=False),
    NameRule(_words("init_std init_scale initializer_range init"), "log", 1e-4, 10, 10, whole=False),
    NameRule(_SHARE, "float", 0, 1, FACTOR, most=1, whole=False),
)


_WIDTH = _words("n_?embd embed_dim d_model model_dim width hidden_size")
_HEAD_DIM = _words("head_dim head_size dim_head")
_KV_HEADS = _words("kv_?heads?")
_HEADS = _words("n_?heads? num_heads heads")


def divisions(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names of which the second divides the first, whether the program says so or not: width and heads."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        scope, last = name[: name.rfind(".") + 1], _plain(re.split(r"\.|--", name)[-1])
        for role, words in (("head_dim", _HEAD_DIM), ("kv", _KV_HEADS), ("heads", _HEADS), ("width", _WIDTH)):
            if words.search(last):
                groups.setdefault((scope, role), []).append(name)
                break
    pairs = []
    for scope in dict.fromkeys(scope for scope, _ in groups):
        for large, small in (("width", "head_dim"), ("width", "heads"), ("heads", "kv")):
            whole, parts = groups.get((scope, large), []), groups.get((scope, small), [])
            if len(whole) == 1:
                pairs += [(whole[0], part) for part in parts]
    return pairs


def guess(name: str, value: Value, *, known_only: bool = False) -> ValueRange | None:
    """The range of a constant from its name and value; None for what is not turned.

    ``known_only``: a name that isn't well known gets none.
    """
    if isinstance(value, bool | str) or not -1e15 < value < 1e15:
        return None
    *sections, last = map(_plain, re.split(r"\.|--", name))
    if NEVER.search(_plain(name)):
        return None
    for rule in KNOWN:
        if rule.fits(last, value) and ("[" not in name or rule.shape == "choices" or "_hidden_" in last):
            return rule.range(value)
    if known_only or "[" in name or len(last) < 4 or TASK.search(last) or not _OF_DATA.isdisjoint(sections):
        return None
    # A factor of four around a value; nothing around 0, a negative whole number (a mark) or a huge one.
    if isinstance(value, int):
        high = max(value * FACTOR, value + 2)
        low = max(1, math.ceil(value / FACTOR))
        return interval("log", low, high, whole=True) if 0 < value < _HUGE else None
    if value < 0:
        return interval("float", value * FACTOR, value / FACTOR)
    return interval("log", value / FACTOR, value * FACTOR) if value > 0 else None


def widened(name: str, allowed: ValueRange, value: Value, best: Value) -> ValueRange:
    """A range that was guessed around ``value``, so that it reaches as far around ``best`` too; others stay."""
    for rule in (guess, guess_compiled):
        beyond = rule(name, best) if rule(name, value) is not None else None
        if beyond is not None and beyond.kind == allowed.kind:
            if allowed.kind != "one of":
                return replace(allowed, low=min(allowed.low, beyond.low), high=max(allowed.high, beyond.high))
            numbers = {number for number in (*allowed.choices, *beyond.choices) if not isinstance(number, str)}
            return replace(allowed, choices=tuple(sorted(numbers)))
    return allowed


def names_a_choice(name: str) -> bool:
    """Whether a search may take another of the words that a setting of this name allows, such as ``optimizer``."""
    return not any(pattern.search(_plain(name)) for pattern in (NEVER, TASK, _CHOSEN))


# How a loop is cut, in a compiled program: it changes the time and not the result.
_TILE = _words("block tile unroll chunk prefetch vec vector lanes stripe")
_LEARNING = _words("lr learning_rate momentum weight_decay dropout")


def guess_compiled(name: str, value: Value) -> ValueRange | None:
    """The range of a constant in a program that is not Python; None for what is not turned.

    There a width or a depth is mostly the problem itself. So only how loops are cut is known, and how fast is learned.
    """
    last = _plain(name)
    if _LEARNING.search(last):
        return guess(name, value, known_only=True)
    if isinstance(value, int) and value > 0 and _TILE.search(last) and not NEVER.search(last):
        return _sizes(value, max(1.0, value / FACTOR), value * FACTOR)
    return None


# Words for which a setting is asked, and a well-known name of that.
_MEANT = {
    "wide": "width", "wider": "width", "narrow": "width", "narrower": "width", "neurons": "width",
    "deep": "depth", "deeper": "depth", "shallow": "depth", "shallower": "depth",
    "regularization": "weight_decay", "regularisation": "weight_decay", "lernrate": "learning_rate",
    "lernraten": "learning_rate", "breiter": "width", "breiteres": "width", "tiefer": "depth", "tieferes": "depth",
}  # fmt: skip


def meant_by(text: str) -> str:
    """The well-known setting that a word such as “wider” asks for, or an empty text."""
    return next((_MEANT[word] for word in _plain(text).strip("_").split("_") if word in _MEANT), "")


def named_in(text: str, names: Iterable[str]) -> list[str]:
    """Those of some parameters that a text speaks of: by their own words, or by words for the same well-known setting.

    “batch sizes” are BATCH_SIZE and bs, “learning rate” is LR, “bigram” is the patch +bigram.
    """
    typed = _plain(text).strip("_").split("_")
    words = _plain(" ".join([*map(_singular, typed), *(_MEANT[word] for word in typed if word in _MEANT)]))
    # The well-known settings that a text names; “rate” in “learning rate” names no other one.
    spans = {rule.words: match.span() for rule in KNOWN if (match := rule.words.search(words))}
    meant = [
        rule
        for rule, (start, end) in spans.items()
        if not any(low <= start and end <= high and high - low > end - start for low, high in spans.values())
    ]
    return sorted(name for name in set(names) if _is_named(name, words, meant))


def _is_named(name: str, words: str, meant: list[re.Pattern[str]]) -> bool:
    whole, last = _plain(name), _plain(re.split(r"\.|--", name)[-1])
    if any(_has_all(words, plain) for plain in (whole, last)):
        return True
    return next((rule.words for rule in KNOWN if rule.words.search(last)), None) in meant


def _has_all(words: str, plain: str) -> bool:
    parts = [part for part in plain.split("_") if part]
    return bool(parts) and all(f"_{_singular(part)}_" in words for part in parts)


def _singular(word: str) -> str:
    """A word without the ending of the plural."""
    if re.search(r"(?:ch|sh|ss|x)es$", word):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _plain(name: str) -> str:
    """A name as words: ``maxDepth``, ``--max-depth`` and ``MAX_DEPTH`` are all ``_max_depth_``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return "_" + "_".join(re.findall(r"[a-z0-9]+", parted.lower())) + "_"


def _sizes(value: int, low: float, high: float) -> ValueRange | None:
    """The value times powers of two, so that what divides it mostly still does; an odd one moves in single steps."""
    if value % 2 and value > 1:
        return interval("log", max(1, round(low)), round(high), whole=True)
    sizes = [value]
    while sizes[0] % 2 == 0 and sizes[0] // 2 >= low:
        sizes.insert(0, sizes[0] // 2)
    while sizes[-1] * 2 <= high:
        sizes.append(sizes[-1] * 2)
    return ValueRange("one of", choices=tuple(sizes)) if len(sizes) > 1 else None
