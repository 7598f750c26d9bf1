"""A linear layer with a second bias and a ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, bias_shape):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.offset = nn.Parameter(torch.randn(bias_shape))

    def forward(self, rows):
        return torch.relu(self.linear(rows) + self.offset)


batch_size = 20
inputs = 100
outputs = 80
bias_shape = (outputs,)


def get_inputs():
    return [torch.rand(batch_size, inputs)]


def get_init_inputs():
    return [inputs, outputs, bias_shape]
