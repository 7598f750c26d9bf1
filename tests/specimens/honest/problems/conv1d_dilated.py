"""A dilated convolution of sequences, with stride and without bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, window, stride, dilation, bias=False):
        super().__init__()
        self.layer = nn.Conv1d(inputs, outputs, window, stride=stride, dilation=dilation, bias=bias)

    def forward(self, sequences):
        return self.layer(sequences)


batch_size = 6
inputs = 3
outputs = 20
length = 120


def get_inputs():
    return [torch.rand(batch_size, inputs, length)]


def get_init_inputs():
    return [inputs, outputs, 3, 2, 4]
