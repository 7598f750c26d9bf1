"""logsumexp: the problem. log(sum(exp(x))) over the channels, the last operator of KernelBench level 2, 92."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """logsumexp over dimension 1, which stays with size 1: x (N, C, H, W) -> (N, 1, H, W)."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.logsumexp(x, dim=1, keepdim=True)


batch_size = 128
channels = 64
height = 126
width = 126
mean = 0.5
infinity_every = 0  # so many values apart stands an infinity, and the first pixel has but minus infinities; 0: none


def get_inputs():
    x = torch.rand(batch_size, channels, height, width) + (mean - 0.5)
    if infinity_every:
        x.view(-1)[::infinity_every] = float("inf")
        x[0, :, 0, 0] = float("-inf")
    return [x]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # the logarithm of one exponential: x itself
    {
        "name": "one value",
        "set": {"batch_size": 1, "channels": 1, "height": 1, "width": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    {"name": "one pixel", "set": {"batch_size": 3, "height": 1, "width": 1}, "inputs": "normal", "reduction": 64},
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "channels": 37, "height": 13, "width": 19},
        "inputs": "normal",
        "reduction": 37,
    },
    {
        "name": "power of two",
        "set": {"batch_size": 2, "channels": 32, "height": 32, "width": 64},
        "inputs": "normal",
        "reduction": 32,
    },
    {
        "name": "not a power of two",
        "set": {"batch_size": 2, "channels": 100, "height": 21, "width": 30},
        "inputs": "file",
        "reduction": 100,
    },
    {"name": "batch 1", "set": {"batch_size": 1, "height": 26, "width": 27}, "inputs": "uniform", "reduction": 64},
    # exp(100) does not fit a float32: without the shift by the maximum the result is infinite ...
    {
        "name": "large values",
        "set": {"batch_size": 2, "channels": 10, "height": 15, "width": 22},
        "inputs": "large",
        "reduction": 10,
    },
    # ... here in every element
    {
        "name": "large mean",
        "set": {"batch_size": 2, "channels": 12, "height": 11, "width": 14},
        "inputs": "large_mean",
        "reduction": 12,
    },
    # exp(-200) is 0 in float32: a maximum that starts at 0 gives the logarithm of 0
    {
        "name": "far below zero",
        "set": {"batch_size": 2, "channels": 11, "height": 9, "width": 13, "mean": -200.0},
        "inputs": "file",
        "reduction": 11,
    },
    # infinity - infinity is no number
    {
        "name": "infinities",
        "set": {"batch_size": 2, "channels": 13, "height": 8, "width": 11, "infinity_every": 97},
        "inputs": "file",
        "reduction": 13,
        "gradient": False,
    },
    {
        "name": "all zero",
        "set": {"batch_size": 2, "channels": 9, "height": 7, "width": 8},
        "inputs": "zeros",
        "reduction": 9,
    },
]
