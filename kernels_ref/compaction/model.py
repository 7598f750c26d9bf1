"""compaction: the problem. The elements of a vector that are not 0, in order and without gaps, then zeros.

The result has the length of the input, so that its shape does not depend on the values; how many elements were kept is
where the zeros begin.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (length,) -> (length,): what is not 0 comes first and keeps its order."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x[torch.argsort(x == 0, stable=True)]


length = 2**26
zeros = 0.5  # the share of elements that are 0
run = 1  # so many neighbours are 0 together, or not


def get_inputs():
    x = torch.rand(length)
    runs = torch.rand((length + run - 1) // run) < zeros
    x[runs.repeat_interleave(run)[:length]] = 0
    return [x]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through. Nothing is summed but counts.
CASES = [
    # one thread has an element, which is kept
    {"name": "one element", "set": {"length": 1}, "inputs": "normal", "reduction": 1},
    # the only block has threads to spare
    {"name": "five elements", "set": {"length": 5, "zeros": 0.4}, "inputs": "file", "reduction": 1},
    # every element keeps its place
    {"name": "all are kept", "set": {"length": 3001}, "inputs": "normal", "reduction": 1},
    # nothing is kept, and zeros must be written everywhere
    {"name": "none is kept", "set": {"length": 2000}, "inputs": "zeros", "reduction": 1},
    # no number of elements per thread divides the length
    {"name": "prime sizes", "set": {"length": 10007}, "inputs": "file", "reduction": 1},
    # no block has threads to spare, and float4 loads are aligned up to the end
    {"name": "power of two", "set": {"length": 16384}, "inputs": "file", "reduction": 1},
    # two of the largest blocks, each element a thread, and one element more
    {"name": "one more than two blocks", "set": {"length": 2049, "zeros": 0.3}, "inputs": "file", "reduction": 1},
    # whole warps and blocks keep everything or nothing
    {"name": "long runs", "set": {"length": 40009, "run": 1500}, "inputs": "file", "reduction": 1},
    # few are kept, so that most places are zeros
    {"name": "few are kept", "set": {"length": 20011, "zeros": 0.99}, "inputs": "file", "reduction": 1},
    # more blocks than one block has threads: the sums of the first 1,024 are not all
    {"name": "many blocks", "set": {"length": 390001}, "inputs": "file", "reduction": 1},
]
