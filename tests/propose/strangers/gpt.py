"""
Small GPT pretraining script, CPU version. One file.
Usage: python train.py
"""

import math
import time
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

# ---------------------------------------------------------------------------
# GPT model
# ---------------------------------------------------------------------------

VOCAB_SIZE = 64
MAX_SEQ_LEN = 64  # context length, must match the data
TIME_BUDGET = 5  # seconds of training


@dataclass
class GPTConfig:
    sequence_len: int = 64
    vocab_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_kv_head: int = 4
    n_embd: int = 64
    dropout: float = 0.0
    rope_theta: float = 10000.0
    bias: bool = False


def norm(x):
    return F.rms_norm(x, (x.size(-1),))


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.n_head, self.n_kv_head = config.n_head, config.n_kv_head
        self.head_dim = config.n_embd // config.n_head
        self.q = nn.Linear(config.n_embd, config.n_head * self.head_dim, bias=config.bias)
        self.kv = nn.Linear(config.n_embd, 2 * config.n_kv_head * self.head_dim, bias=config.bias)
        self.proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        freqs = config.rope_theta ** (-torch.arange(0, self.head_dim, 2).float() / self.head_dim)
        angles = torch.outer(torch.arange(config.sequence_len).float(), freqs)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * self.cos - b * self.sin, a * self.sin + b * self.cos], dim=-1)

    def forward(self, x):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.n_head, self.head_dim).transpose(1, 2)
        k, v = self.kv(x).view(B, T, 2, self.n_kv_head, self.head_dim).permute(2, 0, 3, 1, 4)
        k, v = (t.repeat_interleave(self.n_head // self.n_kv_head, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.attn = nn.ModuleList(Attention(config) for _ in range(config.n_layer))
        self.mlp = nn.ModuleList(
            nn.Sequential(
                nn.Linear(config.n_embd, MLP_RATIO * config.n_embd), nn.GELU(),
                nn.Linear(MLP_RATIO * config.n_embd, config.n_embd),
            )
            for _ in range(config.n_layer)
        )
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, x):
        x = self.drop(self.embed(x))
        for attn, mlp in zip(self.attn, self.mlp):
            x = x + attn(norm(x))
            x = x + mlp(norm(x))
        return SOFTCAP * torch.tanh(self.head(norm(x)) / SOFTCAP)


# ---------------------------------------------------------------------------
# Hyperparameters (edit these directly, no CLI flags needed)
# ---------------------------------------------------------------------------

# Model architecture
DEPTH = 4               # number of transformer layers
MLP_RATIO = 4
SOFTCAP = 15            # logit softcap

# Optimization
TOTAL_BATCH_SIZE = 2**10 # tokens per optimizer step
DEVICE_BATCH_SIZE = 8   # per-device batch size (reduce if OOM)
EMBEDDING_LR = 6e-3     # learning rate for token embeddings
MATRIX_LR = 1e-3        # 1e-4 .. 1e-2
WEIGHT_DECAY = 0.2
ADAM_BETAS = (0.8, 0.95)
WARMUP_RATIO = 0.0      # fraction of the time budget for LR warmup
WARMDOWN_RATIO = 0.5
FINAL_LR_FRAC = 0.0
GRAD_CLIP = 1.0         # fixed

# Everything else
assert TOTAL_BATCH_SIZE % (DEVICE_BATCH_SIZE * MAX_SEQ_LEN) == 0

SEED = 1337
EVAL_BATCHES = 8
LOG_INTERVAL = 10
CPU_PEAK_FLOPS = 1e11

# ---------------------------------------------------------------------------

torch.manual_seed(SEED)


def batch(generator):
    """Sums modulo the vocabulary: each token follows from the two before it."""
    tokens = torch.randint(VOCAB_SIZE, (DEVICE_BATCH_SIZE, MAX_SEQ_LEN + 1), generator=generator)
    for t in range(2, MAX_SEQ_LEN + 1):
        tokens[:, t] = (tokens[:, t - 1] + tokens[:, t - 2]) % VOCAB_SIZE
    return tokens[:, :-1], tokens[:, 1:]


def lr_scale(progress):
    if progress < WARMUP_RATIO:
        return progress / WARMUP_RATIO
    if progress < 1.0 - WARMDOWN_RATIO:
        return 1.0
    cooldown = (1.0 - progress) / WARMDOWN_RATIO
    return cooldown + (1 - cooldown) * FINAL_LR_FRAC


config = GPTConfig(sequence_len=MAX_SEQ_LEN, vocab_size=VOCAB_SIZE, n_layer=DEPTH)
model = GPT(config)
embedding = list(model.embed.parameters())
matrices = [p for p in model.parameters() if p is not embedding[0]]
optimizer = torch.optim.AdamW(
    [dict(params=embedding, lr=EMBEDDING_LR), dict(params=matrices, lr=MATRIX_LR)],
    betas=ADAM_BETAS, weight_decay=WEIGHT_DECAY,
)
base = [group["lr"] for group in optimizer.param_groups]
grad_accum_steps = TOTAL_BATCH_SIZE // (DEVICE_BATCH_SIZE * MAX_SEQ_LEN)
train, held_out = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)

step, start = 0, time.time()
while time.time() - start < TIME_BUDGET:
    for _ in range(grad_accum_steps):
        x, y = batch(train)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        (loss / grad_accum_steps).backward()
    for group, lr in zip(optimizer.param_groups, base):
        group["lr"] = lr * lr_scale(min(1.0, (time.time() - start) / TIME_BUDGET))
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_CLIP)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % LOG_INTERVAL == 0:
        print(f"step {step:05d} loss {loss.item():.4f}", flush=True)
    step += 1

model.eval()
with torch.no_grad():
    losses = [F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()
              for x, y in (batch(held_out) for _ in range(EVAL_BATCHES))]
print("---")
print(f"val_bpt:          {sum(losses) / len(losses) / math.log(2):.6f}")
print(f"training_seconds: {time.time() - start:.1f}")
print(f"num_steps:        {step}")
