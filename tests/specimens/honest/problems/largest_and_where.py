"""The largest value of each column and, as integers, where it lies: two outputs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, tensor):
        values, places = torch.max(tensor, dim=self.axis)
        return values, places


batch_size = 10
first = 30
second = 40


def get_inputs():
    return [torch.randn(batch_size, first, second)]


def get_init_inputs():
    return [1]
