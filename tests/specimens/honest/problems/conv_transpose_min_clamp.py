"""A transposed convolution, a minimum with a constant, a clamp and a division."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, stride, padding, smallest, divisor):
        super().__init__()
        self.conv = nn.ConvTranspose3d(inputs, outputs, window, stride=stride, padding=padding)
        self.smallest = smallest
        self.divisor = divisor

    def forward(self, volumes):
        x = self.conv(volumes)
        x = torch.min(x, torch.tensor(0.8, device=x.device))
        return torch.clamp(x, min=self.smallest) / self.divisor


batch_size = 2
inputs = 3
outputs = 5
depth = 4
height = 18
width = 20


def get_inputs():
    return [torch.rand(batch_size, inputs, depth, height, width)]


def get_init_inputs():
    return [inputs, outputs, 3, 2, 1, -0.5, 2.0]
