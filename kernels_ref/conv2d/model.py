"""conv2d: the problem. A 2-D convolution, stride 1, no padding, with bias, as in KernelBench level 2, 85 and 92."""

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
    # the image is one window: a single pixel comes out of each channel
    {"name": "one pixel", "set": {"batch_size": 1, "height": 3, "width": 3}, "inputs": "normal", "reduction": 72},
    # everything is 1: one thread has work, all others must stay out
    {
        "name": "one of everything",
        "set": {"batch_size": 1, "in_channels": 1, "out_channels": 1, "height": 1, "width": 1, "kernel_size": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # no size divides a block, and no two sizes are equal: swapped indices show
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "in_channels": 5, "out_channels": 7, "height": 13, "width": 19},
        "inputs": "normal",
        "reduction": 45,
    },
    {
        "name": "power of two",
        "set": {"batch_size": 2, "out_channels": 16, "height": 34, "width": 34},
        "inputs": "normal",
        "reduction": 72,
    },
    {
        "name": "not a power of two",
        "set": {"batch_size": 2, "in_channels": 6, "out_channels": 12, "height": 24, "width": 36, "kernel_size": 5},
        "inputs": "uniform",
        "reduction": 150,
    },
    {
        "name": "one wide row, even kernel",
        "set": {"batch_size": 2, "in_channels": 3, "out_channels": 4, "height": 2, "width": 701, "kernel_size": 2},
        "inputs": "normal",
        "reduction": 12,
    },
    # a kernel that keeps some channels in shared memory or registers must come round more than once
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
