"""A transposed 2D convolution with a stride, a padding and an output padding."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding):
        super().__init__()
        self.up = nn.ConvTranspose2d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding
        )

    def forward(self, x):
        return self.up(x)


batch_size = 16
in_channels = 32
out_channels = 16
kernel_size = 3
stride = 2
padding = 1
output_padding = 1


def get_inputs():
    return [torch.randn(batch_size, in_channels, 32, 48)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, stride, padding, output_padding]
