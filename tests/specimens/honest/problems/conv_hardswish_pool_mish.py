"""A convolution less a constant, hardswish, max pooling, mish."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, subtracted, pool):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, window)
        self.subtracted = subtracted
        self.pool = nn.MaxPool2d(pool)

    def forward(self, images):
        x = F.hardswish(self.conv(images) - self.subtracted)
        return F.mish(self.pool(x))


batch_size = 3
inputs = 3
outputs = 18
height, width = 24, 26


def get_inputs():
    return [torch.rand(batch_size, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs, 3, 0.5, 2]
