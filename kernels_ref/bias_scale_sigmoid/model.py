"""bias_scale_sigmoid: the problem. The elementwise middle of KernelBench level 2, 21: sigmoid((x + bias) * scale)."""

import torch
import torch.nn as nn


class Model(nn.Module):
    """sigmoid((x + bias) * scale), with one bias and one scale for each channel: x (N, C, H, W) -> the same shape."""

    def __init__(self, bias_shape, scale_shape):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scale = nn.Parameter(torch.randn(scale_shape))

    def forward(self, x):
        return torch.sigmoid((x + self.bias) * self.scale)


batch_size = 128
channels = 32
height = 254
width = 254
bias_shape = (channels, 1, 1)
scale_shape = (channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [bias_shape, scale_shape]


# Small enough for a CPU; each one is there for a mistake that the others let through.
CASES = [
    {
        "name": "one value",
        "set": {"batch_size": 1, "channels": 1, "height": 1, "width": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    # the channel changes with every element
    {
        "name": "one pixel",
        "set": {"batch_size": 5, "channels": 37, "height": 1, "width": 1},
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "prime sizes",
        "set": {"batch_size": 3, "channels": 7, "height": 13, "width": 19},
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "power of two",
        "set": {"batch_size": 2, "channels": 16, "height": 32, "width": 64},
        "inputs": "normal",
        "reduction": 1,
    },
    {
        "name": "not a power of two",
        "set": {"batch_size": 2, "channels": 12, "height": 30, "width": 46},
        "inputs": "file",
        "reduction": 1,
    },
    {
        "name": "batch 1",
        "set": {"batch_size": 1, "channels": 5, "height": 3, "width": 1500},
        "inputs": "uniform",
        "reduction": 1,
    },
    # saturated at both ends: exp overflows on the way, the result must not be NaN
    {
        "name": "large values",
        "set": {"batch_size": 2, "channels": 9, "height": 20, "width": 21},
        "inputs": "large",
        "reduction": 1,
    },
]
