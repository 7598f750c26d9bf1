"""Layer normalisation over whole images; the normalised shape is a tuple."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, normalised):
        super().__init__()
        self.norm = nn.LayerNorm(normalised)

    def forward(self, images):
        return self.norm(images)


batch_size = 5
planes = 6
height = 20
width = 24


def get_inputs():
    return [torch.rand(batch_size, planes, height, width)]


def get_init_inputs():
    return [(planes, height, width)]
