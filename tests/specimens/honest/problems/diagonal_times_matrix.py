"""A diagonal matrix, given by its diagonal, times a full matrix."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, diagonal, matrix):
        return torch.diag(diagonal) @ matrix


order = 60
columns = 44


def get_inputs():
    return [torch.randn(order), torch.randn(order, columns)]


def get_init_inputs():
    return []
