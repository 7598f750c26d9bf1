"""One product for each pair of matrices of a batch."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, first, second):
        return torch.bmm(first, second)


batch_size = 12
height = 24
depth = 40
width = 18


def get_inputs():
    return [torch.rand(batch_size, height, depth), torch.rand(batch_size, depth, width)]


def get_init_inputs():
    return []
