"""A setup.py next to this file builds the module that it imports."""

import scaled_relu_extension as extension
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features))

    def forward(self, x):
        return extension.run(x, self.scale)
