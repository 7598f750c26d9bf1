"""scan: the problem. The inclusive prefix sum of one long vector, as in KernelBench level 1, 89 for rows."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of all beginnings of a vector: x (length,) -> (length,), y[i] = x[0] + ... + x[i]."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.cumsum(x, dim=0)


length = 2**26
alternating = False  # every second element is negative


def get_inputs():
    x = torch.rand(length)
    if alternating:
        x += 1
        x[1::2] *= -1
    return [x]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through. "reduction" is the length, of
# which the tolerance takes no more than 16,384: longer sums are split over threads. The tolerance grows with the sum,
# so that at the end of a long vector of positive numbers it is larger than an element; where the sums stay small, it
# stays small too.
CASES = [
    # no element comes before it: y is x
    {"name": "one element", "set": {"length": 1}, "inputs": "normal", "reduction": 1},
    # most threads of a warp have no element, and the sum of the only block is not needed
    {"name": "five elements", "set": {"length": 5}, "inputs": "normal", "reduction": 5},
    # the last thread has the last element: a step of the scan that is missing shows here, and no offset is added
    {"name": "one block", "set": {"length": 256}, "inputs": "normal", "reduction": 256},
    # the second block has one element: it needs the first block's sum
    {"name": "one more than a block", "set": {"length": 257}, "inputs": "uniform", "reduction": 257},
    # two of the largest blocks, each element a thread, and one element more
    {"name": "one more than two blocks", "set": {"length": 2049}, "inputs": "normal", "reduction": 2049},
    # no number of elements per thread divides the length
    {"name": "prime sizes", "set": {"length": 10007}, "inputs": "normal", "reduction": 10007},
    # no block has threads to spare, and float4 loads are aligned up to the end
    {"name": "power of two", "set": {"length": 16384}, "inputs": "file", "reduction": 16384},
    # 391 blocks of 256: one block of as many threads cannot scan all block sums
    {"name": "many blocks", "set": {"length": 100003}, "inputs": "uniform", "reduction": 100003},
    # 1,280 blocks of 256: the block sums of 1,024 are not all
    {"name": "more blocks than threads in a block", "set": {"length": 327680}, "inputs": "file", "reduction": 327680},
    # the sums stay as small as an element: a neighbour too many or too few shows at the far end, too
    {
        "name": "alternating signs",
        "set": {"length": 70001, "alternating": True},
        "inputs": "file",
        "reduction": 70001,
    },
    # sums up to 3 million, which no half holds
    {"name": "large mean", "set": {"length": 3001}, "inputs": "large_mean", "reduction": 3001},
    {"name": "all zero", "set": {"length": 1000}, "inputs": "zeros", "reduction": 1000},
]
