"""fp8_matvec: the problem. A vector times a matrix of 8-bit floats, one scale for each group of a row's weights.

Language models are published with weights in this format, e4m3 of Micikevicius et al., FP8 Formats for Deep Learning
(2022): 4 bits of exponent, 3 of mantissa, numbers up to 448. A language model that makes one token at a time reads
every weight once per token, and in 8 bits that takes half the time that it takes in 16.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (N, columns) float16, weight (rows, columns) float8_e4m3fn, scales (rows, groups) float32 -> (N, rows) float16.

    All group_size neighbours of a group have one scale, by which their values are multiplied. The last group of a row
    may be shorter.
    """

    def __init__(self, group_size):
        super().__init__()
        self.group_size = group_size

    def forward(self, x, weight, scales):
        _, columns = weight.shape
        scale = scales[:, [c // self.group_size for c in range(columns)]]
        return x @ (weight.to(scales.dtype) * scale).to(x.dtype).T


# The widest layer of Llama 3 70B, for one token.
batch_size = 1
rows = 28672
columns = 8192
group_size = 128
drawn_from = None  # the values that weights have before they are quantised; None: any from -1 to 1
falling = False  # each row's weights fall from its largest to its smallest: a sum grows, and shrinks again
largest = 448.0  # what the largest weight of each group becomes; 448 is the largest number of the format
largest_x = 1.0  # x is drawn from 0 to this


def quantise(weight):
    """Return weight (rows, columns) as float8_e4m3fn, and its scales (rows, groups) in float32."""
    groups = nn.functional.pad(weight, (0, -columns % group_size)).view(rows, -1, group_size)
    scales = groups.abs().amax(dim=2) / largest
    scales = scales.clamp(min=1e-12)  # of a group of zeros: 0 / 0 would be NaN
    quantised = (groups / scales[:, :, None]).to(torch.float8_e4m3fn)
    return quantised.view(rows, -1)[:, :columns].contiguous(), scales


def get_inputs():
    x = torch.rand(batch_size, columns) * largest_x
    if drawn_from is None:
        weight = 2 * torch.rand(rows, columns) - 1
    else:
        weight = torch.tensor(drawn_from)[torch.randint(len(drawn_from), (rows, columns))]
    if falling:
        weight = weight.sort(dim=1, descending=True).values
    return [x.half(), *quantise(weight)]


def get_init_inputs():
    return [group_size]


# Inputs and results have 16 bits, and so have the weights that are multiplied; sums are float32.
PRECISION = "fp16"

# Small enough for a CPU; each one is there for a mistake that the others let through. The weights are always drawn so.
CASES = [
    # a row is a group of fewer weights than a warp has lanes
    {
        "name": "eight columns",
        "set": {"batch_size": 2, "rows": 5, "columns": 8, "group_size": 8},
        "inputs": "normal",
        "reduction": 8,
    },
    # the last group is shorter; rows begin where no load of several bytes may; the last block has rows to spare
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "rows": 13, "columns": 89, "group_size": 32},
        "inputs": "normal",
        "reduction": 89,
    },
    # every block, load and group is full
    {
        "name": "power of two",
        "set": {"batch_size": 4, "rows": 64, "columns": 256, "group_size": 32},
        "inputs": "normal",
        "reduction": 256,
    },
    # as many rows as columns: either may be taken for the other
    {
        "name": "square",
        "set": {"batch_size": 16, "rows": 16, "columns": 16, "group_size": 8},
        "inputs": "normal",
        "reduction": 16,
    },
    # groups as at full size, the last one a quarter of a group; more weights than a warp takes at a time
    {
        "name": "groups of 128",
        "set": {"batch_size": 3, "rows": 19, "columns": 1184, "group_size": 128},
        "inputs": "normal",
        "reduction": 1184,
    },
    # there is a single scale in each row
    {
        "name": "one group",
        "set": {"batch_size": 2, "rows": 21, "columns": 96, "group_size": 512},
        "inputs": "normal",
        "reduction": 96,
    },
    # all warps but one have nothing to do
    {
        "name": "one row",
        "set": {"batch_size": 5, "rows": 1, "columns": 640, "group_size": 128},
        "inputs": "normal",
        "reduction": 640,
    },
    # more rows than a block has threads
    {
        "name": "many rows",
        "set": {"batch_size": 1, "rows": 1031, "columns": 24, "group_size": 8},
        "inputs": "normal",
        "reduction": 24,
    },
    # half of a row is 448, the other half -448: sums are far larger before they are complete, and in 16 bits they lose
    # their last digits. And x is longer than at full size: an array of fixed size does not hold it
    {
        "name": "long row",
        "set": {
            "batch_size": 1,
            "rows": 7,
            "columns": 8480,
            "group_size": 128,
            "drawn_from": [-1.0, 1.0],
            "falling": True,
        },
        "inputs": "file",
        "reduction": 8480,
    },
    # the largest exponent, which stands for infinity and NaN in other formats
    {
        "name": "all weights 448 or -448",
        "set": {"batch_size": 2, "rows": 10, "columns": 320, "group_size": 64, "drawn_from": [-1.0, 1.0]},
        "inputs": "normal",
        "reduction": 320,
    },
    # half of the weights have the exponent 0, for which the mantissa has no hidden 1: up to seven times 2^-9
    {
        "name": "subnormal weights",
        "set": {"batch_size": 2, "rows": 10, "columns": 320, "group_size": 64, "largest": 2**-5},
        "inputs": "normal",
        "reduction": 320,
    },
    # nothing is added in many groups, but the row goes on
    {
        "name": "groups of zeros",
        "set": {"batch_size": 1, "rows": 11, "columns": 160, "group_size": 16, "drawn_from": [0.0] * 15 + [1.0]},
        "inputs": "file",
        "reduction": 160,
    },
    # a weight times its x, before the scale, is beyond float16's largest number
    {
        "name": "large x",
        "set": {"batch_size": 2, "rows": 9, "columns": 64, "group_size": 32, "largest_x": 4000.0},
        "inputs": "file",
        "reduction": 64,
    },
]
