"""groupnorm: the problem. Group normalisation, KernelBench level 1, 35."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """GroupNorm with a weight and a bias for each channel: x (N, num_features, ...) -> the same shape."""

    def __init__(self, num_features, num_groups):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)

    def forward(self, x):
        return self.gn(x)


batch_size = 112
features = 64
num_groups = 8
dim1 = 512
dim2 = 512


def get_inputs():
    return [torch.rand(batch_size, features, dim1, dim2)]


def get_init_inputs():
    return [features, num_groups]


# Small enough for a CPU; each one is there for a mistake that the others let through.
# "reduction" is the number of elements of one group.
CASES = [
    # eight elements a group: most threads of a block have nothing to add
    {"name": "one pixel", "set": {"batch_size": 1, "dim1": 1, "dim2": 1}, "inputs": "normal", "reduction": 8},
    # a group of one element has variance 0: only eps is under the root, and the bias comes out
    {
        "name": "one value a group",
        "set": {"batch_size": 3, "features": 5, "num_groups": 5, "dim1": 1, "dim2": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "features": 35, "num_groups": 7, "dim1": 13, "dim2": 11},
        "inputs": "normal",
        "reduction": 715,
    },
    {
        "name": "power of two",
        "set": {"batch_size": 2, "features": 16, "num_groups": 4, "dim1": 32, "dim2": 32},
        "inputs": "file",
        "reduction": 4096,
    },
    {
        "name": "odd channels a group",
        "set": {"batch_size": 2, "features": 18, "num_groups": 6, "dim1": 10, "dim2": 30},
        "inputs": "normal",
        "reduction": 900,
    },
    # a plane has more pixels than a block may have threads
    {
        "name": "one channel a group, batch 1",
        "set": {"batch_size": 1, "features": 6, "num_groups": 6, "dim1": 30, "dim2": 50},
        "inputs": "normal",
        "reduction": 1500,
    },
    {
        "name": "one group",
        "set": {"batch_size": 2, "features": 12, "num_groups": 1, "dim1": 31, "dim2": 33},
        "inputs": "normal",
        "reduction": 12276,
    },
    # mean 1000, deviation 1: E[x^2] - E[x]^2 has no correct digit left in float32
    {
        "name": "large mean",
        "set": {"batch_size": 3, "features": 24, "num_groups": 8, "dim1": 11, "dim2": 13},
        "inputs": "large_mean",
        "reduction": 429,
    },
    # variance 1e-6 beside eps 1e-5: eps decides
    {
        "name": "small values",
        "set": {"batch_size": 2, "features": 8, "num_groups": 4, "dim1": 17, "dim2": 16},
        "inputs": "tiny",
        "reduction": 544,
    },
    {
        "name": "all zero",
        "set": {"batch_size": 2, "features": 8, "num_groups": 2, "dim1": 9, "dim2": 9},
        "inputs": "zeros",
        "reduction": 324,
    },
]
