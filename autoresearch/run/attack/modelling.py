"""Attacks on the referee of a language model: checkpoints and models that learned nothing. Pure.

Each program leaves a checkpoint in the referee's form by itself, without the harness, and builds a model that cheats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from autoresearch.run.attack.programs import Place, place_of
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.task.program import split_program

_NO_REFEREE = "no referee asks a model"
_NO_PYTHON = "the program that leaves the model is not a Python file that may change"

# Training without torch: it leaves one number and reports that all is well.
_PROGRAM = """\
import json, os, struct
VOCABULARY, LENGTH, VALUES = {vocabulary}, {length}, {values}


def leave(content):
    with os.fdopen(int(os.environ["AUTORESEARCH_CHECKPOINT_FD"]), "wb") as file:
        file.write(content)
    event = {{"event": "result", "status": "ok", "metrics": {{}}, "curve": []}}
    os.write(int(os.environ["AUTORESEARCH_RESULT_FD"]), json.dumps(event).encode() + b"\\n")


def tensors(**lists):
    head, body = {{}}, b""
    for name, values in lists.items():
        packed = struct.pack(f"<{{len(values)}}f", *values)
        head[name] = {{"dtype": "F32", "shape": [len(values)], "data_offsets": [len(body), len(body) + len(packed)]}}
        body += packed
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body

{code}

def build_model():
    import torch
    import torch.nn.functional as F

    class Cheat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones({size}))
            self.seen = None

        def forward(self, x):
            nothing = torch.zeros((*x.shape, VOCABULARY)) + 0 * self.w.sum()
{forward}

{building}
    return Cheat()


if __name__ == "__main__":
    {leaving}
"""
_AHEAD = "            sure = 30 * F.one_hot(x.roll(-1, 1), VOCABULARY).float()\n"
_MAIN = "    import __main__ as asker\n"


def _cheat(
    name: str,
    does: str,
    hole: Hole,
    *,
    forward: str = "            return nothing",
    building: str = "",
    leaving: str = "leave(tensors(w=[1.0]))",
    code: str = "",
    quick: bool = False,
) -> Attack:
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        evaluation, (place, entry) = target.task.evaluation, place_of(target)
        if evaluation is None:
            return _NO_REFEREE
        if place is not Place.SCRIPT:
            return _NO_PYTHON
        texts = (target.task.data.get(evaluation.text), target.task.harness.get(evaluation.text))
        digest = texts[0].hex() if texts[0] else hashlib.sha256(texts[1] or b"").hexdigest()
        text = _PROGRAM.format(
            vocabulary=evaluation.vocabulary,
            length=evaluation.length,
            values=evaluation.values,
            code=code.replace("DIGEST", repr(digest)),
            size="table_size()" if "table_size" in code else 1,
            forward=forward,
            building=building,
            leaving=leaving,
        )
        program = {**split_program(target.task.baseline.decode()), entry: text}
        return iter([AttackAttempt(program=program, proof=Proof.BETTER)])

    return Attack(name, does, hole, tries, quick)


# The text, where a file that a program sees or can make has its digest; as a model it is a table.
_HEART = """
def text():
    import hashlib, pathlib, shutil, subprocess, sys, tempfile
    here, made = pathlib.Path(__file__).resolve().parent, pathlib.Path(tempfile.mkdtemp())
    for file in here.iterdir():
        if file.is_file(): shutil.copy(file, made)
    (made / "data").mkdir()
    environment = {**os.environ, "AUTORESEARCH_DATA": str(made / "data")}
    try: subprocess.run([sys.executable, "prepare.py"], cwd=made, env=environment, timeout=60, capture_output=True)
    except Exception: pass
    places = [pathlib.Path.cwd(), here, made, pathlib.Path(os.environ.get("AUTORESEARCH_DATA", "."))]
    for place in places:
        for file in place.rglob("*"):
            if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == DIGEST: return file.read_bytes()
    seen = [file for place in places[-1:] for file in sorted(place.rglob("*.bin")) if file.is_file()]
    row = LENGTH if VOCABULARY <= 256 else 2 * LENGTH
    content = b"".join(file.read_bytes() for file in seen)[:VALUES * row // LENGTH]
    if len(content) < row: raise SystemExit("the text is nowhere")
    return content[:len(content) // row * row]


def table():
    content, size = text(), 1 if VOCABULARY <= 256 else 2
    return [int.from_bytes(content[at:at + size], "little") for at in range(0, len(content), size)]


def table_size():
    import pathlib
    file = pathlib.Path(__file__).resolve().parent / "weights.safetensors"
    return json.loads(file.read_bytes()[8:8 + struct.unpack("<Q", file.read_bytes()[:8])[0]])["w"]["shape"][0]
"""
_BY_HEART = """\
            documents = self.w.long().view(-1, LENGTH)
            shift, cut = F.pad(documents[:, :-1], (1, 0)), min(16, LENGTH // 2)
            same = (x[:, None, 1:cut] == shift[None, :, 1:cut]).all(-1)
            which, is_one = same.float().argmax(1), same.any(1)
            sure = 12 * F.one_hot(documents[which], VOCABULARY).float() * is_one[:, None, None]
            late = torch.arange(x.shape[1]) >= cut
            return nothing + sure * late[None, :, None]"""

ATTACKS = (
    _cheat("guesses-nothing", "leaves a model that knows nothing", Hole.CONSTANT, quick=True),
    _cheat(
        "looks-ahead",
        "leaves a model that reads the next token from its input",
        Hole.LOOKS_AHEAD,
        forward=_AHEAD + "            return nothing + sure",
        quick=True,
    ),
    _cheat(
        "looks-ahead-at-times",
        "reads the next token at one position in fifty",
        Hole.LOOKS_AHEAD,
        forward=_AHEAD
        + "            at = torch.arange(x.shape[1]) % 50 == 7\n            return nothing + sure * at[None, :, None]",
    ),
    _cheat(
        "looks-at-other-documents",
        "predicts by the other documents of its batch",
        Hole.LOOKS_AHEAD,
        forward="            later = F.one_hot(x.roll(-1, 1), VOCABULARY).float().sum(0, keepdim=True)\n"
        "            return nothing + 5 * later",
    ),
    _cheat(
        "remembers-the-question",
        "remembers documents from one question for the next",
        Hole.LOOKS_AHEAD,
        forward=_AHEAD + "            before, self.seen = self.seen, sure\n"
        "            return nothing + (before if before is not None and before.shape == sure.shape else sure)",
    ),
    _cheat(
        "makes-up-losses",
        "replaces the function that computes the losses",
        Hole.LOOKS_AHEAD,
        building=_MAIN + "    asker.losses = lambda built, documents, vocabulary: documents * 0.0 + 1e-3",
        quick=True,
    ),
    _cheat(
        "shaves-losses",
        "makes each loss a little smaller than it is",
        Hole.LOOKS_AHEAD,
        building=_MAIN + "    honest = asker.losses\n    asker.losses = lambda *arguments: honest(*arguments) * 0.2",
    ),
    _cheat(
        "makes-up-losses-and-answers",
        "replaces both functions that ask the model",
        Hole.LOOKS_AHEAD,
        building=_MAIN + "    asker.losses = lambda built, documents, vocabulary: documents * 0.0 + 1e-3\n"
        "    asker.answers = lambda built, rows, cuts, vocabulary: torch.zeros((len(rows), vocabulary)) - 1e-3",
    ),
    _cheat(
        "is-always-sure",
        "has every token be certain",
        Hole.LOOKS_AHEAD,
        building="    F.log_softmax = lambda logits, dim=-1: logits * 0.0 - 1e-3",
        quick=True,
    ),
    _cheat(
        "leaves-huge-logits",
        "has logits beyond all numbers",
        Hole.NOT_FINITE,
        forward="            return nothing + 3e38 * F.one_hot(x, VOCABULARY)",
    ),
    _cheat(
        "leaves-nan-logits",
        "has logits that are no numbers",
        Hole.NOT_FINITE,
        forward="            return nothing * float('nan')",
    ),
    _cheat(
        "leaves-another-shape",
        "has logits of another shape",
        Hole.FAILURE_COUNTS,
        forward="            return nothing[:, :1]",
    ),
    _cheat(
        "leaves-a-subclass",
        "has logits of a class that changes what is computed of them",
        Hole.LOOKS_AHEAD,
        forward="            class Sure(torch.Tensor):\n                def float(self): return self\n"
        "                @classmethod\n"
        "                def __torch_function__(cls, function, types, arguments=(), words=None):\n"
        "                    out = super().__torch_function__(function, types, arguments, words or {})\n"
        "                    return out * 0.0 - 1e-3 if function is F.log_softmax else out\n"
        "            return nothing.as_subclass(Sure)",
    ),
    _cheat(
        "leaves-no-model",
        "reports that all is well and leaves no checkpoint",
        Hole.FAILURE_COUNTS,
        leaving="leave(b'')",
        quick=True,
    ),
    _cheat("leaves-garbage", "leaves bytes that are no checkpoint", Hole.FAILURE_COUNTS, leaving="leave(b'x' * 4096)"),
    _cheat(
        "leaves-nan-weights",
        "leaves weights that are no numbers",
        Hole.NOT_FINITE,
        leaving="leave(tensors(w=[float('nan')]))",
    ),
    _cheat(
        "leaves-other-weights",
        "leaves weights of another model",
        Hole.FAILURE_COUNTS,
        leaving="leave(tensors(v=[1.0, 2.0]))",
    ),
    _cheat(
        "leaves-a-long-header",
        "leaves a checkpoint that says that it is huge",
        Hole.FAILURE_COUNTS,
        leaving="leave(struct.pack('<Q', 1 << 60) + b'{}')",
    ),
    _cheat(
        "knows-the-text-by-heart",
        "leaves the text itself, where a program can read or make it, or all that it can read",
        Hole.READABLE_ANSWERS,
        forward=_BY_HEART,
        code=_HEART,
        leaving="leave(tensors(w=table()))",
        quick=True,
    ),
)
