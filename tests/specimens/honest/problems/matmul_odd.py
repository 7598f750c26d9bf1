"""A product of two matrices none of whose sizes is a multiple of 16."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, left, right):
        return left @ right


rows, inner, columns = 77, 131, 59


def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, columns)]


def get_init_inputs():
    return []
