"""prepare.py: the fixed part of the task. Makes the data, counts the budget, measures the model. Nobody edits it.

(Long for one file, because it is pinned, read and trusted as a whole: first the text, then the harness.)

`python prepare.py` makes the data (about two seconds). train.py imports the rest:

    setup()                        seed, threads, determinism; returns the device
    Budget().batches(docs)         training batches until the budget is spent
    finish(model, budget)          checks the model, measures it and reports
    VOCAB, DOC                     number of byte values, bytes in a document

A run is a function of (source, seed, budget): no clock reaches train.py. The budget is counted in work units,
FLOPs + 1e8 per step + 3e5 per token, so that a slow machine gets the same result as a fast one, only later.

The text comes from a probabilistic grammar, so its entropy is known exactly: FLOOR is what a perfect model would
score on val.bin, and nothing honest scores less. There are cheap things to learn (spelling, frequencies, word order)
and dear ones (agreement across a clause, nouns that depend on the topic, objects that depend on the verb, names that
live for one document, recalling a number, quoting an earlier sentence, adding).
"""
import bisect, hashlib, json, math, os, resource, sys, time
from pathlib import Path

TorchDispatchMode = object
if __name__ != "__main__":  # making the data needs no torch
    import torch
    import torch.nn.functional as F
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry

VOCAB = 128            # byte values; the text is ASCII
DOC = 256              # bytes in a document
FILES = {              # name: seed, documents, SHA-256
    "train.bin": (1, 24576, "539cd5c0a92ef31397230a0e915c8c293e6efe63940236a5adb1e776117b1b90"),
    "val.bin": (2, 512, "4015ec396eadd999c3bb80da69897e52f2598136578e1fbe3b69a6eec41c75d7"),
}
FLOOR = 0.762866       # bits per byte: the exact code length of val.bin
IMPOSSIBLE = 0.002     # a score this far below the floor is refused
WORK = 1.5e12          # work units, when the environment names no other number
STEP_WORK = 1e8        # what a step and a token cost besides their FLOPs (fitted to CPU time)
TOKEN_WORK = 3e5
METERED = 1 / 8        # share of the steps whose FLOPs are counted; the others are charged like the last one counted
CURVE_POINTS = 64
MAX_PARAMS = 8_000_000
MAX_BITS = 40.0        # a loss above this has diverged

# --- randomness: integers only, so that the bytes are the same on every machine

class Random:
    """splitmix64."""
    def __init__(self, seed):
        self.state = seed & 0xFFFFFFFFFFFFFFFF

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return ((z ^ (z >> 31)) * n) >> 64

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items

class Choice:
    """Strings to choose from, none of them the beginning of another, with integer weights."""
    def __init__(self, *groups):
        self.options = [option for group in groups for option, _ in group]
        self.weights = [weight for group in groups for _, weight in group]
        self.bounds, self.total = [], 0
        for weight in self.weights:
            self.total += weight
            self.bounds.append(self.total)
        self.bits = [math.log2(self.total / weight) for weight in self.weights]

def weighted(options, weights, times=1):
    return [(option, weight * times) for option, weight in zip(options, weights)]

def zipf(n, shift=1):
    return [720720 // (rank + shift) for rank in range(n)]

# --- grammar: words, and the tables that are chosen from

CONSONANTS, VOWELS = "ptkbdgmnslrvzfh", "aeiou"
ONSETS = list(CONSONANTS) * 3 + ["st", "br", "kl", "tr", "gl", "fr", "sp", "dr"]
CODAS = [""] * 6 + ["n", "r", "s", "l", "m", "k"]
GENDERS, TOPICS, KINDS, NOUNS, VERBS, ADJECTIVES = 3, 8, 5, 150, 45, 36
NOUN_PLURAL = ["en", "ash", "im"]                                    # by gender
ADJECTIVE_ENDING = [["a", "ane"], ["u", "une"], ["i", "ine"]]        # by gender, number
VERB_ENDING = ["it", "ont"]                                          # by the number of the subject

class Grammar:
    capital = Choice([(c.upper() + v, 1) for c in CONSONANTS for v in VOWELS])
    syllable = Choice([(c + v, 1) for c in CONSONANTS for v in VOWELS])
    count = Choice([("1 ", 1), ("2 ", 1)])
    number = Choice([("%02d" % i, 1) for i in range(50)])
    mark = Choice([("- ", 18), ("= ", 2), ("+ ", 1), ("@ ", 2), ('" ', 1)])
    first_mark = Choice([("- ", 18), ("= ", 2), ("+ ", 1), ("@ ", 2)])

    def __init__(self, seed=20260101):
        self.random, self.used = Random(seed), {"ke", "il", "and", "so", "now"}
        determiners = [self._word(1) for _ in range(2 * GENDERS * 2)]
        self.topic = Choice(weighted([self._word(2) + " " for _ in range(TOPICS)], zipf(TOPICS, 3)))
        prepositions = [self._word(1) + " " for _ in range(6)]
        [self._word(2) for _ in range(12)]                           # reserved
        nouns = [(self._word(1 + self.random.below(2), ["", NOUN_PLURAL[gender]]), gender, i // GENDERS % KINDS)
                 for i in range(NOUNS) for gender in [i % GENDERS]]
        verbs = [(self._word(1 + self.random.below(2), VERB_ENDING), i % KINDS) for i in range(VERBS)]
        adjectives = [self._word(1 + self.random.below(2), sum(ADJECTIVE_ENDING, [])) for _ in range(ADJECTIVES)]

        meanings = [(n, g, d) for n in range(2) for g in range(GENDERS) for d in range(2)]
        self.agreement = [(n, g) for n, g, _ in meanings]            # of each determiner
        self.determiners = [(word + " ", (3, 2)[n] * (4, 3, 2)[g] * (3, 1)[d])
                            for word, (n, g, d) in zip(determiners, meanings)]
        self.prepositions, total = len(prepositions), sum(zipf(6))
        self.after_clause = Choice(weighted(prepositions, zipf(6), 9), [(". ", total * 18), (".\n", total * 3)])
        self._noun_tables(nouns, adjectives)
        self._verb_tables(verbs)

    def _word(self, syllables, endings=("",)):
        while True:
            parts = [part for _ in range(syllables) for part in (ONSETS, VOWELS, CODAS)]
            stem = "".join(part[self.random.below(len(part))] for part in parts)
            forms = {stem + ending for ending in endings}
            if 3 <= len(stem) <= 9 and not forms & self.used:
                self.used |= forms
                return stem

    def _noun_tables(self, nouns, adjectives):
        """By topic, gender, kind (None: any) and number: each topic has its own frequent nouns."""
        self.noun, self.noun_or_adjective = {}, {}
        keys = [(g, k, n) for g in range(GENDERS) for k in (*range(KINDS), None) for n in range(2)]
        for topic in range(TOPICS):
            order = [nouns[i] for i in self.random.shuffled(range(NOUNS))]
            for gender, kind, number in keys:
                ending = NOUN_PLURAL[gender] + " " if number else " "
                words = [stem + ending for stem, g, k in order if g == gender and kind in (k, None)]
                ending = ADJECTIVE_ENDING[gender][number] + " "
                described = weighted([stem + ending for stem in adjectives], zipf(ADJECTIVES), sum(zipf(len(words))))
                plain = weighted(words, zipf(len(words)), 2 * sum(zipf(ADJECTIVES)))
                self.noun[topic, gender, kind, number] = Choice(weighted(words, zipf(len(words))))
                self.noun_or_adjective[topic, gender, kind, number] = Choice(plain, described)

    def _verb_tables(self, verbs):
        """By topic and number of the subject; "ke" opens a relative clause."""
        self.verb, self.verb_or_ke, self.object_kind = {}, {}, []
        for topic in range(TOPICS):
            order = [verbs[i] for i in self.random.shuffled(range(VERBS))]
            self.object_kind.append([kind for _, kind in order])
            for number in range(2):
                words = [stem + VERB_ENDING[number] + " " for stem, _ in order]
                self.verb[topic, number] = Choice(weighted(words, zipf(VERBS)))
                self.verb_or_ke[topic, number] = Choice(weighted(words, zipf(VERBS), 5), [("ke ", sum(zipf(VERBS)))])

# --- documents: the same walk through the grammar writes a text and reads one

class Full(Exception):
    """The document has its 256 bytes."""

class Writer:
    """Makes the choices at random and adds up what they cost: bits is the exact -log2 p(text)."""
    def __init__(self, random):
        self.random, self.parts, self.length, self.bits = random, [], 0, 0.0

    def text(self, start=0):
        return "".join(self.parts)[start:]

    def say(self, text):
        """Append what follows without a choice, or as much of it as fits."""
        text = text[:DOC - self.length]
        self.parts.append(text)
        self.length += len(text)
        if self.length == DOC:
            raise Full

    def choose(self, choice):
        """Append one of the options; return its index."""
        return self._take(choice, bisect.bisect_right(choice.bounds, self.random.below(choice.total)))

    def _take(self, choice, i):
        room, option = DOC - self.length, choice.options[i]
        if len(option) < room:
            self.bits += choice.bits[i]
        else:                                                        # cut off: all options that look alike are charged
            alike = sum(w for o, w in zip(choice.options, choice.weights) if o.startswith(option[:room]))
            self.bits += math.log2(choice.total / alike)
        self.say(option)
        return i

class Reader(Writer):
    """Reads the choices off a finished text: the proof that the text alone determines them, and so its cost."""
    def __init__(self, text):
        super().__init__(random=None)
        self.given = text

    def say(self, text):
        if not self.given.startswith(text[:DOC - self.length], self.length):
            raise ValueError(f"byte {self.length}: the grammar says {text!r}")
        super().say(text)

    def choose(self, choice):
        rest = self.given[self.length:]
        fitting = [i for i, option in enumerate(choice.options) if rest.startswith(option[:len(rest)])]
        if not fitting or (len(fitting) > 1 and any(len(choice.options[i]) < len(rest) for i in fitting)):
            raise ValueError(f"byte {self.length}: {len(fitting)} readings")
        return self._take(choice, fitting[0])

class Document:
    """A header (topic, names and their numbers), then sentences until the bytes are full."""
    def __init__(self, grammar, pen):
        self.grammar, self.choose, self.say, self.pen, self.said = grammar, pen.choose, pen.say, pen, []
        kinds = self.statement, self.sum, self.sum_of_names, self.recall, self.quote
        try:
            self.header()
            while True:
                kinds[self.choose(grammar.mark if self.said else grammar.first_mark)]()
        except Full:
            pass

    def header(self):
        g, weights = self.grammar, {}
        self.topic = self.choose(g.topic)
        count = 1 + self.choose(g.count)
        self.number = {}                                             # of two names alike, the later number holds
        for i in range(count):
            name = g.capital.options[self.choose(g.capital)] + g.syllable.options[self.choose(g.syllable)]
            self.say(" ")
            self.number[name] = self.choose(g.number)
            self.say("\n" if i == count - 1 else ", ")
            weights[name] = weights.get(name, 0) + (6, 3)[i]
        self.names = sorted(weights)
        self.name = Choice([(name, weights[name]) for name in self.names])
        total = sum(weight for _, weight in g.determiners)
        self.determiner_or_name = Choice([(word, weight * 7 * self.name.total) for word, weight in g.determiners],
                                         [(name + " ", weights[name] * total) for name in self.names])

    def statement(self):
        start = self.pen.length
        self.clause()
        while self.choose(self.grammar.after_clause) < self.grammar.prepositions:
            self.noun_phrase(None)
        self.said.append(self.pen.text(start))

    def clause(self):
        number, kinds = self.noun_phrase(None), self.grammar.object_kind[self.topic]
        verb = self.choose(self.grammar.verb_or_ke[self.topic, number])
        if verb == len(kinds):                                       # "ke": a relative clause, then the main verb
            self.noun_phrase(kinds[self.choose(self.grammar.verb[self.topic, number])])
            verb = self.choose(self.grammar.verb[self.topic, number])
        self.noun_phrase(kinds[verb])

    def noun_phrase(self, kind):
        """A name, or a determiner, perhaps an adjective, and a noun of this kind; returns its number."""
        i = self.choose(self.determiner_or_name)
        if i >= len(self.grammar.determiners):
            return 0
        number, gender = self.grammar.agreement[i]
        noun = self.grammar.noun[self.topic, gender, kind, number]
        if self.choose(self.grammar.noun_or_adjective[self.topic, gender, kind, number]) >= len(noun.options):
            self.choose(noun)
        return number

    def sum(self):
        a = self.choose(self.grammar.number)
        self.say("+")
        self.say("=%02d. " % (a + self.choose(self.grammar.number)))

    def sum_of_names(self):
        a = self.number[self.names[self.choose(self.name)]]
        self.say("+")
        self.say("=%02d. " % (a + self.number[self.names[self.choose(self.name)]]))

    def recall(self):
        self.say("=%02d. " % self.number[self.names[self.choose(self.name)]])

    def quote(self):
        self.choose(Choice([(text, self.said.count(text)) for text in sorted(set(self.said))]))

def write_documents(grammar, seed, count):
    """Yields (text, its code length in bits)."""
    for i in range(count):
        pen = Writer(Random((seed << 32) + i * 0x9E37 + 1))
        Document(grammar, pen)
        yield pen.text(), pen.bits

def code_length_bits(grammar, text):
    """The exact -log2 p(text) of one document; ValueError when the grammar cannot have written it."""
    pen = Reader(text)
    Document(grammar, pen)
    return pen.bits

# --- data files

def is_right(path):
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == FILES[path.name][2]

def make_data(folder):
    """Write train.bin and val.bin, unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (seed, count, sha256) in FILES.items():
        if is_right(folder / name):
            continue
        texts = []
        for i, (text, _) in enumerate(write_documents(Grammar(), seed, count), 1):
            texts.append(text)
            if i % 1024 == 0 or i == count:
                print(f"\r{name}: {i} of {count} documents", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        content = "".join(texts).encode("ascii")
        if hashlib.sha256(content).hexdigest() != sha256:
            raise SystemExit(f"{name} does not have its pinned hash: prepare.py was changed")
        temporary = folder / f".{name}.{os.getpid()}"
        temporary.write_bytes(content)
        temporary.replace(folder / name)

def load(name):
    if "AUTORESEARCH_DATA" not in os.environ:
        make_data(DATA)                                              # a person typed `python train.py`
    if not is_right(DATA / name):
        raise SystemExit(f"{DATA / name} is missing or not the pinned data: run `python prepare.py` first")
    return torch.frombuffer(bytearray((DATA / name).read_bytes()), dtype=torch.uint8).view(-1, DOC).to(DEVICE)

# --- the run

DATA = Path(os.environ.get("AUTORESEARCH_DATA") or Path(__file__).parent / "data")
DEVICE = os.environ.get("AUTORESEARCH_DEVICE", "cpu")
SEED = int(os.environ.get("AUTORESEARCH_SEED", "0"))
THREADS = int(os.environ.get("AUTORESEARCH_THREADS", "1"))
WORK = float(os.environ.get("AUTORESEARCH_BUDGET", WORK))
STOP_AT = float(os.environ.get("AUTORESEARCH_STOP_AT", "1"))         # an audit replays only the first part
RESULT = None                                                        # where results go; None: a person typed it

def channel(name, mode):
    return os.fdopen(int(os.environ[name]), mode) if name in os.environ else None

def setup():
    """Make the run a function of (source, seed, budget); return the device to train on."""
    global RESULT
    RESULT = channel("AUTORESEARCH_RESULT_FD", "w")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")      # CUDA is only deterministic with it
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_flush_denormal(True)
    torch.manual_seed(SEED)
    return torch.device(DEVICE)

class Meter(TorchDispatchMode):
    """Counts the FLOPs of the operations as they run, so nobody has to claim them.

    Attention costs its matrix products (2 forward, 4 backward), however the kernel does them: torch's own counter
    charges more for some kernels and nothing for the CPU's, and the work would depend on the device.
    """
    flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func._schema.name
        fused = name.startswith("aten::_scaled_dot_product") and "_math" not in name
        counted = func._overloadpacket in flop_registry
        if torch.is_inference_mode_enabled() and not fused and not counted:
            with self:                                               # inference mode hides the products inside
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        if fused:
            q, k, v = args[1:4] if "_backward" in name else args[:3]
            products = 4 if "_backward" in name else 2
            self.flops += products * q[..., 0].numel() * k.size(-2) * (q.size(-1) + v.size(-1))
        elif counted:
            self.flops += flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
        return out

class Budget:
    """Hands out the training data and counts the work until the budget is spent."""
    def __init__(self):
        self.data = load("train.bin")
        self.order, self.next, self.order_rng = [], 0, torch.Generator().manual_seed(SEED)
        self.meter_rng = torch.Generator().manual_seed(SEED + 1)
        self.steps = self.tokens = self.flops = 0
        self.step_flops = {}                                         # by number of documents in the batch
        self.loss, self.curve, self.told = None, [], 0.0

    def progress(self):
        """The share of the budget that is spent, 0 to 1: the only clock a schedule may use."""
        return min(1.0, self.metrics()["work"] / WORK)

    def metrics(self):
        work = self.flops + STEP_WORK * self.steps + TOKEN_WORK * self.tokens
        return {"steps": self.steps, "tokens": self.tokens, "flops": self.flops, "work": work}

    def batches(self, docs):
        """Yields (inputs, targets), int64 of shape (docs, DOC), until the budget is spent."""
        if not 1 <= docs <= len(self.data):
            raise ValueError(f"a batch has 1 to {len(self.data)} documents, not {docs}")
        while self.progress() < min(1.0, STOP_AT):
            if self.next + docs > len(self.order):
                self.order, self.next = torch.randperm(len(self.data), generator=self.order_rng), 0
            y = self.data[self.order[self.next:self.next + docs]].long()
            self.next += docs
            if self.steps < 2 or docs not in self.step_flops or torch.rand((), generator=self.meter_rng) < METERED:
                with Meter() as meter:
                    yield inputs(y), y
                self.step_flops[docs] = meter.flops
            else:
                yield inputs(y), y
            self.steps += 1
            self.tokens += y.numel()
            self.flops += self.step_flops[docs]
            self._tell()

    def report(self, loss):
        """Take the training loss of this step, in nats. Ends the run when it is not finite or absurd."""
        bits = float(loss) / math.log(2)
        if not math.isfinite(bits) or bits > MAX_BITS:
            end(self, "diverged", "the training loss became infinite, not a number or absurdly large")
        self.loss = bits if self.loss is None else 0.9 * self.loss + 0.1 * bits

    def _tell(self):
        progress, now = self.progress(), time.monotonic()
        if self.loss is None:
            return
        while len(self.curve) < CURVE_POINTS and progress >= (len(self.curve) + 1) / CURVE_POINTS:
            self.curve.append(round(self.loss, 5))
        if now - self.told > 0.5:
            self.told = now
            emit(event="progress", fraction=progress, step=self.steps, loss=round(self.loss, 5))

def inputs(targets):
    """What the model sees: the bytes before each target, and a zero before the first."""
    return F.pad(targets[:, :-1], (1, 0))

# --- the verdict

def emit(**event):
    """One JSON object in a line to the runner, or a line for a person. NaN and infinity are a ValueError."""
    if RESULT:
        print(json.dumps(event, allow_nan=False), file=RESULT, flush=True)
    elif event["event"] == "progress":
        line = f"\rstep {event['step']}  {event['fraction']:4.0%}  loss {event['loss']:.4f} bits "
        print(line, end="", file=sys.stderr, flush=True)

def end(budget, status, reason):
    """Report a run without a value, and stop."""
    emit(event="result", status=status, reason=reason, metrics=budget.metrics(), curve=budget.curve)
    raise SystemExit(0 if RESULT else f"\n{status}: {reason}")

def log_probabilities(model, x, budget):
    """The model's prediction at each position, normalised here and not by the model."""
    logits = model(x)
    if not isinstance(logits, torch.Tensor) or tuple(logits.shape) != (*x.shape, VOCAB):
        end(budget, "invalid", f"the model must return logits of shape (documents, {DOC}, {VOCAB})")
    if not logits.is_floating_point() or not logits.isfinite().all():
        end(budget, "invalid", "the model's logits are not finite")
    return F.log_softmax(logits.float(), dim=-1)

def check(model, budget, x):
    """Refuse a model that is too large, broken, or looks at what it must not see."""
    params = sum(p.numel() for p in model.parameters())
    if params > MAX_PARAMS:
        end(budget, "invalid", f"{params} parameters; the task allows {MAX_PARAMS}")
    if not all(t.isfinite().all() for t in model.state_dict().values() if t.is_floating_point()):
        end(budget, "invalid", "the weights are not finite")
    cuts = torch.randint(1, DOC, (len(x), 1), generator=torch.Generator().manual_seed(SEED + 2)).to(x.device)
    before = torch.arange(DOC, device=x.device) < cuts
    # each document keeps its bytes before the cut, goes on like its neighbour, and sits elsewhere in the batch
    other = torch.where(before, x, x.roll(1, 0)).flip(0)
    change = log_probabilities(model, x, budget) - log_probabilities(model, other, budget).flip(0)
    if change.abs().amax(-1)[before].max() > 1e-3:
        end(budget, "invalid", "a prediction depends on later bytes or on other documents")
    return params

def finish(model, budget):
    """Check and measure the model; report its bits per byte on val.bin, or why there are none."""
    model.eval()
    texts, nats = load("val.bin").long().split(32), 0.0
    with torch.inference_mode():
        params = check(model, budget, inputs(texts[0]))
        for y in texts:
            nats -= log_probabilities(model, inputs(y), budget).gather(-1, y[..., None]).double().sum().item()
    value = nats / math.log(2) / sum(y.numel() for y in texts)
    if value < FLOOR - IMPOSSIBLE:
        end(budget, "invalid", f"{value:.4f} bits per byte is below the entropy of the text, {FLOOR}")
    if value > MAX_BITS:
        end(budget, "diverged", f"{value:.1f} bits per byte on the validation text")
    if file := channel("AUTORESEARCH_CHECKPOINT_FD", "wb"):
        from safetensors.torch import save                           # clones: it refuses weights that are tied
        with file:
            file.write(save({name: t.detach().cpu().contiguous().clone() for name, t in model.state_dict().items()}))
    metrics = budget.metrics() | {"params": params}
    emit(event="result", status="ok", value=round(value, 6), metrics=metrics, curve=budget.curve)
    if not RESULT:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cost = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_memory_mib": usage.ru_maxrss / 1024}
        print(file=sys.stderr, flush=True)
        print("---")
        for name, number in ({"val_bpb": value, "floor_bpb": FLOOR} | cost | metrics).items():
            print(f"{name + ':':<18}{number:.6g}" if number < 1e5 else f"{name + ':':<18}{number:.0f}")

if __name__ == "__main__":
    make_data(DATA)
