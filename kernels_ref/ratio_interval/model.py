"""ratio_interval: the problem. How many times faster, and how sure: the median of paired times' ratios and its
interval.
"""

import math

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (N, 2, H, W): of N comparisons on H machines, W paired times of a baseline (0) and a candidate (1) -> (N, 3, H,
    1).

    y[:, 0] is the median of the W ratios baseline / candidate, y[:, 1] and y[:, 2] are the ends of its 95 % interval:
    the order statistics whose ranks lie 0.98 sqrt(W) to either side of the middle.
    """

    def __init__(self):
        super().__init__()

    def forward(self, x):
        ratio = (x[:, 0] / x[:, 1]).sort(dim=-1).values
        W = ratio.shape[-1]
        below = max(0, math.floor(W / 2 - 0.98 * math.sqrt(W)))
        median = (ratio[..., (W - 1) // 2] + ratio[..., W // 2]) / 2
        return torch.stack([median, ratio[..., below], ratio[..., W - 1 - below]], dim=1).unsqueeze(-1)


batch_size = 256
height = 64
width = 500
tick = 0.001  # of the clock: every time is a whole number of these, and a half


def get_inputs():
    return [(torch.floor(torch.rand(batch_size, 2, height, width) / tick) + 0.5) * tick]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through. A ratio is one division: the
# reduction is 1.
CASES = [
    # one sample: it is the median and both ends
    {
        "name": "one round",
        "set": {"batch_size": 1, "height": 1, "width": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # too few for an interval: it runs from the smallest to the largest; the median is the mean of two
    {"name": "two rounds", "set": {"batch_size": 3, "height": 2, "width": 2}, "inputs": "uniform", "reduction": 1},
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "height": 5, "width": 101},
        "inputs": "normal",
        "reduction": 1,
    },
    # 1536 outputs: more than one block has threads
    {
        "name": "power of two",
        "set": {"batch_size": 32, "height": 16, "width": 16},
        "inputs": "file",
        "reduction": 1,
    },
    # one round more than a block has threads
    {
        "name": "batch 1, one machine",
        "set": {"batch_size": 1, "height": 1, "width": 129},
        "inputs": "file",
        "reduction": 1,
    },
    {"name": "many rounds", "set": {"batch_size": 2, "height": 2, "width": 700}, "inputs": "uniform", "reduction": 1},
    # a clock with four different times: nearly every ratio is there many times over
    {
        "name": "coarse clock",
        "set": {"batch_size": 2, "height": 3, "width": 200, "tick": 0.25},
        "inputs": "file",
        "reduction": 1,
    },
]
