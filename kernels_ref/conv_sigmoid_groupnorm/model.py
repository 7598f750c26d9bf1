"""conv_sigmoid_groupnorm: the problem. Conv, bias, scale, sigmoid, GroupNorm (KernelBench level 2, 21)."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """group_norm(sigmoid((conv(x) + bias) * scale)): x (N, in_channels, H, W) -> (N, out_channels, OH, OW)."""

    def __init__(self, in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.group_norm = nn.GroupNorm(num_groups, out_channels)

    def forward(self, x):
        return self.group_norm(torch.sigmoid((self.conv(x) + self.bias) * self.scale))


batch_size = 128
in_channels = 8
out_channels = 32
height = 256
width = 256
kernel_size = 3
num_groups = 8
bias_shape = (out_channels, 1, 1)
scale_shape = (out_channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups, bias_shape, scale_shape]


# Small enough for a CPU; each one is there for a mistake that the others let through.
# "reduction" is the longest sum behind one output: the convolution's terms or a group's elements.
CASES = [
    {"name": "one pixel", "set": {"batch_size": 1, "height": 3, "width": 3}, "inputs": "normal", "reduction": 72},
    {
        "name": "prime sizes",
        "set": {
            "batch_size": 3,
            "in_channels": 3,
            "out_channels": 35,
            "height": 13,
            "width": 19,
            "num_groups": 7,
        },
        "inputs": "normal",
        "reduction": 935,
    },
    {
        "name": "power of two",
        "set": {"batch_size": 2, "out_channels": 16, "height": 34, "width": 34, "num_groups": 4},
        "inputs": "normal",
        "reduction": 4096,
    },
    {
        "name": "odd channels a group",
        "set": {
            "batch_size": 2,
            "in_channels": 5,
            "out_channels": 15,
            "height": 20,
            "width": 30,
            "kernel_size": 5,
            "num_groups": 5,
        },
        "inputs": "uniform",
        "reduction": 1248,
    },
    {
        "name": "one channel a group, 1x1 kernel",
        "set": {
            "batch_size": 2,
            "in_channels": 3,
            "out_channels": 6,
            "height": 17,
            "width": 18,
            "kernel_size": 1,
            "num_groups": 6,
        },
        "inputs": "normal",
        "reduction": 306,
    },
    {
        "name": "one group, even kernel",
        "set": {
            "batch_size": 2,
            "in_channels": 4,
            "out_channels": 6,
            "height": 22,
            "width": 31,
            "kernel_size": 2,
            "num_groups": 1,
        },
        "inputs": "normal",
        "reduction": 3780,
    },
    # the full problem's channels on a smaller image, of more pixels than a block may have threads
    {"name": "batch 1", "set": {"batch_size": 1, "height": 40, "width": 44}, "inputs": "file", "reduction": 6384},
    # most sigmoids are saturated
    {
        "name": "large values",
        "set": {"batch_size": 2, "out_channels": 8, "height": 16, "width": 15, "num_groups": 2},
        "inputs": "large",
        "reduction": 728,
    },
]
