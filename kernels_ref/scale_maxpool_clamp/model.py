"""scale_maxpool_clamp: the problem. The tail of KernelBench level 2, 85: scale, max pooling, clamp."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """clamp(maxpool(x * scale)), with a scale for each channel: x (N, C, H, W) -> (N, C, H // pool, W // pool)."""

    def __init__(self, scale_shape, maxpool_kernel_size, clamp_min, clamp_max):
        super().__init__()
        self.scale = nn.Parameter(torch.full(scale_shape, initial_scale))
        self.maxpool = nn.MaxPool2d(kernel_size=maxpool_kernel_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        return torch.clamp(self.maxpool(x * self.scale), self.clamp_min, self.clamp_max)


batch_size = 128
channels = 64
height = 126
width = 126
scale_shape = (channels, 1, 1)
initial_scale = 1.0
nan_every = 0  # so many values apart stands a NaN; 0: none
maxpool_kernel_size = 4
clamp_min = 0.0
clamp_max = 1.0


def get_inputs():
    x = torch.rand(batch_size, channels, height, width)
    if nan_every:
        x.view(-1)[::nan_every] = float("nan")
    return [x]


def get_init_inputs():
    return [scale_shape, maxpool_kernel_size, clamp_min, clamp_max]


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    # the whole image is one window, and below every channel's maximum nothing is clamped
    {
        "name": "one window",
        "set": {"batch_size": 1, "channels": 3, "height": 4, "width": 4, "clamp_max": 10.0},
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "prime sizes",
        "set": {
            "batch_size": 3,
            "channels": 7,
            "height": 13,
            "width": 19,
            "maxpool_kernel_size": 3,
            "clamp_min": -0.5,
            "clamp_max": 2.0,
        },
        "inputs": "normal",
        "reduction": 1,
    },
    # 8 x 16 windows, none of a pixel left over; both borders clamp about every fifth window
    {
        "name": "power of two",
        "set": {"batch_size": 2, "channels": 16, "height": 32, "width": 64, "clamp_min": 1.2, "clamp_max": 2.2},
        "inputs": "normal",
        "reduction": 1,
    },
    # 27 x 25 pixels in windows of 4: the last rows and columns reach no window
    {
        "name": "windows that do not fit",
        "set": {"batch_size": 2, "channels": 5, "height": 27, "width": 25, "clamp_min": -1.0, "clamp_max": 2.0},
        "inputs": "normal",
        "reduction": 1,
    },
    # rows of 22 begin at multiples of 8 bytes, not of 16
    {
        "name": "even rows",
        "set": {"batch_size": 2, "channels": 6, "height": 18, "width": 22, "clamp_min": -1.0, "clamp_max": 1.9},
        "inputs": "normal",
        "reduction": 1,
    },
    # the largest value times a negative scale is the smallest: scaling behind the pooling shows
    {
        "name": "negative scale",
        "set": {
            "batch_size": 2,
            "channels": 6,
            "height": 16,
            "width": 20,
            "initial_scale": -1.0,
            "clamp_min": -0.75,
            "clamp_max": 2.0,
        },
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "scales of both signs",
        "set": {
            "batch_size": 2,
            "channels": 9,
            "height": 14,
            "width": 23,
            "initial_scale": 0.0,
            "maxpool_kernel_size": 2,
            "clamp_min": -0.2,
            "clamp_max": 0.3,
        },
        "inputs": "normal",
        "reduction": 1,
    },
    # every value is below zero, and so is the maximum: a maximum that starts at 0 shows
    {
        "name": "all below zero",
        "set": {
            "batch_size": 2,
            "channels": 4,
            "height": 12,
            "width": 16,
            "initial_scale": -1.0,
            "clamp_min": -10.0,
            "clamp_max": 0.5,
        },
        "inputs": "uniform",
        "reduction": 1,
    },
    # a window of 37 x 37 of the 40 x 75 pixels: longer than a warp is wide, and two of them side by side
    {
        "name": "large windows",
        "set": {
            "batch_size": 2,
            "channels": 2,
            "height": 40,
            "width": 75,
            "maxpool_kernel_size": 37,
            "clamp_min": -10.0,
            "clamp_max": 10.0,
        },
        "inputs": "normal",
        "reduction": 1,
    },
    # nothing is clamped, and a window of one pixel leaves everything where it is
    {
        "name": "no clamp, no pooling",
        "set": {
            "batch_size": 1,
            "channels": 6,
            "height": 17,
            "width": 18,
            "maxpool_kernel_size": 1,
            "clamp_min": -100.0,
            "clamp_max": 100.0,
        },
        "inputs": "normal",
        "reduction": 1,
    },
    # the full problem's channels on a smaller image
    {"name": "batch 1", "set": {"batch_size": 1, "height": 38, "width": 42}, "inputs": "file", "reduction": 1},
    {
        "name": "large values",
        "set": {"batch_size": 2, "channels": 8, "height": 16, "width": 13, "clamp_min": -50.0, "clamp_max": 180.0},
        "inputs": "large",
        "reduction": 1,
    },
    # a NaN in about every fifth window, at one place or another of it: fmaxf and fminf lose it
    {
        "name": "some NaN",
        "set": {"batch_size": 2, "channels": 5, "height": 21, "width": 26, "nan_every": 83},
        "inputs": "file",
        "reduction": 1,
        "gradient": False,
    },
]
