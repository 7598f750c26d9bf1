"""A matrix times a Python number, which is an input of forward."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, matrix, factor: float):
        return matrix * factor


rows = 70
columns = 90


def get_inputs():
    return [torch.rand(rows, columns), 3.14]


def get_init_inputs():
    return []
