"""Average pooling of volumes, padded by zeros that count."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, window, stride, padding):
        super().__init__()
        self.pool = nn.AvgPool3d(window, stride=stride, padding=padding)

    def forward(self, volumes):
        return self.pool(volumes)


batch_size = 2
planes = 5
depth = 18
height = 20
width = 22


def get_inputs():
    return [torch.rand(batch_size, planes, depth, height, width)]


def get_init_inputs():
    return [3, 2, 1]
