"""A convolution whose kernel, padding and dilation differ between height and width."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, stride=1, padding=(1, 2), dilation=(2, 1), groups=1, bias=True):
        super().__init__()
        self.layer = nn.Conv2d(inputs, outputs, window, stride, padding, dilation, groups, bias)

    def forward(self, images):
        return self.layer(images)


batch_size = 4
inputs = 3
outputs = 18
height = 24
width = 40
window = (3, 5)


def get_inputs():
    return [torch.rand(batch_size, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs, window]
