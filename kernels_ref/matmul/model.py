"""matmul: the problem. The product of two matrices of any sizes, KernelBench level 1, 2."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """C = A B: A (M, K), B (K, N) -> (M, N)."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return torch.matmul(A, B)


M = 2048
K = 4096
N = 4096


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    {"name": "one product", "set": {"M": 1, "K": 1, "N": 1}, "inputs": "normal", "reduction": 1},
    # every tile has a single row of A, or a single column of B
    {"name": "one row", "set": {"M": 1, "K": 70, "N": 150}, "inputs": "normal", "reduction": 70},
    {"name": "one column", "set": {"M": 150, "K": 70, "N": 1}, "inputs": "normal", "reduction": 70},
    # a sum of one term: M and N are far larger than K
    {"name": "one term", "set": {"M": 97, "K": 1, "N": 140}, "inputs": "normal", "reduction": 1},
    # no side of any matrix divides a tile or a step along K: every edge is ragged
    {"name": "prime sizes", "set": {"M": 67, "K": 37, "N": 131}, "inputs": "normal", "reduction": 37},
    # every tile of 16, 32, 64 or 128 is full
    {"name": "power of two", "set": {"M": 128, "K": 64, "N": 256}, "inputs": "file", "reduction": 64},
    # rows of A and B begin at multiples of 16 bytes, but the last tile of every kind is ragged
    {"name": "multiples of four", "set": {"M": 140, "K": 60, "N": 132}, "inputs": "uniform", "reduction": 60},
    # only one of the two matrices has rows that begin at multiples of 16 bytes
    {"name": "odd rows of A", "set": {"M": 33, "K": 41, "N": 64}, "inputs": "normal", "reduction": 41},
    {"name": "odd rows of B", "set": {"M": 64, "K": 40, "N": 33}, "inputs": "normal", "reduction": 40},
    # the walk along K is long beside the tile
    {"name": "long sums", "set": {"M": 20, "K": 1500, "N": 36}, "inputs": "normal", "reduction": 1500},
    {"name": "large values", "set": {"M": 45, "K": 70, "N": 50}, "inputs": "large", "reduction": 70},
]
