"""A transposed convolution with a stride from few channels to many, whose output alone looks like much work."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride)

    def forward(self, x):
        return torch.relu(self.conv(x))


batch_size = 8
in_channels = 3
out_channels = 64
height, width = 128, 96
kernel_size = 5
stride = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride]
