"""GPT-2 and LLaMA in plain PyTorch, with the parameter names and layouts of Hugging Face's transformers.

Written from the papers and the documented layouts, so that motley is compared with an independent program.
Shapes: B batch, T tokens, D model width, H head width, N heads, V vocabulary.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn import functional


@dataclass
class Spec:
    family: str
    n_layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    seq_length: int
    tied: bool
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_width(self):
        return self.hidden // self.heads


def tensor_shapes(spec):
    """Name -> shape of every parameter, in Hugging Face's layout."""
    return gpt2_shapes(spec) if spec.family == "gpt2" else llama_shapes(spec)


def gpt2_shapes(s):
    shapes = {
        "transformer.wte.weight": (s.vocab, s.hidden),
        "transformer.wpe.weight": (s.seq_length, s.hidden),
    }
    for i in range(s.n_layers):
        p = f"transformer.h.{i}."
        for norm in ("ln_1", "ln_2"):
            shapes[p + norm + ".weight"] = shapes[p + norm + ".bias"] = (s.hidden,)
        for name, width_in, width_out in (
            ("attn.c_attn", s.hidden, 3 * s.hidden),
            ("attn.c_proj", s.hidden, s.hidden),
            ("mlp.c_fc", s.hidden, s.ffn),
            ("mlp.c_proj", s.ffn, s.hidden),
        ):
            shapes[p + name + ".weight"] = (width_in, width_out)
            shapes[p + name + ".bias"] = (width_out,)
    shapes["transformer.ln_f.weight"] = shapes["transformer.ln_f.bias"] = (s.hidden,)
    if not s.tied:
        shapes["lm_head.weight"] = (s.vocab, s.hidden)
    return shapes


def llama_shapes(s):
    kv_width = s.kv_heads * s.head_width
    shapes = {"model.embed_tokens.weight": (s.vocab, s.hidden)}
    for i in range(s.n_layers):
        p = f"model.layers.{i}."
        shapes[p + "input_layernorm.weight"] = (s.hidden,)
        shapes[p + "post_attention_layernorm.weight"] = (s.hidden,)
        for name, width_in, width_out in (
            ("self_attn.q_proj", s.hidden, s.hidden),
            ("self_attn.k_proj", s.hidden, kv_width),
            ("self_attn.v_proj", s.hidden, kv_width),
            ("self_attn.o_proj", s.hidden, s.hidden),
            ("mlp.gate_proj", s.hidden, s.ffn),
            ("mlp.up_proj", s.hidden, s.ffn),
            ("mlp.down_proj", s.ffn, s.hidden),
        ):
            shapes[p + name + ".weight"] = (width_out, width_in)
    shapes["model.norm.weight"] = (s.hidden,)
    if not s.tied:
        shapes["lm_head.weight"] = (s.vocab, s.hidden)
    return shapes


def attention(q, k, v):
    """Causal attention; q, k, v [B, N, T, H]."""
    tokens = q.shape[2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ v


def split_heads(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def gelu(x):
    """Tanh form, as in the GPT-2 release (Hendrycks and Gimpel, arXiv 1606.08415)."""
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gpt2_logits(s, w, ids):
    def norm(x, name):
        return functional.layer_norm(x, (s.hidden,), w[name + ".weight"], w[name + ".bias"], s.norm_eps)

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][: ids.shape[1]]
    for i in range(s.n_layers):
        p = f"transformer.h.{i}."
        q, k, v = linear(norm(x, p + "ln_1"), p + "attn.c_attn").split(s.hidden, dim=-1)
        mixed = attention(split_heads(q, s.heads), split_heads(k, s.heads), split_heads(v, s.heads))
        x = x + linear(merge_heads(mixed), p + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, p + "ln_2"), p + "mlp.c_fc")), p + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ w["transformer.wte.weight" if s.tied else "lm_head.weight"].T


def rotate(x, theta):
    """Rotary embedding of x [B, N, T, H]: halves rotated against each other (Su et al. 2021, in LLaMA's layout)."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = (torch.arange(x.shape[2], dtype=torch.float64)[:, None] * frequency).to(x.dtype)
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def llama_logits(s, w, ids):
    def norm(x, name):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + s.norm_eps) * w[name + ".weight"]

    def linear(x, name):
        return x @ w[name + ".weight"].T

    group = s.heads // s.kv_heads
    x = w["model.embed_tokens.weight"][ids]
    for i in range(s.n_layers):
        p = f"model.layers.{i}."
        y = norm(x, p + "input_layernorm")
        q = rotate(split_heads(linear(y, p + "self_attn.q_proj"), s.heads), s.rope_theta)
        k = rotate(split_heads(linear(y, p + "self_attn.k_proj"), s.kv_heads), s.rope_theta)
        v = split_heads(linear(y, p + "self_attn.v_proj"), s.kv_heads)
        mixed = attention(q, k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1))
        x = x + linear(merge_heads(mixed), p + "self_attn.o_proj")
        y = norm(x, p + "post_attention_layernorm")
        gated = functional.silu(linear(y, p + "mlp.gate_proj")) * linear(y, p + "mlp.up_proj")
        x = x + linear(gated, p + "mlp.down_proj")
    return norm(x, "model.norm") @ w["model.embed_tokens.weight" if s.tied else "lm_head.weight"].T


def logits(spec, weights, ids):
    return (gpt2_logits if spec.family == "gpt2" else llama_logits)(spec, weights, ids)
