"""prepare.py: the fixed part of the task. Makes the data, counts the budget, ends the run. Nobody edits it.

`python prepare.py` makes the data (about two seconds), `python prepare.py fresh` new text in the same language, and
`python prepare.py world` the data of a world that no program can know: training and validation text in a language that
follows from the seed. Others check a change there: parent and child learn that language within the same budget.
train.py imports the rest:

    setup()                        seed, threads, determinism; returns the device
    Budget().batches(docs)         training batches until the budget is spent
    finish(model, budget)          checks the model and hands it to the referee, who measures it
    VOCAB, DOC                     number of byte values, bytes in a document

train.py also has build_model(): the referee loads the weights into what that returns, in a process of its own. Under
the runner a run never sees val.bin, nor grammar.py, which could write it.

A run is a function of (source, seed, budget): no clock reaches train.py. The budget is counted in work units, so that
a slow machine gets the same result as a fast one, only later. Work is FLOPs + 1.15e6 per operation + 186 per score of
attention: about the processor time of each.

The entropy of the text is known exactly (see grammar.py): FLOOR is what a perfect model would score on val.bin, and
nothing honest scores less.
"""
import array, hashlib, json, math, os, resource, sys, time
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
FRESH = 1024           # documents that nobody has seen before
FLOOR = 0.762866       # bits per byte: the exact code length of val.bin
WORK = 2.1e12          # work units, when the environment names no other number
OPERATION_WORK = 1.15e6  # what an operation costs besides its FLOPs, and one score of attention: fitted to CPU time
SCORE_WORK = 186
METERED = 1 / 8        # share of the steps whose work is counted; the others are charged like the last one counted
CURVE_POINTS = 64
MAX_PARAMS = 8_000_000
MAX_BITS = 40.0        # a training loss above this has diverged

# --- data files

def is_right(path):
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == FILES[path.name][2]

def make_data(folder):
    """Write train.bin and val.bin, unless they are there already."""
    from grammar import Grammar, write_documents
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

def make_fresh(folder):
    """Write text from the seed given, and what each document costs at best: of this text and of val.bin."""
    from grammar import Grammar, write_documents
    grammar, (val_seed, val_count, _) = Grammar(), FILES["val.bin"]
    texts, bits = zip(*write_documents(grammar, SEED, FRESH))
    (folder / "fresh.bin").write_text("".join(texts), "ascii")
    (folder / "fresh.bits").write_bytes(array.array("d", bits).tobytes())
    val_bits = [cost for _, cost in write_documents(grammar, val_seed, val_count)]
    (folder / "text.bits").write_bytes(array.array("d", val_bits).tobytes())

def make_world(folder):
    """Write the files of a world from the seed given, and what each document of val.bin costs at best: world.bits."""
    from grammar import Grammar, write_documents
    grammar = Grammar(SEED)
    for name, (seed, count, _) in FILES.items():
        texts, bits = zip(*write_documents(grammar, SEED + seed, count))
        (folder / name).write_text("".join(texts), "ascii")
        if name == "val.bin":
            (folder / "world.bits").write_bytes(array.array("d", bits).tobytes())

def load(name):
    if "AUTORESEARCH_DATA" not in os.environ:                        # a person typed `python train.py`
        make_data(DATA)
        if not is_right(DATA / name):
            raise SystemExit(f"{DATA / name} is not the pinned data: remove it")
    if not (DATA / name).is_file():
        raise SystemExit(f"{DATA / name} is missing: run `python prepare.py` first")
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
    """Counts FLOPs and work of the operations as they run, so nobody has to claim them.

    Attention costs its matrix products (2 forward, 4 backward) and its scores (1 and 2), however it is written: torch's
    own counter charges more for some kernels and nothing for the CPU's, and the work would depend on the device.
    """
    flops = extra = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func._schema.name
        passes = 2 if "_backward" in name else 1
        fused = name.startswith("aten::_scaled_dot_product") and "_math" not in name
        counted = func._overloadpacket in flop_registry
        if torch.is_inference_mode_enabled() and not fused and not counted:
            with self:                                               # inference mode hides the products inside
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        if not func.is_view:
            self.extra += OPERATION_WORK
        if fused:
            q, k, v = args[passes - 1:passes + 2]                    # behind the gradient, where there is one
            scores = passes * q[..., 0].numel() * k.size(-2)
            self.extra += SCORE_WORK * scores
            self.flops += 2 * scores * (q.size(-1) + v.size(-1))
        elif counted:
            self.flops += flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
        elif name.startswith(("aten::_softmax", "aten::_safe_softmax")):
            self.extra += SCORE_WORK * passes * out.numel()
        return out

class Budget:
    """Hands out the training data and counts the work until the budget is spent."""
    def __init__(self):
        self.data = load("train.bin")
        self.order, self.next, self.order_rng = [], 0, torch.Generator().manual_seed(SEED)
        self.meter_rng = torch.Generator().manual_seed(SEED + 1)
        self.steps = self.tokens = self.flops = self.work = 0
        self.counted = {}                                            # by number of documents in the batch
        self.loss, self.curve, self.told = None, [], 0.0

    def progress(self):
        """The share of the budget that is spent, 0 to 1: the only clock a schedule may use."""
        return min(1.0, self.work / WORK)

    def metrics(self):
        return {"steps": self.steps, "tokens": self.tokens, "flops": self.flops, "work": self.work}

    def batches(self, docs):
        """Yields (inputs, targets), int64 of shape (docs, DOC), until the budget is spent."""
        if not 1 <= docs <= len(self.data):
            raise ValueError(f"a batch has 1 to {len(self.data)} documents, not {docs}")
        while self.progress() < min(1.0, STOP_AT):
            if self.next + docs > len(self.order):
                self.order, self.next = torch.randperm(len(self.data), generator=self.order_rng), 0
            y = self.data[self.order[self.next:self.next + docs]].long()
            self.next += docs
            if self.steps < 2 or docs not in self.counted or torch.rand((), generator=self.meter_rng) < METERED:
                with Meter() as meter:
                    yield inputs(y), y
                self.counted[docs] = meter.flops, meter.flops + meter.extra
            else:
                yield inputs(y), y
            flops, work = self.counted[docs]
            self.steps += 1
            self.tokens += y.numel()
            self.flops += flops
            self.work += work
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
    """Check the model and hand its weights to the referee; a person who typed `python train.py` gets the number here."""
    model.eval()
    with torch.inference_mode():
        params = check(model, budget, inputs(budget.data[:32].long()))
    metrics = budget.metrics() | {"params": params}
    if file := channel("AUTORESEARCH_CHECKPOINT_FD", "wb"):
        from safetensors.torch import save                           # clones: it refuses weights that are tied
        with file:
            file.write(save({name: t.detach().cpu().contiguous().clone() for name, t in model.state_dict().items()}))
    if RESULT:
        emit(event="result", status="ok", metrics=metrics, curve=budget.curve)
        sys.stdout.flush()
        os._exit(0)                                                  # taking torch down costs a quarter of a second
    texts, nats = load("val.bin").long().split(32), 0.0
    with torch.inference_mode():
        for y in texts:
            nats -= log_probabilities(model, inputs(y), budget).gather(-1, y[..., None]).double().sum().item()
    value = nats / math.log(2) / sum(y.numel() for y in texts)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cost = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_memory_mib": usage.ru_maxrss / 1024}
    print(file=sys.stderr, flush=True)
    print("---")
    for name, number in ({"val_bpb": value, "floor_bpb": FLOOR} | cost | metrics).items():
        print(f"{name + ':':<18}{number:.6g}" if number < 1e5 else f"{name + ':':<18}{number:.0f}")

if __name__ == "__main__":
    if sys.argv[1:] == ["fresh"]:
        make_fresh(DATA)
    elif sys.argv[1:] == ["world"]:
        make_world(DATA)
    else:
        make_data(DATA)
