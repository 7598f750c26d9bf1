"""The sum of all elements alone, whose gradient is one number at every place."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum()


batch_size = 128
features = 4096


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return []
