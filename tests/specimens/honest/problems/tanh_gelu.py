"""The approximation of GELU by tanh, written out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        inner = 0.7978845608028654 * (x + 0.044715 * x**3)
        return 0.5 * x * (1.0 + torch.tanh(inner))


batch_size = 32
features = 300


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return []
