"""A 3D convolution with a kernel that is no cube, and a bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv3d = nn.Conv3d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        return self.conv3d(x)


batch_size = 8
in_channels = 3
out_channels = 16
kernel_size = (3, 5, 2)
depth, height, width = 16, 64, 64


def get_inputs():
    return [torch.randn(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
