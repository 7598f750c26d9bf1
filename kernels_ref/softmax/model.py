"""softmax: the problem. Softmax over each row of a matrix, KernelBench level 1, 23."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """softmax over the last dimension: x (rows, columns) -> the same shape, in which each row adds up to 1."""

    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=-1)


rows = 4096
columns = 16384
mean = 0.5
last = 0  # what the last column has in addition
masked = 0  # row r starts with r * masked columns of minus infinity, as attention masks them; fewer than `columns`


def get_inputs():
    x = torch.rand(rows, columns) + (mean - 0.5)
    x[:, -1] += last
    if masked:
        x[torch.arange(columns) < masked * torch.arange(rows)[:, None]] = float("-inf")
    return [x]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through. A row of nothing but minus
# infinity, or with plus infinity or NaN, is NaN in eager and in no case: kernels may differ there.
CASES = [
    # every share is 1: only a row's first thread has a value, and a sum that starts at anything but 0 is wrong
    {"name": "one column", "set": {"rows": 5, "columns": 1}, "inputs": "normal", "reduction": 1},
    # rows and columns exchanged in an index leave the row; threads of a second row have nothing to do
    {"name": "one row", "set": {"rows": 1, "columns": 259}, "inputs": "normal", "reduction": 259},
    # a float4 of the second row is not aligned
    {"name": "prime sizes", "set": {"rows": 13, "columns": 41}, "inputs": "normal", "reduction": 41},
    # whole blocks and whole float4s: what is wrong here is wrong everywhere
    {"name": "power of two", "set": {"rows": 8, "columns": 1024}, "inputs": "normal", "reduction": 1024},
    # softmax over rows in place of columns has the same shape and the same number of terms
    {"name": "square", "set": {"rows": 48, "columns": 48}, "inputs": "normal", "reduction": 48},
    # half a warp has no value: its maximum and its sum must not count
    {"name": "half a warp", "set": {"rows": 23, "columns": 17}, "inputs": "file", "reduction": 17},
    # one column more than a power of two: the last one has a step of the loop to itself
    {"name": "one column more", "set": {"rows": 3, "columns": 2049}, "inputs": "uniform", "reduction": 2049},
    # longer than at full size: a row that is kept in an array of fixed size does not fit
    {"name": "long rows", "set": {"rows": 2, "columns": 20011}, "inputs": "normal", "reduction": 20011},
    # exp(100) does not fit a float32: without the maximum taken out, infinity over infinity is no number ...
    {"name": "large values", "set": {"rows": 7, "columns": 300}, "inputs": "large", "reduction": 300},
    # ... here in every element
    {"name": "large mean", "set": {"rows": 4, "columns": 131}, "inputs": "large_mean", "reduction": 131},
    # exp(-200) is 0 in float32: a maximum that starts at 0 gives 0 over 0
    {
        "name": "far below zero",
        "set": {"rows": 6, "columns": 101, "mean": -200.0},
        "inputs": "file",
        "reduction": 101,
    },
    # the first 148 columns of the last row have a maximum of minus infinity so far, and minus infinity less itself is
    # no number
    {"name": "masked", "set": {"rows": 5, "columns": 203, "masked": 37}, "inputs": "file", "reduction": 203},
    # the largest value comes last, far above the others: a maximum of the first columns alone lets exp(150) overflow
    {
        "name": "largest last",
        "set": {"rows": 3, "columns": 2063, "last": 150},
        "inputs": "file",
        "reduction": 2063,
    },
    # every share is one over the number of columns
    {"name": "all equal", "set": {"rows": 3, "columns": 77}, "inputs": "zeros", "reduction": 77},
    # a maximum that starts at -10,000 or -100,000 is never reached: 0 over 0
    {"name": "at -300,000", "set": {"rows": 2, "columns": 37, "mean": -300000.0, "last": 4}, "reduction": 37},
]
