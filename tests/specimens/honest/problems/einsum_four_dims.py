"""A 4-D tensor times a matrix along its last dimension."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, tensor, matrix):
        return torch.einsum("pqrs,st->pqrt", tensor, matrix)


batch_size = 4
planes = 6
lines = 18
length = 32
outputs = 20


def get_inputs():
    return [torch.rand(batch_size, planes, lines, length), torch.rand(length, outputs)]


def get_init_inputs():
    return []
