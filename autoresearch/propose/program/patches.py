"""The texts of the structural patches: what each is called, why it may help, and what it replaces.

Structural patches for the shipped ``train.py``: known ideas of the field, as SEARCH/REPLACE edits.

A patch is offered only where all its search texts occur exactly once, so none is offered for a program that
another hand rewrote there. Patches are applied in the order of their names; every two of them fit together.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from autoresearch.propose.program.edits import Block, EditError, apply_blocks


@dataclass(frozen=True, slots=True)
class Patch:
    """One structural idea."""

    name: str
    label: str
    """Two or three words for the title of a run."""
    title: str
    rationale: str
    blocks: tuple[Block, ...]


def _patch(name: str, label: str, title: str, rationale: str, *edits: tuple[str, str]) -> Patch:
    return Patch(name, label, title, rationale, tuple(Block(search, replace) for search, replace in edits))


_MUON = '''
def orthogonalize(g, steps=5):
    """Newton-Schulz iteration: the nearest orthogonal matrix, roughly."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g / (g.norm() + 1e-7)
    tall = x.size(0) > x.size(1)
    x = x.T if tall else x
    for _ in range(steps):
        m = x @ x.T
        x = a * x + (b * m + c * m @ m) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay=0.0, momentum=0.95):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                state = self.state[p]
                if "mean" not in state:
                    state["mean"] = torch.zeros_like(p)
                state["mean"].lerp_(p.grad, 1 - g["momentum"])
                u = orthogonalize(p.grad.lerp(state["mean"], g["momentum"]))
                p.mul_(1 - g["lr"] * g["weight_decay"]).add_(u, alpha=-g["lr"] * 0.2 * max(p.shape) ** 0.5)


def optimizers(model):'''

_ALL = (
    _patch(
        "adam-eps",
        "smaller Adam epsilon",
        "Adam with a smaller epsilon",
        "Rarely used embedding rows have tiny gradients, which the usual epsilon of 1e-8 damps.",
        ("betas=(BETA1, BETA2), fused=True)", "betas=(BETA1, BETA2), eps=1e-12, fused=True)"),
    ),
    _patch(
        "attention-gate",
        "attention gate",
        "a sigmoid gate on the attention output",
        "A gate that depends on the position lets a head say nothing when it found nothing.",
        (
            "        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)\n",
            "        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)\n"
            "        self.gate = nn.Linear(WIDTH, WIDTH, bias=False)\n",
        ),
        ("        return self.proj(", "        return self.proj(2 * torch.sigmoid(self.gate(x)) * "),
    ),
    _patch(
        "averaging",
        "weight averaging",
        "measure a running average of the weights",
        "The average over the last steps lies nearer to the middle of the valley than the last step does.",
        (
            "    budget = prepare.Budget()\n",
            "    budget = prepare.Budget()\n    mean = [p.detach().clone() for p in model.parameters()]\n",
        ),
        (
            "        budget.report(loss.item())\n",
            "        for m, p in zip(mean, model.parameters()):\n"
            "            m.lerp_(p.detach(), 0.1)\n"
            "        budget.report(loss.item())\n",
        ),
        (
            "    prepare.finish(model, budget)\n",
            "    for m, p in zip(mean, model.parameters()):\n"
            "        p.data.copy_(m)\n"
            "    prepare.finish(model, budget)\n",
        ),
    ),
    _patch(
        "bigram",
        "bigram table",
        "a hashed embedding for each pair of bytes",
        "The first layer need not spend attention on the byte before: a table knows the pair at once.",
        (
            "        self.blocks = nn.ModuleList(",
            "        self.bigram = nn.Embedding(2048, WIDTH)\n        self.blocks = nn.ModuleList(",
        ),
        (
            "self.embed(x)\n",
            "self.embed(x) + self.bigram((F.pad(x[:, :-1], (1, 0)) * 633 + x) % 2048)\n",
        ),
    ),
    _patch(
        "cosine",
        "cosine schedule",
        "a cosine instead of a straight warm-down",
        "The rate stays high for longer and lands softly.",
        (
            "        return FINAL_LR + (1 - FINAL_LR) * (1 - p) / WARMDOWN\n",
            "        return FINAL_LR + (1 - FINAL_LR) * 0.5 * (1 - math.cos(math.pi * (1 - p) / WARMDOWN))\n",
        ),
    ),
    _patch(
        "embed-norm",
        "embedding norm",
        "normalise the embedding",
        "Blocks then see inputs of the same size whatever the embedding's rate and start.",
        (
            "        for b in self.blocks:\n            x = ",
            "        x = norm(x)\n        for b in self.blocks:\n            x = ",
        ),
    ),
    _patch(
        "key-shift",
        "key shift",
        "half of each key comes from the byte before",
        "A key that knows its left neighbour lets one layer find what followed last time: copying and recall.",
        (
            "HEAD_DIM).permute(2, 0, 3, 1, 4)\n",
            "HEAD_DIM).permute(2, 0, 3, 1, 4)\n"
            "        k = torch.where(torch.arange(HEAD_DIM, device=x.device) % 2 == 0, k, "
            "F.pad(k, (0, 0, 1, 0))[..., :-1, :])\n",
        ),
    ),
    _patch(
        "mlp-gate",
        "MLP gate",
        "a sigmoid gate on the hidden layer",
        "Gated feed-forward layers learn more from the same number of steps.",
        (
            "        self.down = nn.Linear(h, WIDTH, bias=False)\n",
            "        self.down = nn.Linear(h, WIDTH, bias=False)\n"
            "        self.gate = nn.Linear(WIDTH, h, bias=False)\n",
        ),
        ("        return self.down(", "        return self.down(2 * torch.sigmoid(self.gate(x)) * "),
    ),
    _patch(
        "muon",
        "Muon optimizer",
        "Muon for the matrices of the blocks",
        "Steps that are orthogonal move all directions of a matrix alike and need fewer of them.",
        ("\ndef optimizers(model):", _MUON),
        (
            "    return [torch.optim.AdamW([dict(params=mats, lr=LR, weight_decay=WEIGHT_DECAY),\n"
            "                               dict(",
            "    return [Muon(mats, lr=LR, weight_decay=WEIGHT_DECAY),\n            torch.optim.AdamW([dict(",
        ),
    ),
    _patch(
        "ngram-logits",
        "n-gram logits",
        "a table from the last two bytes straight to the logits",
        "What two bytes alone predict is learnt by a table, and the network learns only the rest.",
        (
            "            nn.init.normal_(p, std=INIT_STD)\n",
            "            nn.init.normal_(p, std=INIT_STD)\n"
            "        self.table = nn.Embedding(2048, prepare.VOCAB)\n"
            "        nn.init.zeros_(self.table.weight)\n",
        ),
        (
            "    def forward(self, x):\n        x = self.",
            "    def forward(self, x):\n"
            "        direct = self.table((F.pad(x[:, :-1], (1, 0)) * 633 + x) % 2048)\n"
            "        x = self.",
        ),
        ("        return self.head(", "        return direct + self.head("),
    ),
    _patch(
        "parallel",
        "parallel blocks",
        "attention and feed-forward side by side",
        "One normalisation for both, and a shorter way for the gradient.",
        (
            "        x = x + self.attn(norm(x))\n        x = x + self.mlp(norm(x))\n",
            "        h = norm(x)\n        x = x + self.attn(h) + self.mlp(h)\n",
        ),
    ),
    _patch(
        "qk-norm",
        "query-key norm",
        "normalise queries and keys",
        "Attention stays soft at large rates.",
        ("q, k = rope(q), rope(k)", "q, k = norm(rope(q)), norm(rope(k))"),
    ),
    _patch(
        "relu2",
        "squared ReLU",
        "squared ReLU instead of GELU",
        "Sparser and sharper hidden units.",
        ("F.gelu(self.up(x))", "F.relu(self.up(x)).square()"),
    ),
    _patch(
        "short-conv",
        "short convolution",
        "each block first mixes in the three bytes before",
        "Spelling is local: a short causal convolution does it for almost no work.",
        (
            "\nclass Block(nn.Module):\n",
            "\ndef earlier(x, weight):\n"
            '    """The bytes 1, 2, ... places before, each times its row of weights, summed."""\n'
            "    return sum(F.pad(x, (0, 0, i, 0))[:, :-i] * w for i, w in enumerate(weight, 1))\n\n\n"
            "class Block(nn.Module):\n",
        ),
        (
            "        self.attn, self.mlp = Attention(), MLP()\n",
            "        self.attn, self.mlp = Attention(), MLP()\n"
            "        self.mix = nn.Parameter(torch.zeros(3, 1, WIDTH))\n",
        ),
        (
            "        x = x + self.attn(",
            "        x = x + earlier(x, self.mix)\n        x = x + self.attn(",
        ),
    ),
    _patch(
        "softcap",
        "logit soft cap",
        "a soft cap on the logits",
        "No logit runs away early in training.",
        ("self.head(norm(x))", "15.0 * torch.tanh(self.head(norm(x)) / 15.0)"),
    ),
    _patch(
        "tied",
        "tied embeddings",
        "one table for embedding and head",
        "Each byte's vector is learnt from both ends.",
        (
            "        self.head = nn.Linear(WIDTH, prepare.VOCAB, bias=False)\n",
            "        self.head = nn.Linear(WIDTH, prepare.VOCAB, bias=False)\n"
            "        self.head.weight = self.embed.weight\n",
        ),
    ),
    _patch(
        "token-shift",
        "token shift",
        "half of the attention's input comes from the byte before",
        "Queries, keys and values know their left neighbour for free.",
        (
            "        B, T, C = x.shape\n",
            "        B, T, C = x.shape\n"
            "        x = torch.cat([x[..., :C // 2], F.pad(x[..., C // 2:], (0, 0, 1, 0))[:, :-1]], -1)\n",
        ),
    ),
    _patch(
        "trigram",
        "trigram table",
        "a hashed embedding for the last three bytes",
        "Most of a short word is known from three letters.",
        (
            "        self.embed = nn.Embedding(prepare.VOCAB, WIDTH)\n",
            "        self.embed = nn.Embedding(prepare.VOCAB, WIDTH)\n"
            "        self.trigram = nn.Embedding(4096, WIDTH)\n",
        ),
        (
            "x = self.embed(x)",
            "x = self.trigram((F.pad(x[:, :-2], (2, 0)) * 1329 + F.pad(x[:, :-1], (1, 0)) * 391 + x) % 4096)"
            " + self.embed(x)",
        ),
    ),
    _patch(
        "x0-skip",
        "embedding skip",
        "each block sees the embedding again",
        "The bytes themselves stay in reach of every layer.",
        (
            "        for b in self.blocks:\n            x = b(x)\n",
            "        x0 = x\n        for b in self.blocks:\n            x = b(x + 0.1 * x0)\n",
        ),
    ),
    _patch(
        "zero-init",
        "zero init",
        "start the output projections at zero",
        "Every block begins as the identity, so that early steps are not noise.",
        ("nn.init.normal_(p, std=INIT_STD / math.sqrt(2 * DEPTH))", "nn.init.zeros_(p)"),
    ),
)

PATCHES: dict[str, Patch] = {patch.name: patch for patch in _ALL}


# The harness of the shipped task: a program without it has a text of a patch in it by chance.
_HARNESS = "prepare.Budget()"


def offered(source: str) -> list[str]:
    """The names of the patches that apply to this source and are not in it already, sorted."""
    if _HARNESS not in source:
        return []
    return [name for name in sorted(PATCHES) if _applies(source, PATCHES[name].blocks)]


def apply(source: str, names: Collection[str]) -> str:
    """The source with these patches.

    Raises:
        EditError: there is no such patch, or one does not apply.
    """
    for name in sorted(names):
        if name not in PATCHES:
            raise EditError(f"there is no patch {name}")
        source = apply_blocks(source, PATCHES[name].blocks)
    return source


def _applies(source: str, blocks: tuple[Block, ...]) -> bool:
    if all(block.replace in source for block in blocks):
        return False
    try:
        apply_blocks(source, blocks)
    except EditError:
        return False
    return True
