"""A factor for each feature, and a ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return torch.relu(x * self.scale)


batch_size = 64
features = 200
CASES = [
    {"name": "odd", "set": {"batch_size": 3, "features": 37}},
    {"name": "one row", "set": {"batch_size": 1, "features": 64}},
]


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features]
