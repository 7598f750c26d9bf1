"""A product of two matrices that are both stored the other way round."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, left, right):
        return torch.matmul(left.T, right.T)


rows = 48
inner = 96
columns = 33


def get_inputs():
    return [torch.rand(inner, rows), torch.rand(columns, inner)]


def get_init_inputs():
    return []
