"""Batch normalisation in training mode, which also updates its running statistics."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.norm = nn.BatchNorm2d(planes)

    def forward(self, images):
        return self.norm(images)


batch_size = 8
planes = 20
height = 18
width = 22


def get_inputs():
    return [torch.rand(batch_size, planes, height, width)]


def get_init_inputs():
    return [planes]
