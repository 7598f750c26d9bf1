"""attention: the problem. Scaled dot-product attention of 16-bit queries, keys and values, causal or not.

Scores and their softmax are float32 and the probabilities that are multiplied by the values have 16 bits, as in
FlashAttention (Dao et al., 2022): an answer may be as far off as one that is computed so.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """softmax(q k^T / sqrt(head_dim)) v for each head: q, k, v (N, heads, length, head_dim) float16 -> the same shape.

    causal: query i sees the keys up to i alone.
    """

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1) * q.shape[-1] ** -0.5
        if self.causal:
            length = q.shape[-2]
            later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        return torch.softmax(scores, dim=-1).to(q.dtype) @ v


batch_size = 8
heads = 16
length = 2048
head_dim = 64
causal = False
scale = 1.0
spread = 1.0  # of the keys
shift = 0.0  # of the keys, downwards


def get_inputs():
    shape = (batch_size, heads, length, head_dim)
    return [
        (scale * torch.rand(shape)).half(),
        (spread * scale * torch.rand(shape) - shift).half(),
        torch.rand(shape).half(),
    ]


def get_init_inputs():
    return [causal]


# Inputs and results have 16 bits, and so have the factors of both products; sums are float32.
PRECISION = "fp16"

# What verdicts call the dimensions of the result and of the gradients.
AXES = ("batch item", "head", "token", "feature")

# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # the softmax of one score is 1: the result is v
    {
        "name": "one token",
        "set": {"batch_size": 2, "heads": 1, "length": 1},
        "inputs": "normal",
        "reduction": 64,
    },
    # no whole tile of queries or keys
    {
        "name": "17 tokens",
        "set": {"batch_size": 2, "heads": 2, "length": 17, "head_dim": 32},
        "inputs": "normal",
        "reduction": 32,
    },
    {
        "name": "17 tokens, causal",
        "set": {"batch_size": 1, "heads": 2, "length": 17, "head_dim": 32, "causal": True},
        "inputs": "normal",
        "reduction": 32,
    },
    # several heads, whose keys must not mix
    {
        "name": "prime sizes",
        "set": {"batch_size": 1, "heads": 3, "length": 73, "head_dim": 32},
        "inputs": "normal",
        "reduction": 73,
    },
    # every tile is full
    {
        "name": "power of two",
        "set": {"batch_size": 2, "heads": 2, "length": 64},
        "inputs": "normal",
        "reduction": 64,
    },
    # several tiles of keys, the last one ragged, and queries that begin in the middle of the mask
    {
        "name": "ragged, causal",
        "set": {"batch_size": 1, "heads": 3, "length": 201, "causal": True},
        "inputs": "normal",
        "reduction": 201,
    },
    # the widest head
    {
        "name": "head of 128",
        "set": {"batch_size": 1, "heads": 1, "length": 75, "head_dim": 128},
        "inputs": "normal",
        "reduction": 128,
    },
    # no whole fragment, and no number of values that divides anything
    {
        "name": "head of 37",
        "set": {"batch_size": 1, "heads": 1, "length": 21, "head_dim": 37},
        "inputs": "normal",
        "reduction": 37,
    },
    # scores of 128, whose exponential is infinite in float32
    {"name": "large scores", "set": {"batch_size": 1, "heads": 2, "length": 150, "scale": 8.0}, "reduction": 150},
    # all scores are equal: the result is the mean of the values. They are about -160: where the largest score starts at
    # 0, all exponentials are 0
    {
        "name": "equal scores",
        "set": {"batch_size": 2, "heads": 1, "length": 99, "scale": 160.0, "spread": 0.0, "shift": 0.25},
        "reduction": 99,
    },
]
