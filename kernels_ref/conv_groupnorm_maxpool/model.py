"""conv_groupnorm_maxpool: the problem. Conv, GroupNorm, scale, max pooling, clamp (KernelBench level 2, 85)."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """clamp(maxpool(group_norm(conv(x)) * scale)): x (N, C, H, W) -> (N, OC, OH // pool, OW // pool)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, num_groups, scale_shape, maxpool_kernel_size, clamp_min, clamp_max
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.full(scale_shape, initial_scale))
        self.maxpool = nn.MaxPool2d(kernel_size=maxpool_kernel_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.group_norm(self.conv(x)) * self.scale
        return torch.clamp(self.maxpool(x), self.clamp_min, self.clamp_max)


batch_size = 128
in_channels = 8
out_channels = 64
height = 128
width = 128
kernel_size = 3
num_groups = 16
scale_shape = (out_channels, 1, 1)
initial_scale = 1.0
maxpool_kernel_size = 4
clamp_min = 0.0
clamp_max = 1.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [
        in_channels,
        out_channels,
        kernel_size,
        num_groups,
        scale_shape,
        maxpool_kernel_size,
        clamp_min,
        clamp_max,
    ]


# Small enough for a CPU; each one is there for a mistake that the others let through.
# "reduction" is the longest sum behind one output: the convolution's terms or a group's elements.
CASES = [
    # the convolution's output is one pooling window
    {"name": "one pixel", "set": {"batch_size": 1, "height": 6, "width": 6}, "inputs": "normal", "reduction": 72},
    {
        "name": "prime sizes",
        "set": {
            "batch_size": 3,
            "in_channels": 3,
            "out_channels": 35,
            "height": 15,
            "width": 19,
            "num_groups": 7,
            "maxpool_kernel_size": 3,
        },
        "inputs": "normal",
        "reduction": 1105,
    },
    {
        "name": "power of two",
        "set": {
            "batch_size": 2,
            "out_channels": 16,
            "height": 34,
            "width": 34,
            "num_groups": 4,
            "clamp_min": 1.2,
            "clamp_max": 2.5,
        },
        "inputs": "normal",
        "reduction": 4096,
    },
    # 27 x 25 pixels in windows of 4: the last rows and columns reach no window, but do count in the statistics
    {
        "name": "windows that do not fit",
        "set": {
            "batch_size": 2,
            "in_channels": 5,
            "out_channels": 15,
            "height": 31,
            "width": 29,
            "kernel_size": 5,
            "num_groups": 5,
        },
        "inputs": "uniform",
        "reduction": 2025,
    },
    # the largest value times a negative scale is the smallest: scaling after the pooling shows
    {
        "name": "negative scale",
        "set": {
            "batch_size": 2,
            "out_channels": 6,
            "height": 18,
            "width": 22,
            "num_groups": 2,
            "initial_scale": -1.0,
            "clamp_min": -0.75,
            "clamp_max": 1.5,
        },
        "inputs": "normal",
        "reduction": 960,
    },
    {
        "name": "scales of both signs, one channel a group",
        "set": {
            "batch_size": 2,
            "in_channels": 4,
            "out_channels": 6,
            "height": 17,
            "width": 20,
            "kernel_size": 2,
            "num_groups": 6,
            "initial_scale": 0.0,
            "maxpool_kernel_size": 2,
            "clamp_min": -1.0,
        },
        "inputs": "normal",
        "reduction": 304,
    },
    # nothing is clamped, and a window of one pixel leaves everything where it is; 1615 outputs fill no whole float4
    {
        "name": "no clamp, no pooling",
        "set": {
            "batch_size": 1,
            "in_channels": 3,
            "out_channels": 5,
            "height": 17,
            "width": 19,
            "kernel_size": 1,
            "num_groups": 1,
            "maxpool_kernel_size": 1,
            "clamp_min": -100.0,
            "clamp_max": 100.0,
        },
        "inputs": "normal",
        "reduction": 1615,
    },
    # the full problem's channels on a smaller image, of more pixels than a block may have threads
    {"name": "batch 1", "set": {"batch_size": 1, "height": 40, "width": 44}, "inputs": "file", "reduction": 6384},
    {
        "name": "large values",
        "set": {
            "batch_size": 2,
            "out_channels": 8,
            "height": 18,
            "width": 15,
            "num_groups": 2,
            "maxpool_kernel_size": 2,
            "clamp_max": 2.5,
        },
        "inputs": "large",
        "reduction": 832,
    },
    # variances of the size of eps: an eps too many shows
    {
        "name": "small values",
        "set": {
            "batch_size": 2,
            "in_channels": 2,
            "out_channels": 6,
            "height": 17,
            "width": 19,
            "num_groups": 6,
            "maxpool_kernel_size": 2,
            "clamp_min": -2.0,
            "clamp_max": 2.0,
        },
        "inputs": "tiny",
        "reduction": 255,
    },
]
