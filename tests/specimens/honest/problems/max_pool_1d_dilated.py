"""Max pooling of sequences with stride, padding and dilation."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, window, stride, padding, dilation):
        super().__init__()
        self.pool = nn.MaxPool1d(window, stride=stride, padding=padding, dilation=dilation)

    def forward(self, sequences):
        return self.pool(sequences)


batch_size = 8
planes = 20
length = 100
window = 5
stride = 2
padding = 2
dilation = 3


def get_inputs():
    return [torch.randn(batch_size, planes, length)]


def get_init_inputs():
    return [window, stride, padding, dilation]
