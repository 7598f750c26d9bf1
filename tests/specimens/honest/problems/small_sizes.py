"""A product whose sizes are so small already that the grader makes no others of them."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, rows):
        return torch.sigmoid(self.linear(rows))


rows = 6
inputs = 7
outputs = 5


def get_inputs():
    return [torch.rand(rows, inputs)]


def get_init_inputs():
    return [inputs, outputs]
