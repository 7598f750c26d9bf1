"""A linear layer, a learned scale, and batch normalisation with given eps and momentum."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, inputs, outputs, scale_shape, eps=1e-5, momentum=0.1):
        super().__init__()
        self.gemm = nn.Linear(inputs, outputs)
        self.scale = nn.Parameter(torch.randn(scale_shape))
        self.bn = nn.BatchNorm1d(outputs, eps=eps, momentum=momentum)

    def forward(self, rows):
        return self.bn(self.gemm(rows) * self.scale)


batch_size = 24
inputs = 64
outputs = 48
scale_shape = (outputs,)


def get_inputs():
    return [torch.rand(batch_size, inputs)]


def get_init_inputs():
    return [inputs, outputs, scale_shape]
