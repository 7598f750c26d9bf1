"""The mean over one dimension, which disappears."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, tensor):
        return tensor.mean(dim=self.axis)


batch_size = 12
first = 40
second = 50


def get_inputs():
    return [torch.rand(batch_size, first, second)]


def get_init_inputs():
    return [1]
