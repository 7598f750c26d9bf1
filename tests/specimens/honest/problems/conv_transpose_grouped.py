"""A transposed convolution with stride, padding, output padding and groups."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, stride, padding, output_padding, groups):
        super().__init__()
        self.layer = nn.ConvTranspose2d(
            inputs, outputs, window, stride=stride, padding=padding, output_padding=output_padding, groups=groups
        )

    def forward(self, images):
        return self.layer(images)


batch_size = 3
inputs = 8
outputs = 12
height = 18
width = 20


def get_inputs():
    return [torch.rand(batch_size, inputs, height, width)]


def get_init_inputs():
    return [inputs, outputs, 3, (2, 3), 1, (1, 2), 4]
