"""The index of the smallest value, an integer output."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, tensor):
        return torch.argmin(tensor, dim=self.axis)


batch_size = 10
first = 30
second = 40


def get_inputs():
    return [torch.rand(batch_size, first, second)]


def get_init_inputs():
    return [2]
