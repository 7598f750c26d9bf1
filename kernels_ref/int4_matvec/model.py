"""int4_matvec: the problem. A vector times a matrix of 4-bit weights, one scale for each group of a row's weights.

Weights are kept so in GPTQ (Frantar et al., 2022) and AWQ (Lin et al., 2023). A language model that makes one token
at a time reads every weight once per token, so the bytes of the weights decide how long that takes.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """x (N, columns) float16, packed (rows, columns / 8) int32, scales (rows, groups) float16 -> (N, rows) float16.

    Bits 4 k to 4 k + 3 of a word hold weight k of eight neighbours in a row, plus 8: a number from 0 to 15. All
    group_size neighbours of a group have one scale. group_size is a multiple of 8, and the last group may be shorter.
    """

    def __init__(self, group_size):
        super().__init__()
        self.group_size = group_size

    def forward(self, x, packed, scales):
        stored = torch.stack([packed >> 4 * k & 15 for k in range(8)], dim=-1).flatten(1)
        _, columns = stored.shape
        weight = (stored - 8) * scales[:, [c // self.group_size for c in range(columns)]]
        return x @ weight.T


# The widest layer of Llama 2 70B, for one token.
batch_size = 1
rows = 28672
columns = 8192
group_size = 128
repeated = None  # an int32 that is every word of packed; None: the words are random


def get_inputs():
    words = (rows, columns // 8)
    if repeated is None:
        packed = torch.randint(-(2**31), 2**31, words, dtype=torch.int32)
    else:
        packed = torch.full(words, repeated, dtype=torch.int32)
    groups = (columns + group_size - 1) // group_size
    return [torch.rand(batch_size, columns).half(), packed, torch.rand(rows, groups).half()]


def get_init_inputs():
    return [group_size]


# Inputs and results have 16 bits, and so have the weights that are multiplied; sums are float32.
PRECISION = "fp16"

# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # a group is a word: all other lanes have nothing to add
    {
        "name": "one word",
        "set": {"batch_size": 2, "rows": 5, "columns": 8, "group_size": 8},
        "inputs": "normal",
        "reduction": 8,
    },
    # the last group is shorter; rows begin where no 16-byte load may; the last block has rows to spare
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "rows": 13, "columns": 88, "group_size": 32},
        "inputs": "normal",
        "reduction": 88,
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
    # groups as at full size, the last one a quarter of a group; more words than a warp takes at a time
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
    # more rows than a block has threads
    {
        "name": "many rows",
        "set": {"batch_size": 1, "rows": 1031, "columns": 24, "group_size": 8},
        "inputs": "normal",
        "reduction": 24,
    },
    # a long sum of terms whose mean is not 0: partial sums of 16 bits lose their last digits. And x is longer than at
    # full size: an array of fixed size does not hold it
    {
        "name": "long row",
        "set": {"batch_size": 1, "rows": 3, "columns": 8480, "group_size": 128},
        "inputs": "file",
        "reduction": 8480,
    },
    # the smallest weight: without its sign it is 0, and 8 in two's complement
    {
        "name": "all weights -8",
        "set": {"batch_size": 2, "rows": 10, "columns": 320, "group_size": 64, "repeated": 0},
        "inputs": "normal",
        "reduction": 320,
    },
    # the largest weight; the highest bit of each word is set, which a shift of a signed word keeps
    {
        "name": "all weights 7",
        "set": {"batch_size": 2, "rows": 10, "columns": 320, "group_size": 64, "repeated": -1},
        "inputs": "normal",
        "reduction": 320,
    },
    # 7 and -8 by turns: neighbours must not be exchanged
    {
        "name": "extremes by turns",
        "set": {"batch_size": 1, "rows": 11, "columns": 160, "group_size": 32, "repeated": 0x0F0F0F0F},
        "inputs": "normal",
        "reduction": 160,
    },
]
