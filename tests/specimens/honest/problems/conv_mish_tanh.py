"""A convolution of volumes, then mish, then tanh."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, stride=1, padding=0):
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, window, stride=stride, padding=padding)

    def forward(self, volumes):
        return torch.tanh(F.mish(self.conv(volumes)))


batch_size = 2
inputs = 3
outputs = 10
depth, height, width = 17, 18, 18


def get_inputs():
    return [torch.rand(batch_size, inputs, depth, height, width)]


def get_init_inputs():
    return [inputs, outputs, 3]
