"""histogram: the problem. How many values of a long vector lie in each of some bins of equal width, as torch.histc.

torch.bincount would count numbers that are bins already. Of floats, a kernel has to find the bin, and what lies at an
edge or outside is where a histogram goes wrong. The counts are whole numbers, so that they are compared exactly.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (length,) -> counts (bins,) int32. The bins divide the range from low to high into equal parts.

    A value at an edge between two bins belongs to the upper one, and high belongs to the last bin. Values outside, and
    NaN, are not counted.
    """

    def __init__(self, bins, low, high):
        super().__init__()
        self.bins = bins
        self.low = low
        self.high = high

    def forward(self, x):
        return torch.histc(x, self.bins, self.low, self.high).int()


length = 2**26
bins = 256
low = 0.0
high = 1.0
outside = 0.0  # the values lie between low - outside and high + outside
grain = 0.0  # if not 0, they are multiples of it, to the nearest
power = 1  # of the random numbers: a higher one makes small values more frequent


def get_inputs():
    x = torch.rand(length)
    if power != 1:
        x = x**power
    if (low, high, outside) != (0, 1, 0):
        x = (low - outside) + (high - low + 2 * outside) * x
    if grain:
        x = torch.round(x / grain) * grain
    return [x]


def get_init_inputs():
    return [bins, low, high]


# Small enough for a CPU; each one is there for a mistake that the others let through. In each of them a bin's width is
# a power of 2, so that a kernel that multiplies by bins / (high - low) rounds as one that divides. Where the number of
# bins is not, the values are multiples of a power of 2, for the same reason.
CASES = [
    # one thread of one block has a value
    {
        "name": "one value",
        "set": {"length": 1, "bins": 5, "high": 1.25, "grain": 2**-10},
        "inputs": "file",
        "reduction": 1,
    },
    # every value is in the only bin: a bin too few leaves none
    {"name": "one bin", "set": {"length": 17, "bins": 1}, "inputs": "file", "reduction": 17},
    # no number of values per thread divides the length; a range around 0, and values outside on both sides
    {
        "name": "prime sizes",
        "set": {"length": 10007, "bins": 61, "low": -1.5, "high": 2.3125, "outside": 0.5, "grain": 2**-9},
        "inputs": "file",
        "reduction": 10007,
    },
    # no thread has a value more than another, and loads of 16 bytes are aligned up to the end
    {"name": "power of two", "set": {"length": 16384}, "inputs": "file", "reduction": 16384},
    # two of the largest blocks, each value a thread, and one value more
    {
        "name": "one more than two blocks",
        "set": {"length": 2049, "bins": 64, "low": -2.0, "high": 2.0},
        "inputs": "normal",
        "reduction": 2049,
    },
    # every value is an edge, the lowest and the highest included
    {
        "name": "values at the edges",
        "set": {"length": 3001, "bins": 10, "high": 2.5, "grain": 0.25},
        "inputs": "file",
        "reduction": 3001,
    },
    # less than a bin below the range: the conversion to an integer rounds toward 0, to the first bin
    {
        "name": "just outside",
        "set": {"length": 1023, "bins": 8, "low": 1.0, "high": 2.0, "outside": 0.0625, "grain": 2**-6},
        "inputs": "file",
        "reduction": 1023,
    },
    # no value is in the range: all counts are 0, and must be written
    {
        "name": "all outside",
        "set": {"length": 1000, "bins": 32, "low": 1.0, "high": 3.0},
        "inputs": "uniform",
        "reduction": 1000,
    },
    # more bins than the threads of a block; most of them stay empty
    {
        "name": "more bins than threads",
        "set": {"length": 5000, "bins": 3000, "high": 2.9296875, "grain": 2**-13},
        "inputs": "file",
        "reduction": 5000,
    },
    # all threads of all blocks count in one bin, to more than 16 bits hold
    {
        "name": "all equal",
        "set": {"length": 150001, "bins": 64, "low": -1.0},
        "inputs": "zeros",
        "reduction": 150001,
    },
    # a quarter of the values is in the first of 256 bins; more values than a GPU runs threads at a time
    {"name": "skewed", "set": {"length": 300007, "power": 4}, "inputs": "file", "reduction": 300007},
    # the range lies far from 0, compared with its width: it has no value for a kernel that keeps 16 bits of each, and
    # none of its values is in the range for one that forgets low
    {
        "name": "large mean",
        "set": {"length": 4099, "bins": 100, "low": 998.4375, "high": 1001.5625},
        "inputs": "large_mean",
        "reduction": 4099,
    },
]
