"""mend_layernorm: the problem. Layer normalisation of rows, whose kernels are handed out broken."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """LayerNorm over the last dimension, with a weight and a bias for each column: x (N, C, H, W) -> the same shape."""

    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm(width)

    def forward(self, x):
        return self.ln(x)


batch_size = 64
channels = 16
height = 128
width = 1024


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [width]


# Small enough for a CPU; each one is there for a mistake that the others let through.
# "reduction" is the number of elements of one row.
CASES = [
    # everything fits: rows of a whole number of float4 and of threads, as many elements as full blocks hold
    {
        "name": "power of two",
        "set": {"batch_size": 2, "channels": 2, "height": 128, "width": 128},
        "inputs": "file",
        "reduction": 128,
    },
    {
        "name": "batch 1",
        "set": {"batch_size": 1, "channels": 3, "height": 32, "width": 512},
        "inputs": "normal",
        "reduction": 512,
    },
    # mean 1000, deviation 1: E[x^2] - E[x]^2 has no correct digit left in float32
    {
        "name": "large mean",
        "set": {"batch_size": 2, "channels": 2, "height": 16, "width": 256},
        "inputs": "large_mean",
        "reduction": 256,
    },
    # rows that begin in the middle of 16 bytes; the last block is not full
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "channels": 5, "height": 7, "width": 131},
        "inputs": "normal",
        "reduction": 131,
    },
    # a row has fewer elements than a block has threads
    {
        "name": "short rows",
        "set": {"batch_size": 2, "channels": 3, "height": 10, "width": 20},
        "inputs": "normal",
        "reduction": 20,
    },
    {
        "name": "one element a row",
        "set": {"batch_size": 3, "channels": 2, "height": 2, "width": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # variance 1e-6 beside eps 1e-5: eps decides
    {
        "name": "small values",
        "set": {"batch_size": 2, "channels": 2, "height": 8, "width": 160},
        "inputs": "tiny",
        "reduction": 160,
    },
    {
        "name": "all zero",
        "set": {"batch_size": 2, "channels": 2, "height": 4, "width": 64},
        "inputs": "zeros",
        "reduction": 64,
    },
]
