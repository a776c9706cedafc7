"""Time of a GPT-2 training step in PyTorch: the rival of tests/bench/step_bench.py. Prints one JSON line.

usage: pytorch_step.py --batch 4 --tokens 64 --dtype fp32 --threads 2 --steps 5

Written as a careful PyTorch user would: fused attention and torch.compile where the version has them, foreach or
fused AdamW, bf16 by autocast. Data are random tokens.
"""

import argparse
import json
import math
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, VOCAB = 12, 768, 12, 50304  # GPT-2 124M; the vocabulary padded to 64, as is usual


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.gelu = nn.GELU(approximate="tanh")

    def forward(self, x, mask):
        batch, tokens, _ = x.shape
        q, k, v = (
            part.view(batch, tokens, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(WIDTH, -1)
        )
        if hasattr(functional, "scaled_dot_product_attention"):
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            mixed = torch.softmax(scores.masked_fill(mask[:tokens, :tokens], -math.inf), -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.down(self.gelu(self.up(self.norm2(x))))


class Gpt2(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(tokens, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.register_buffer("mask", torch.ones(tokens, tokens, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, self.mask)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def make_step(args):
    model = Gpt2(args.tokens)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), **optimizer_options())
    compiled = torch.compile(model) if args.compile and hasattr(torch, "compile") else model
    data = torch.randint(0, 50257, (args.batch, args.tokens + 1))

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = compiled(data[:, :-1], data[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        return float(loss)

    return step


def optimizer_options():
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return {"fused": True} if version >= (2, 4) else {"foreach": True}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--dtype", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    step = make_step(args)
    for _ in range(args.warmup):
        step()
    times = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({
        "program": f"PyTorch {torch.__version__}{' compiled' if args.compile else ''}",
        "step_s": statistics.median(times), "step_min_s": min(times), "steps": args.steps, "peak_bytes": peak,
    }))


if __name__ == "__main__":
    main()
