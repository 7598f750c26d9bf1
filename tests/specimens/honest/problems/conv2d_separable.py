"""A depthwise convolution followed by a pointwise one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window):
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, window, padding=window // 2, groups=inputs, bias=False)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)

    def forward(self, images):
        return self.pointwise(self.depthwise(images))


batch_size = 3
inputs = 8
outputs = 24
height = 24
width = 24


def get_inputs():
    return [torch.rand(batch_size, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs, 3]
