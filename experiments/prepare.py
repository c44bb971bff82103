"""prepare.py: the fixed part of the task. Makes the data, counts the budget, measures the model. Nobody edits it.

`python prepare.py` makes the data (about two seconds). train.py imports the rest:

    setup()                        seed, threads, determinism; returns the device
    Budget().batches(docs)         training batches until the budget is spent
    finish(model, budget)          checks the model, measures it and reports
    VOCAB, DOC                     number of byte values, bytes in a document

A run is a function of (source, seed, budget): no clock reaches train.py. The budget is counted in work units,
FLOPs + 1e8 per step + 3e5 per token, so that a slow machine gets the same result as a fast one, only later.

The text comes from a probabilistic grammar, so its entropy is known exactly: FLOOR is what a perfect model would
score on val.bin, and nothing honest scores less. There are cheap things to learn (spelling, word frequencies, word
order) and dear ones (agreement across a clause, nouns that depend on the topic, objects that depend on the verb,
names that live for one document, recalling a number, quoting an earlier sentence, adding).
"""
import bisect, hashlib, json, math, os, resource, sys, time
from pathlib import Path

if __name__ != "__main__":  # making the data needs no torch
    import torch
    import torch.nn.functional as F
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import flop_registry
else:
    TorchDispatchMode = object

VOCAB = 128            # byte values; the text is ASCII
DOC = 256              # bytes in a document
TRAIN_DOCS, TRAIN_SEED = 24576, 1
VAL_DOCS, VAL_SEED = 512, 2
GRAMMAR_SEED = 20260101
SHA256 = {
    "train.bin": "539cd5c0a92ef31397230a0e915c8c293e6efe63940236a5adb1e776117b1b90",
    "val.bin": "4015ec396eadd999c3bb80da69897e52f2598136578e1fbe3b69a6eec41c75d7",
}
FLOOR = 0.762866       # bits per byte: the exact code length of val.bin
IMPOSSIBLE = 0.002     # a score this far below the floor is refused
BUDGET = 1.5e12        # work units, when the environment names no other number
STEP_WORK = 1e8        # what a step and a token cost besides their FLOPs (fitted to CPU time)
TOKEN_WORK = 3e5
MAX_PARAMS = 8_000_000
MAX_BITS = 40.0        # a loss above this has diverged
CURVE_POINTS = 64
METERED = 1 / 8        # share of the steps whose FLOPs are counted; the others are charged like the last one counted


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
        pairs = [pair for group in groups for pair in group]
        self.options = [option for option, _ in pairs]
        self.weights = [weight for _, weight in pairs]
        self.bounds, self.total = [], 0
        for weight in self.weights:
            self.total += weight
            self.bounds.append(self.total)
        self.bits = [math.log2(self.total / weight) for weight in self.weights]


def weighted(options, weights, times=1):
    return [(option, weight * times) for option, weight in zip(options, weights)]


def zipf(n, shift=1):
    return [720720 // (rank + shift) for rank in range(n)]


# --- grammar: words and the tables that are chosen from

class Grammar:
    GENDERS, TOPICS, KINDS, NOUNS, VERBS, ADJECTIVES = 3, 8, 5, 150, 45, 36
    NOUN_PLURAL = ["en", "ash", "im"]                                # by gender
    ADJECTIVE_ENDING = [["a", "ane"], ["u", "une"], ["i", "ine"]]    # by gender, number
    VERB_ENDING = ["it", "ont"]                                      # by the number of the subject
    NUMBERS = Choice([("%02d" % i, 1) for i in range(50)])

    def __init__(self, seed=GRAMMAR_SEED):
        random = Random(seed)
        consonants, vowels = "ptkbdgmnslrvzfh", "aeiou"
        onsets = list(consonants) * 3 + ["st", "br", "kl", "tr", "gl", "fr", "sp", "dr"]
        codas = [""] * 6 + ["n", "r", "s", "l", "m", "k"]
        used = {"ke", "il", "and", "so", "now"}

        def word(syllables, endings=("",)):
            while True:
                stem = "".join(part[random.below(len(part))] for _ in range(syllables) for part in (onsets, vowels, codas))
                forms = {stem + ending for ending in endings}
                if 3 <= len(stem) <= 9 and not forms & used:
                    used.update(forms)
                    return stem

        kinds, topics, genders = range(self.KINDS), range(self.TOPICS), range(self.GENDERS)
        determiners = [[[word(1) for _ in range(2)] for _ in genders] for _ in range(2)]  # number, gender, definiteness
        topic_words = [word(2) for _ in topics]
        prepositions = [word(1) for _ in range(6)]
        for _ in range(12):
            word(2)                                                  # adverbs: reserved, not used
        nouns = []
        for i in range(self.NOUNS):
            gender = i % self.GENDERS
            stem = word(1 + random.below(2), ("", self.NOUN_PLURAL[gender]))
            nouns.append((stem, gender, i // self.GENDERS % self.KINDS))
        verbs = [(word(1 + random.below(2), self.VERB_ENDING), i % self.KINDS) for i in range(self.VERBS)]
        all_endings = [ending for row in self.ADJECTIVE_ENDING for ending in row]
        adjectives = [word(1 + random.below(2), all_endings) for _ in range(self.ADJECTIVES)]

        self.topic = Choice([(w + " ", z) for w, z in zip(topic_words, zipf(self.TOPICS, 3))])
        self.consonant_vowel = Choice([(c + v, 1) for c in consonants for v in vowels])
        self.capital_vowel = Choice([(c.upper() + v, 1) for c in consonants for v in vowels])
        self.determiner_words, self.determiner_weights, self.determiner_meaning = [], [], []
        for number in range(2):
            for gender in genders:
                for definite in range(2):
                    self.determiner_words.append(determiners[number][gender][definite])
                    self.determiner_weights.append((3, 2)[number] * (4, 3, 2)[gender] * (3, 1)[definite])
                    self.determiner_meaning.append((number, gender))
        self.preposition_count, weights = len(prepositions), zipf(len(prepositions))
        self.after_clause = Choice(weighted([w + " " for w in prepositions], weights, 9),
                                   [(". ", sum(weights) * 18), (".\n", sum(weights) * 3)])
        self.noun, self.noun_or_adjective = {}, {}                   # by topic, gender, kind or None, number
        for topic in topics:
            order = random.shuffled(range(self.NOUNS))               # each topic has its own frequent nouns
            for gender in genders:
                for kind in (*kinds, None):
                    stems = [nouns[i][0] for i in order if nouns[i][1] == gender and kind in (nouns[i][2], None)]
                    for number in range(2):
                        self._noun_tables((topic, gender, kind, number), stems, adjectives)
        self.verb, self.verb_or_ke, self.verb_kind = {}, {}, []      # by topic, number
        for topic in topics:
            order, weights = random.shuffled(range(self.VERBS)), zipf(self.VERBS)
            self.verb_kind.append([verbs[i][1] for i in order])
            for number in range(2):
                words = [verbs[i][0] + self.VERB_ENDING[number] + " " for i in order]
                self.verb[topic, number] = Choice(weighted(words, weights))
                self.verb_or_ke[topic, number] = Choice(weighted(words, weights, 5), [("ke ", sum(weights))])

    def _noun_tables(self, key, stems, adjectives):
        _, gender, _, number = key
        nouns = [stem + (self.NOUN_PLURAL[gender] if number else "") + " " for stem in stems]
        described = [stem + self.ADJECTIVE_ENDING[gender][number] + " " for stem in adjectives]
        noun_weights, adjective_weights = zipf(len(nouns)), zipf(len(described))
        self.noun[key] = Choice(weighted(nouns, noun_weights))
        self.noun_or_adjective[key] = Choice(weighted(nouns, noun_weights, 2 * sum(adjective_weights)),
                                             weighted(described, adjective_weights, sum(noun_weights)))


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
        """Append a text that is not a choice, or as much of it as fits."""
        text = text[:DOC - self.length]
        self.parts.append(text)
        self.length += len(text)
        if self.length == DOC:
            raise Full

    def choose(self, choice):
        """Append one of the options; return its index."""
        i = bisect.bisect_right(choice.bounds, self.random.below(choice.total))
        room = DOC - self.length
        if len(choice.options[i]) >= room:                           # cut off: only what can be read is charged
            self.cut(choice, choice.options[i][:room])
        self.bits += choice.bits[i]
        self.say(choice.options[i])
        return i

    def cut(self, choice, start):
        alike = sum(w for option, w in zip(choice.options, choice.weights) if option.startswith(start))
        self.bits += math.log2(choice.total / alike)
        self.say(start)


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
        whole = [i for i, option in enumerate(choice.options) if len(option) < len(rest) and rest.startswith(option)]
        ended = any(len(option) >= len(rest) and option.startswith(rest) for option in choice.options)
        if len(whole) + ended != 1:
            raise ValueError(f"byte {self.length}: {len(whole) + ended} readings")
        if ended:
            self.cut(choice, rest)
        self.bits += choice.bits[whole[0]]
        self.say(choice.options[whole[0]])
        return whole[0]


class Document:
    """A header (topic, names and their numbers), then sentences until the bytes are full."""

    MARKS = [("- ", 18), ("= ", 2), ("+ ", 1), ("@ ", 2), ('" ', 1)]
    FIRST_MARK, MARK = Choice(MARKS[:4]), Choice(MARKS)
    NAMES = Choice([("1 ", 1), ("2 ", 1)])

    def __init__(self, grammar, pen):
        self.grammar, self.pen, self.said = grammar, pen, []
        try:
            self.header()
            while True:
                mark = self.pen.choose(self.MARK if self.said else self.FIRST_MARK)
                (self.statement, self.sum, self.sum_of_names, self.recall, self.quote)[mark]()
        except Full:
            pass

    def header(self):
        grammar, pen = self.grammar, self.pen
        self.topic = pen.choose(grammar.topic)
        count = 1 + pen.choose(self.NAMES)
        self.number, weights = {}, {}                                # of two names alike, the later number holds
        for i in range(count):
            name = grammar.capital_vowel.options[pen.choose(grammar.capital_vowel)]
            name += grammar.consonant_vowel.options[pen.choose(grammar.consonant_vowel)]
            pen.say(" ")
            self.number[name] = pen.choose(grammar.NUMBERS)
            pen.say("\n" if i == count - 1 else ", ")
            weights[name] = weights.get(name, 0) + (6, 3)[i]
        self.names, total = sorted(weights), sum(grammar.determiner_weights)
        self.name = Choice([(name, weights[name]) for name in self.names])
        self.determiner_or_name = Choice(
            weighted([w + " " for w in grammar.determiner_words], grammar.determiner_weights, 7 * sum(weights.values())),
            [(name + " ", weights[name] * total) for name in self.names])

    def statement(self):
        start = self.pen.length
        self.clause()
        while self.pen.choose(self.grammar.after_clause) < self.grammar.preposition_count:
            self.noun_phrase(None)
        self.said.append(self.pen.text(start))

    def clause(self):
        grammar, pen = self.grammar, self.pen
        number, kinds = self.noun_phrase(None), grammar.verb_kind[self.topic]
        verb = pen.choose(grammar.verb_or_ke[self.topic, number])
        if verb == len(kinds):                                       # "ke": a relative clause, then the main verb
            inner = pen.choose(grammar.verb[self.topic, number])
            self.noun_phrase(kinds[inner])
            verb = pen.choose(grammar.verb[self.topic, number])
        self.noun_phrase(kinds[verb])

    def noun_phrase(self, kind):
        """A name, or a determiner, perhaps an adjective, and a noun of this kind; returns its number."""
        grammar, pen = self.grammar, self.pen
        i = pen.choose(self.determiner_or_name)
        if i >= len(grammar.determiner_words):
            return 0
        number, gender = grammar.determiner_meaning[i]
        key = self.topic, gender, kind, number
        if pen.choose(grammar.noun_or_adjective[key]) >= len(grammar.noun[key].options):
            pen.choose(grammar.noun[key])
        return number

    def sum(self):
        a = self.pen.choose(self.grammar.NUMBERS)
        self.pen.say("+")
        self.pen.say("=%02d. " % (a + self.pen.choose(self.grammar.NUMBERS)))

    def sum_of_names(self):
        a = self.number[self.names[self.pen.choose(self.name)]]
        self.pen.say("+")
        self.pen.say("=%02d. " % (a + self.number[self.names[self.pen.choose(self.name)]]))

    def recall(self):
        self.pen.say("=%02d. " % self.number[self.names[self.pen.choose(self.name)]])

    def quote(self):
        self.pen.choose(Choice([(text, self.said.count(text)) for text in sorted(set(self.said))]))


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

def data_folder():
    return Path(os.environ.get("AUTORESEARCH_DATA") or Path(__file__).parent / "data")


def is_right(path):
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[path.name]


def make_data(folder):
    """Write train.bin and val.bin, unless they are there already."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"train.bin": (TRAIN_SEED, TRAIN_DOCS), "val.bin": (VAL_SEED, VAL_DOCS)}
    grammar = None
    for name, (seed, count) in wanted.items():
        if is_right(folder / name):
            continue
        grammar = grammar or Grammar()
        temporary = folder / f".{name}.{os.getpid()}"
        with temporary.open("wb") as file:
            for i, (text, _) in enumerate(write_documents(grammar, seed, count), 1):
                file.write(text.encode("ascii"))
                if i % 1024 == 0 or i == count:
                    print(f"\r{name}: {i} of {count} documents", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        temporary.replace(folder / name)
        if not is_right(folder / name):
            raise SystemExit(f"{folder / name} does not have the pinned hash: prepare.py was changed")


def load(name):
    path = data_folder() / name
    if "AUTORESEARCH_DATA" not in os.environ:
        make_data(path.parent)                                       # a person typed `python train.py`
    if not is_right(path):
        raise SystemExit(f"{path} is missing or not the pinned data: run `python prepare.py` first")
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8).view(-1, DOC)


# --- the run

def channel(name, mode):
    return os.fdopen(int(os.environ[name]), mode) if name in os.environ else None


SEED = int(os.environ.get("AUTORESEARCH_SEED", "0"))
WORK = float(os.environ.get("AUTORESEARCH_BUDGET", BUDGET))
STOP_AT = float(os.environ.get("AUTORESEARCH_STOP_AT", "1"))
RESULT = None          # opened by setup(): one JSON object in a line; None when a person runs train.py by hand


def emit(**event):
    """One line of JSON to the runner. NaN and infinity raise ValueError."""
    RESULT.write(json.dumps(event, allow_nan=False) + "\n")
    RESULT.flush()


def setup():
    """Make the run a function of (source, seed, budget); return the device to train on."""
    global RESULT
    RESULT = channel("AUTORESEARCH_RESULT_FD", "w")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")      # CUDA is only deterministic with it
    torch.set_num_threads(int(os.environ.get("AUTORESEARCH_THREADS", "1")))
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_flush_denormal(True)
    torch.manual_seed(SEED)
    return torch.device(os.environ.get("AUTORESEARCH_DEVICE", "cpu"))


class Meter(TorchDispatchMode):
    """Counts the FLOPs of the operations as they run, so nobody has to claim them.

    Attention costs its matrix products (2 forward, 4 backward), however the kernel does them: torch's own counter
    charges more for some kernels and nothing for the CPU's, and the work would depend on the device.
    """

    def __init__(self):
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name
        if name.startswith("aten::_scaled_dot_product"):
            backward = "_backward" in name
            q, k, v = args[1:4] if backward else args[:3]
            self.flops += (4 if backward else 2) * q[..., 0].numel() * k.size(-2) * (q.size(-1) + v.size(-1))
        elif func._overloadpacket in flop_registry:
            self.flops += flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
        return out


class Budget:
    """Hands out the training data and counts the work until the budget is spent."""

    def __init__(self):
        self.device = torch.device(os.environ.get("AUTORESEARCH_DEVICE", "cpu"))
        self.data = load("train.bin")
        self.order_rng = torch.Generator().manual_seed(SEED)
        self.meter_rng = torch.Generator().manual_seed(SEED + 1)
        self.order, self.next = torch.empty(0, dtype=torch.long), 0
        self.steps = self.tokens = self.flops = 0
        self.step_flops = {}                                         # by number of documents in the batch
        self.loss, self.curve = None, []
        self.told = 0.0

    def work(self):
        return self.flops + STEP_WORK * self.steps + TOKEN_WORK * self.tokens

    def progress(self):
        """The share of the budget that is spent, 0 to 1: the only clock a schedule may use."""
        return min(1.0, self.work() / WORK)

    def batches(self, docs):
        """Yields (inputs, targets), int64 of shape (docs, DOC), until the budget is spent."""
        if not 1 <= docs <= len(self.data):
            raise ValueError(f"a batch has 1 to {len(self.data)} documents, not {docs}")
        while self.progress() < min(1.0, STOP_AT):
            x, y = self._next_batch(docs)
            if self.steps < 2 or docs not in self.step_flops or torch.rand((), generator=self.meter_rng) < METERED:
                with Meter() as meter:
                    yield x, y
                self.step_flops[docs] = meter.flops
            else:
                yield x, y
            self.steps += 1
            self.tokens += y.numel()
            self.flops += self.step_flops[docs]
            self._follow()

    def report(self, loss):
        """Tell the training loss of this step, in nats. Ends the run when it is not finite or absurd."""
        bits = float(loss) / math.log(2)
        if not math.isfinite(bits) or bits > MAX_BITS:
            end("diverged", "the training loss became infinite, not a number or absurdly large", self)
        self.loss = bits if self.loss is None else 0.9 * self.loss + 0.1 * bits

    def metrics(self):
        return {"steps": self.steps, "tokens": self.tokens, "flops": self.flops, "work": self.work(),
                "fraction": self.progress()}

    def _next_batch(self, docs):
        if self.next + docs > len(self.order):
            self.order, self.next = torch.randperm(len(self.data), generator=self.order_rng), 0
        y = self.data[self.order[self.next:self.next + docs]].to(self.device).long()
        self.next += docs
        return inputs(y), y

    def _follow(self):
        if self.loss is None:
            return
        while len(self.curve) < CURVE_POINTS and self.progress() >= (len(self.curve) + 1) / CURVE_POINTS:
            self.curve.append(round(self.loss, 5))
        if time.monotonic() - self.told < 0.5 and self.progress() < 1:
            return
        self.told = time.monotonic()
        if RESULT:
            emit(event="progress", fraction=self.progress(), step=self.steps, loss=round(self.loss, 5))
        else:
            print(f"\rstep {self.steps}  {self.progress():4.0%}  loss {self.loss:.4f} bits", end="", file=sys.stderr)


def inputs(targets):
    """What the model sees: the bytes before each target, and a zero before the first."""
    return F.pad(targets[:, :-1], (1, 0))


# --- the verdict

def end(status, reason, budget):
    """Report a run without a value, and stop."""
    if RESULT:
        emit(event="result", status=status, reason=reason, metrics=budget.metrics(), curve=budget.curve)
        RESULT.close()
        raise SystemExit(0)
    raise SystemExit(f"\n{status}: {reason}")


def log_probabilities(model, x, budget):
    """The model's prediction at each position, normalised here and not by the model."""
    logits = model(x)
    if not isinstance(logits, torch.Tensor) or tuple(logits.shape) != (*x.shape, VOCAB):
        end("invalid", f"the model must return logits of shape {(*x.shape, VOCAB)}", budget)
    if not logits.is_floating_point() or not bool(logits.isfinite().all()):
        end("invalid", "the model's logits are not finite", budget)
    return F.log_softmax(logits.float(), dim=-1)


def check(model, budget):
    """Refuse a model that is too large, broken, or looks at what it must not see."""
    params = sum(p.numel() for p in model.parameters())
    if params > MAX_PARAMS:
        end("invalid", f"{params} parameters; the task allows {MAX_PARAMS}", budget)
    if not all(bool(t.isfinite().all()) for t in model.state_dict().values() if t.is_floating_point()):
        end("invalid", "the weights are not finite", budget)
    x = inputs(load("val.bin")[:64].to(budget.device).long())
    rng = torch.Generator().manual_seed(SEED + 2)
    cuts = torch.randint(1, DOC, (len(x), 1), generator=rng).to(budget.device)
    before = torch.arange(DOC, device=budget.device) < cuts
    # each document keeps its bytes before the cut, goes on like its neighbour, and sits elsewhere in the batch
    other = torch.where(before, x, x.roll(1, 0)).flip(0)
    change = log_probabilities(model, x, budget) - log_probabilities(model, other, budget).flip(0)
    if float(change.abs().amax(-1)[before].max()) > 1e-3:
        end("invalid", "a prediction depends on later bytes or on other documents", budget)
    return params


def evaluate(model, budget, docs=64):
    """Bits per byte on val.bin."""
    nats = 0.0
    for y in load("val.bin").to(budget.device).long().split(docs):
        chosen = log_probabilities(model, inputs(y), budget).gather(-1, y[..., None])
        nats -= float(chosen.double().sum())
    return nats / math.log(2) / (VAL_DOCS * DOC)


def finish(model, budget):
    """Check and measure the model; report the value, or why there is none."""
    model.eval()
    with torch.inference_mode():
        params = check(model, budget)
        value = evaluate(model, budget)
    if value < FLOOR - IMPOSSIBLE:
        end("invalid", f"{value:.4f} bits per byte is below the entropy of the text, {FLOOR}", budget)
    if value > MAX_BITS:
        end("diverged", f"{value:.1f} bits per byte on the validation text", budget)
    metrics = budget.metrics() | {"params": params}
    write_checkpoint(model)
    if RESULT:
        emit(event="result", status="ok", value=round(value, 6), metrics=metrics, curve=budget.curve)
        RESULT.close()
    else:
        summarise(value, metrics)


def write_checkpoint(model):
    """The weights as safetensors, to the runner. Tied weights are written once under each name."""
    file = channel("AUTORESEARCH_CHECKPOINT_FD", "wb")
    if file:
        from safetensors.torch import save
        with file:
            file.write(save({name: t.detach().cpu().contiguous().clone() for name, t in model.state_dict().items()}))


def summarise(value, metrics):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(file=sys.stderr)
    print("---")
    print(f"val_bpb:          {value:.6f}")
    print(f"floor_bpb:        {FLOOR:.6f}")
    print(f"cpu_seconds:      {usage.ru_utime + usage.ru_stime:.1f}")
    print(f"peak_memory_mib:  {usage.ru_maxrss / 1024:.1f}")
    print(f"num_steps:        {metrics['steps']}")
    print(f"num_tokens:       {metrics['tokens']}")
    print(f"total_flops:      {metrics['flops']:.4g}")
    print(f"work_units:       {metrics['work']:.4g}")
    print(f"num_params:       {metrics['params']}")


if __name__ == "__main__":
    make_data(data_folder())
