"""conv2d_tensor_core: the problem. The convolution of conv2d with 64 channels in, to be computed by tensor cores, in
TF32.

Why 64 channels: with conv2d's 8 a result is a sum of 72 products, and writing results takes half as long as multiplying
in float32 on an H200, so that faster products could buy little. With 64 it is a sum of 576.

There is no backward.py: gradcheck compares with differences in float64, which TF32's three digits cannot meet.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """One convolution: x (N, in_channels, H, W) -> (N, out_channels, H - kernel_size + 1, W - kernel_size + 1)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        if positive_weights:
            self.conv.weight.data.abs_()

    def forward(self, x):
        return self.conv(x)


batch_size = 128
in_channels = 64
out_channels = 64
height = 64
width = 64
kernel_size = 3
scale = 1.0
positive_weights = False


def get_inputs():
    return [scale * torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


# An answer may be as far off as one whose factors are rounded to TF32's 10 bits and whose sums are float32.
PRECISION = "tf32"

# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # the matrix of columns has a single column, of 16 in a fragment
    {"name": "one pixel", "set": {"batch_size": 1, "height": 3, "width": 3}, "inputs": "normal", "reduction": 576},
    # one row, one column and one product: all but one element of each fragment is padding
    {
        "name": "one of everything",
        "set": {"batch_size": 1, "in_channels": 1, "out_channels": 1, "height": 1, "width": 1, "kernel_size": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # no side of any matrix divides 8 or 16: every edge of every fragment is ragged
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "in_channels": 5, "out_channels": 7, "height": 13, "width": 19},
        "inputs": "normal",
        "reduction": 45,
    },
    # 32 x 64 times 64 x 1024: every tile is full
    {
        "name": "power of two",
        "set": {"batch_size": 2, "in_channels": 16, "out_channels": 32, "height": 33, "width": 33, "kernel_size": 2},
        "inputs": "normal",
        "reduction": 64,
    },
    # a window of more positions than a fragment has columns of K
    {
        "name": "not a power of two",
        "set": {"batch_size": 2, "in_channels": 6, "out_channels": 18, "height": 24, "width": 36, "kernel_size": 5},
        "inputs": "uniform",
        "reduction": 150,
    },
    # more rows and longer ones than any tile
    {
        "name": "many channels",
        "set": {"batch_size": 1, "in_channels": 37, "out_channels": 71, "height": 11, "width": 13},
        "inputs": "normal",
        "reduction": 333,
    },
    # the full problem's channels on a smaller image
    {"name": "batch 1", "set": {"batch_size": 1, "height": 19, "width": 20}, "inputs": "file", "reduction": 576},
    # no product is negative, so that errors of one sign add up: those of factors whose bits are cut off instead of
    # rounded
    {
        "name": "nothing cancels",
        "set": {"batch_size": 1, "height": 9, "width": 10, "positive_weights": True},
        "inputs": "file",
        "reduction": 576,
    },
    # TF32 has float32's range, half precision has not: its largest number is 65504
    {
        "name": "beyond half precision",
        "set": {"batch_size": 2, "in_channels": 8, "out_channels": 5, "height": 15, "width": 14, "scale": 1e6},
        "inputs": "file",
        "reduction": 72,
    },
]
