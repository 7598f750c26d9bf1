"""A leaky ReLU whose slope is an argument with a default."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, slope: float = 0.01):
        super().__init__()
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.leaky_relu(x, negative_slope=self.slope)


batch_size = 16
features = 1000


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return []
