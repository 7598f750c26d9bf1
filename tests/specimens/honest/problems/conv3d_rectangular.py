"""A convolution of volumes whose kernel has three different sides."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window):
        super().__init__()
        self.layer = nn.Conv3d(inputs, outputs, window, bias=False)

    def forward(self, volumes):
        return self.layer(volumes)


batch_size = 2
inputs = 3
outputs = 9
depth = 17
height = 18
width = 20


def get_inputs():
    return [torch.rand(batch_size, inputs, depth, height, width)]


def get_init_inputs():
    return [inputs, outputs, (2, 3, 4)]
