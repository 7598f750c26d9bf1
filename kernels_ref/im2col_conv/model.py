"""im2col_conv: the problem. The same convolution as conv2d, to be computed as a matrix product (im2col)."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """One convolution: x (N, in_channels, H, W) -> (N, out_channels, H - kernel_size + 1, W - kernel_size + 1)."""

    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return self.conv(x)


batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # the matrix of columns has a single column
    {"name": "one pixel", "set": {"batch_size": 1, "height": 3, "width": 3}, "inputs": "normal", "reduction": 72},
    {
        "name": "one of everything",
        "set": {"batch_size": 1, "in_channels": 1, "out_channels": 1, "height": 1, "width": 1, "kernel_size": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # no side of any matrix divides a tile: every edge of every tile is ragged
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "in_channels": 5, "out_channels": 7, "height": 13, "width": 19},
        "inputs": "normal",
        "reduction": 45,
    },
    # 32 x 64 times 64 x 1024: every tile of 16 or 32 is full
    {
        "name": "power of two",
        "set": {"batch_size": 2, "in_channels": 16, "out_channels": 32, "height": 33, "width": 33, "kernel_size": 2},
        "inputs": "normal",
        "reduction": 64,
    },
    {
        "name": "not a power of two",
        "set": {"batch_size": 2, "in_channels": 6, "out_channels": 18, "height": 24, "width": 36, "kernel_size": 5},
        "inputs": "uniform",
        "reduction": 150,
    },
    # a 1 x 1 kernel: the columns are the image itself
    {
        "name": "1x1 kernel",
        "set": {"batch_size": 2, "in_channels": 33, "out_channels": 17, "height": 9, "width": 15, "kernel_size": 1},
        "inputs": "normal",
        "reduction": 33,
    },
    # more rows and longer ones than any tile: the walk along K and the tiles of rows go round more than once
    {
        "name": "many channels",
        "set": {"batch_size": 1, "in_channels": 19, "out_channels": 71, "height": 11, "width": 13},
        "inputs": "normal",
        "reduction": 171,
    },
    # the full problem's channels on a smaller image, of more pixels than a block may have threads
    {"name": "batch 1", "set": {"batch_size": 1, "height": 40, "width": 44}, "inputs": "file", "reduction": 72},
    {
        "name": "large values",
        "set": {"batch_size": 2, "out_channels": 5, "height": 15, "width": 14},
        "inputs": "large",
        "reduction": 72,
    },
]
