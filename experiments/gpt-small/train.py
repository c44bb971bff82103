"""train.py: a byte-level GPT for a graphics card. The one file that is edited; a lower val_bpb is better.

`python train.py` trains it within the FLOPs that prepare.py counts; data, their order and the batch are given. The
constants on top are what a search may change, each within the range of its comment; the rest may be rewritten freely.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import prepare

DEPTH = 6             # int [2, 12]
WIDTH = 384           # one of 192 256 320 384 448 512
HEAD_DIM = 64         # one of 32 64 128
MLP_RATIO = 4.0       # one of 1.0 2.0 3.0 4.0 6.0
LR = 0.001            # log [0.0003, 0.03]
EMBED_LR_MULT = 1.0   # log [0.3, 10.0]
WEIGHT_DECAY = 0.1    # log [0.001, 1.0]
BETA1 = 0.9           # float [0.8, 0.98]
BETA2 = 0.95          # one of 0.9 0.95 0.98 0.99 0.999
WARMUP = 0.05         # float [0.0, 0.3]
WARMDOWN = 0.3        # float [0.0, 1.0]
FINAL_LR = 0.1        # float [0.0, 0.5]
GRAD_CLIP = 1.0       # one of 0.0 0.3 1.0 3.0
INIT_STD = 0.02       # log [0.005, 0.2]
ROPE_BASE = 10000.0   # one of 50.0 200.0 1000.0 10000.0

assert WIDTH % HEAD_DIM == 0


def norm(x):
    return F.rms_norm(x, (x.size(-1),))


def rope(x):
    """Rotate the two halves of each head by an angle that grows with the position."""
    T, D = x.size(-2), x.size(-1) // 2
    f = ROPE_BASE ** (-torch.arange(D, dtype=torch.float32, device=x.device) / D)
    a = torch.arange(T, dtype=torch.float32, device=x.device)[:, None] * f
    c, s = a.cos(), a.sin()
    x1, x2 = x[..., :D], x[..., D:]
    return torch.cat([x1 * c - x2 * s, x1 * s + x2 * c], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, C // HEAD_DIM, HEAD_DIM).permute(2, 0, 3, 1, 4)
        q, k = rope(q), rope(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        h = int(MLP_RATIO * WIDTH)
        self.up = nn.Linear(WIDTH, h, bias=False)
        self.down = nn.Linear(h, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.mlp = Attention(), MLP()

    def forward(self, x):
        x = x + self.attn(norm(x))
        x = x + self.mlp(norm(x))
        return x


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(prepare.VOCAB, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, prepare.VOCAB, bias=False)
        for p in self.parameters():
            nn.init.normal_(p, std=INIT_STD)
        for b in self.blocks:
            for p in (b.attn.proj.weight, b.mlp.down.weight):
                nn.init.normal_(p, std=INIT_STD / math.sqrt(2 * DEPTH))

    def forward(self, x):
        x = self.embed(x)
        for b in self.blocks:
            x = b(x)
        return self.head(norm(x))


def build_model():
    return GPT()


def schedule(p):
    """The learning rate, as a share of its full value, when the share p of the budget is spent."""
    if p < WARMUP:
        return p / WARMUP
    if p > 1 - WARMDOWN:
        return FINAL_LR + (1 - FINAL_LR) * (1 - p) / WARMDOWN
    return 1.0


def optimizers(model):
    mats = [p for p in model.blocks.parameters() if p.ndim == 2]
    ids = {id(p) for p in mats}
    rest = [p for p in model.parameters() if id(p) not in ids]
    return [torch.optim.AdamW([dict(params=mats, lr=LR, weight_decay=WEIGHT_DECAY),
                               dict(params=rest, lr=LR * EMBED_LR_MULT, weight_decay=0.0)],
                              betas=(BETA1, BETA2), fused=True)]


def main():
    device = prepare.setup()
    model = build_model().to(device)
    net = prepare.compiled(model)
    on_card = device.type == "cuda"
    opts = optimizers(model)
    groups = [g for o in opts for g in o.param_groups]
    for g in groups:
        g["lr0"] = g["lr"]
    budget = prepare.Budget()
    for x, y in budget.batches():
        for g in groups:
            g["lr"] = g["lr0"] * schedule(budget.progress())
        with torch.autocast(device.type, torch.bfloat16, enabled=on_card):
            logits = net(x)
        loss = F.cross_entropy(logits.float().view(-1, prepare.VOCAB), y.view(-1))
        model.zero_grad(set_to_none=True)
        loss.backward()
        if GRAD_CLIP:
            nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
        for o in opts:
            o.step()
        budget.report(loss.item())
    prepare.finish(model, budget)


if __name__ == "__main__":
    main()
