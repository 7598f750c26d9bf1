"""int8_matmul: the problem. A product of two matrices of 8-bit integers, each of whose rows has a scale.

Activations and weights are kept so in LLM.int8 (Dettmers et al., 2022) and SmoothQuant (Xiao et al., 2023). A sum of
products of integers is an integer: it is exact in any order, and the scales are multiplied once, at its end.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (N, columns) int8, x_scale (N) float32, weight (rows, columns) int8, weight_scale (rows) float32 -> (N, rows).

    The result is float32. columns is a multiple of 16, so that every row begins at a multiple of 16 bytes.
    """

    def __init__(self):
        super().__init__()

    def forward(self, x, x_scale, weight, weight_scale):
        product = x.to(x_scale.dtype) @ weight.to(weight_scale.dtype).T
        return product * x_scale[:, None] * weight_scale


# The widest layer of Llama 2 70B, for 128 tokens.
batch_size = 128
rows = 28672
columns = 8192
least = -128  # of x and weight
most = 127


def get_inputs():
    x = torch.randint(least, most + 1, (batch_size, columns), dtype=torch.int8)
    weight = torch.randint(least, most + 1, (rows, columns), dtype=torch.int8)
    return [x, torch.rand(batch_size), weight, torch.rand(rows)]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # a tile has a single row or column that counts
    {
        "name": "one row each",
        "set": {"batch_size": 1, "rows": 1, "columns": 48},
        "inputs": "normal",
        "reduction": 48,
    },
    # neither side fills a block, and rows and columns of the result may not be exchanged
    {
        "name": "prime sizes",
        "set": {"batch_size": 7, "rows": 13, "columns": 176},
        "inputs": "normal",
        "reduction": 176,
    },
    # every tile is full
    {
        "name": "power of two",
        "set": {"batch_size": 64, "rows": 64, "columns": 128},
        "inputs": "normal",
        "reduction": 128,
    },
    # as many rows as columns: either may be taken for the other
    {
        "name": "square",
        "set": {"batch_size": 32, "rows": 32, "columns": 32},
        "inputs": "normal",
        "reduction": 32,
    },
    # a single piece of 16 bytes: a loop over larger ones has nothing whole to do
    {
        "name": "16 columns",
        "set": {"batch_size": 18, "rows": 33, "columns": 16},
        "inputs": "file",
        "reduction": 16,
    },
    # several blocks on both sides, the last ones ragged, and a sum whose last tile is ragged, too
    {
        "name": "ragged",
        "set": {"batch_size": 133, "rows": 150, "columns": 208},
        "inputs": "normal",
        "reduction": 208,
    },
    # one x, as for a single token, and more rows than a block has threads
    {
        "name": "batch 1",
        "set": {"batch_size": 1, "rows": 1031, "columns": 64},
        "inputs": "file",
        "reduction": 64,
    },
    # -128 times -128, added 4,096 times, is 2^26: no sum of 16 bits holds it
    {
        "name": "all -128",
        "set": {"batch_size": 3, "rows": 20, "columns": 4096, "most": -128},
        "inputs": "normal",
        "reduction": 4096,
    },
    # products of one sign: a byte that is taken for a number from 0 to 255 is right here, and wrong elsewhere
    {
        "name": "positive",
        "set": {"batch_size": 9, "rows": 21, "columns": 320, "least": 0},
        "inputs": "normal",
        "reduction": 320,
    },
]
